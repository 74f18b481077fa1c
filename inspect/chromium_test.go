package inspect_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/inspect"
)

var (
	chromium = flag.String("convo.chromium", "", "path of a chromium that shows the page")
	shots    = flag.String("convo.shots", "", "folder for screenshots; empty: they are not kept")
)

// browse runs a headless browser and returns what it prints. The browser has no complaint
// about the page's policy.
func browse(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
		"--enable-logging=stderr", "--user-data-dir=" + t.TempDir()}, args...)
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...)
	}
	cmd := exec.CommandContext(ctx, *chromium, args...)
	cmd.WaitDelay = 10 * time.Second
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	require.NoError(t, cmd.Run(), "%s", log.String())
	hasNot(t, log.String(), "Content Security Policy")
	return out.String()
}

// picture returns a screenshot of a page.
func picture(t *testing.T, name, url string, width, height int, dark bool) image.Image {
	t.Helper()
	dir := *shots
	if dir == "" {
		dir = t.TempDir()
	}
	file := filepath.Join(dir, name+".png")
	args := []string{"--screenshot=" + file, fmt.Sprintf("--window-size=%d,%d", width, height), "--hide-scrollbars"}
	if dark {
		args = append(args, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
	}
	browse(t, append(args, url)...)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	return img
}

// pixels returns how many pixels have a color.
func pixels(img image.Image, rgb uint32) (n int) {
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if r, g, b, _ := img.At(x, y).RGBA(); r>>8<<16|g>>8<<8|b>>8 == rgb {
				n++
			}
		}
	}
	return n
}

// tagsOf counts the elements of a page by their names.
func tagsOf(page string) map[string]int {
	n := map[string]int{}
	for _, m := range regexp.MustCompile(`<([a-z0-9]+)[ >]`).FindAllStringSubmatch(page, -1) {
		n[m[1]]++
	}
	delete(n, "tbody") // which a browser adds
	return n
}

// segments counts the segments of a page by their kind.
func segments(page string) map[string]int {
	n := map[string]int{}
	for _, m := range regexp.MustCompile(`data-kind="(\w+)" data-tokens="\d+"`).FindAllStringSubmatch(page, -1) {
		n[m[1]]++
	}
	return n
}

// saved returns a Store with the conversation of talk. Its limits are in each record but
// the first.
func saved(t *testing.T) convo.Store {
	t.Helper()
	store := &convotest.MemStore{}
	limits := convo.Limits{Window: 5_000, Reserve: 1_000}
	for _, key := range []string{"paris", "rome"} {
		h := openHistory(t, store, key, &convo.Options{Limits: limits})
		mustAppend(t, h, convo.User("Window seats only, I am tall."), convo.Assistant("I will remember that."))
		require.NoError(t, h.Save(t.Context()))
		require.NoError(t, h.SetLimits(limits))
		if key == "rome" {
			fill(t, h)
		}
		require.NoError(t, h.Save(t.Context()))
	}
	return store
}

// A browser makes of each page what the server wrote, and runs no script.
func TestChromium(t *testing.T) {
	if *chromium == "" {
		t.Skip("-convo.chromium is not set; ci/long.sh page sets it")
	}
	talked, seen := talk(t)
	empty := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 200_000, Reserve: 20_000, Soft: 60_000, Low: 50_000}})
	tooLong := "\n" + strings.Repeat("<script>document.title='ran'</script>\n", 30_000)
	mux := http.NewServeMux()
	mux.HandleFunc("/script", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!DOCTYPE html><title>x</title><script>document.title='ran'</script>"))
	})
	store := saved(t)
	live := func() []inspect.Conversation {
		return []inspect.Conversation{{ID: 7, Name: "Flights to Rome", History: talked, Reports: seen, About: []string{"agent/1.0 · gpt-5 · 12 requests"}, Problem: "The provider refused the last request."},
			{ID: 9, History: empty, About: []string{"agent/1.0"}}}
	}
	for path, p := range map[string]*inspect.Pages{"/store": {Store: store}, "/live": {List: live}, "/talk": pagesOf(talked, seen), "/empty": inspect.Handler(empty), "/hostile": hostile(t, "</style></title></pre><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">\x1b[31m\u202e"),
		"/long": hostile(t, tooLong), "/large": inspect.Handler(large(t, 10_000))} {
		mux.Handle(path, p)
	}
	server := httptest.NewServer(mux)
	defer server.Close()

	has(t, browse(t, "--dump-dom", server.URL+"/script"), "<title>ran</title>") // it would run a script

	pinned := fmt.Sprint("e", talked.Snapshot().Pinned()[0])
	for _, path := range []string{"/talk?open=summary&open=c1&open=" + pinned, "/empty", "/hostile", "/hostile?open=summary&whole=e3", "/long", "/large", "/live", "/live?c=7", "/store", "/store?key=rome", "/store?key=rome&seq=2", "/store?key=rome&archive=3"} {
		response, err := http.Get(server.URL + path)
		require.NoError(t, err)
		var served bytes.Buffer
		_, err = served.ReadFrom(response.Body)
		require.NoError(t, err)
		response.Body.Close()
		start := time.Now()
		dom := browse(t, "--dump-dom", server.URL+path)
		t.Logf("%s: %d bytes, shown after %v", path, served.Len(), time.Since(start).Round(10*time.Millisecond))
		assert.Equal(t, tagsOf(served.String()), tagsOf(dom), path)
		assert.Equal(t, segments(served.String()), segments(dom), path)
		assert.Zero(t, tagsOf(dom)["script"]+tagsOf(dom)["img"], path)
		hasNot(t, dom, "<title>ran")
		if strings.HasPrefix(path, "/talk") {
			for _, id := range []string{"summary", "c1", pinned} {
				assert.Contains(t, regexp.MustCompile(`<details id="`+id+`"[^>]*>`).FindString(dom), " open=", id)
			}
			assert.Equal(t, 3, strings.Count(dom, " open=\"\""))
			for _, kind := range []string{"system", "tools", "summary", "user", "assistant", "reasoning", "calls", "results", "free", "reserve", "measured", "estimated", "margin"} {
				assert.NotZero(t, segments(dom)[kind], kind)
			}
		}
	}

	last := talked.Snapshot().Len() - 1
	newest, _ := talked.Snapshot().At(last)
	pictures := map[string]string{"talk": "/talk?open=summary&open=" + pinned, "compaction": fmt.Sprintf("/talk?open=c1&from=%d", newest.ID), "empty": "/empty", "hostile": "/hostile?open=c2",
		"list": "/store", "live": "/live", "record": "/store?key=rome", "early-record": "/store?key=rome&seq=1", "findings": "/hostile?open=c2&from=24&open=e24", "archive": "/store?key=rome&archive=3&open=e3"}
	if *shots == "" {
		pictures = map[string]string{"talk": "/talk"}
	}
	for _, look := range []struct {
		mode            string
		width           int
		dark            bool
		page, card, bar uint32
	}{{"light", 1280, false, 0xffffff, 0xf6f8fa, 0x0969da}, {"dark", 480, true, 0x0d1117, 0x151b23, 0x388bfd}, {"dark", 1280, true, 0x0d1117, 0x151b23, 0x388bfd}, {"light", 480, false, 0xffffff, 0xf6f8fa, 0x0969da}} {
		if *shots == "" && look.dark == (look.width == 1280) {
			continue
		}
		for name, path := range pictures {
			name = fmt.Sprintf("%s-%d-%s", name, look.width, look.mode)
			img := picture(t, name, server.URL+path, look.width, 1600, look.dark)
			assert.Greater(t, pixels(img, look.page)+pixels(img, look.card), img.Bounds().Dx()*img.Bounds().Dy()/2, "%s: the background", name)
			if strings.HasPrefix(name, "talk") {
				assert.Greater(t, pixels(img, look.bar), 300, "%s: the messages of the user", name)
			}
		}
	}
}
