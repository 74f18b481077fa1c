package inspect_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/inspect"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// request returns the page that a browser on the same machine gets. The target may be an
// attribute of a page.
func request(p http.Handler, target string) (status int, page string) {
	target, _, _ = strings.Cut(html.UnescapeString(target), "#") // a browser does not send it
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "localhost:8080"
	r.URL.RawQuery = strings.TrimPrefix(strings.TrimPrefix(target, "/"), "?")
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// get is request that checks what must hold for any page.
func get(t testing.TB, p http.Handler, target string) (status int, page string) {
	t.Helper()
	status, page = request(p, target)
	checkPage(t, page)
	return status, page
}

func ask(t testing.TB, p http.Handler, target string) string {
	t.Helper()
	status, page := get(t, p, target)
	require.Equal(t, http.StatusOK, status, target)
	return page
}

var (
	elements   = setOf("html head meta title style body header nav a h1 h2 h3 bdi p main section svg rect line text g ul li b details summary div pre span table tr th td dl dt dd defs pattern path")
	attributes = setOf("lang charset name content http-equiv nonce aria-label aria-hidden role href rel id class open data-kind data-tokens x y x1 x2 y1 y2 dx dy width height text-anchor dir scope d patternUnits")
)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// checkPage fails if a page holds an element, an attribute or an address that the template
// does not write, if its elements are not nested well, if it holds a character that cannot
// be seen, or if a screen reader would miss a heading or the name of a part.
func checkPage(t testing.TB, page string) {
	t.Helper()
	for _, r := range page {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) {
			require.Fail(t, "a character that cannot be seen", "%U", r)
		}
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	depth, level := 0, 0
	ids, count := map[string]bool{}, map[string]int{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			if !elements[token.Name.Local] {
				require.Fail(t, "an element that the template does not write", token.Name.Local)
			}
			count[token.Name.Local]++
			if next := slices.Index([]string{"", "h1", "h2", "h3"}, token.Name.Local); next > 0 {
				require.LessOrEqual(t, next, level+1, "a heading leaves out a level")
				level = next
			}
			named := map[string]string{}
			for _, a := range token.Attr {
				named[a.Name.Local] = a.Value
			}
			isPart := slices.Contains([]string{"svg", "section", "nav"}, token.Name.Local) || named["role"] == "img"
			require.True(t, !isPart || named["aria-hidden"] == "true" || named["aria-label"] != "", "a part without a name: %v", token)
			for _, a := range token.Attr {
				if !attributes[a.Name.Local] {
					require.Fail(t, "an attribute that the template does not write", "%s of %s", a.Name.Local, token.Name.Local)
				}
				if a.Name.Local == "href" && (a.Value == "" || !strings.Contains("?#", a.Value[:1])) {
					require.Fail(t, "a link to elsewhere", "%.100q", a.Value)
				}
				if a.Name.Local == "id" {
					if ids[a.Value] {
						require.Fail(t, "two elements have an ID", a.Value)
					}
					ids[a.Value] = true
				}
			}
		case xml.EndElement:
			depth--
		}
	}
	require.Zero(t, depth)
	for _, name := range []string{"h1", "main", "header"} {
		require.Equal(t, 1, count[name], "elements %s", name)
	}
}

// has is assert.Contains with a short message.
func has(t testing.TB, page, want string) {
	t.Helper()
	if !strings.Contains(page, want) {
		assert.Fail(t, "the page lacks a text", "%.200q", want)
	}
}

func hasNot(t testing.TB, page, not string) {
	t.Helper()
	if strings.Contains(page, not) {
		assert.Fail(t, "the page has a text", "%.200q", not)
	}
}

// isOpen reports whether the page shows an element as open.
func isOpen(t testing.TB, page, id string) bool {
	t.Helper()
	found := regexp.MustCompile(`<details id="` + id + `"[^>]*>`).FindString(page)
	require.NotEmpty(t, found, "the page has no element %s", id)
	return strings.HasSuffix(found, " open>")
}

// tokensOf returns the tokens of the segments in a part of a page, by their kinds.
func tokensOf(t testing.TB, part string) map[string]int {
	t.Helper()
	tokens := map[string]int{}
	for _, m := range regexp.MustCompile(`data-kind="(\w+)" data-tokens="(\d+)"`).FindAllStringSubmatch(part, -1) {
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		tokens[m[1]] += n
	}
	return tokens
}

// linkAfter returns the address of the first link with a text after the element with the ID.
func linkAfter(t testing.TB, page, id, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<details id="`+id+`"`)
	require.True(t, ok, id)
	found := regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>` + name).FindStringSubmatch(rest)
	require.NotNil(t, found, "%s has no link %q", id, name)
	return found[1]
}

// newHistory returns a History that is closed when the test ends.
func newHistory(t testing.TB, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

// openHistory is newHistory for a conversation in a Store.
func openHistory(t testing.TB, store convo.Store, key string, o *convo.Options) *convo.History {
	h, err := convo.Open(t.Context(), store, key, o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func mustAppend(t testing.TB, h *convo.History, msgs ...convo.Message) {
	t.Helper()
	_, err := h.Append(msgs...)
	require.NoError(t, err)
}

// talk makes a conversation with a pin, compactions, and an open call.
func talk(t testing.TB) (*convo.History, *inspect.Reports) {
	seen := &inspect.Reports{}
	h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 5_000, Reserve: 1_000}, OnCompaction: seen.Add})
	fill(t, h)
	return h, seen
}

// fill appends the conversation of talk.
func fill(t testing.TB, h *convo.History) {
	require.NoError(t, h.SetMeta("A trip to Rome", ""))
	require.NoError(t, h.SetSystem(convo.System("You are a travel agent.")))
	require.NoError(t, h.SetTools(convo.Tool{Name: "search", Description: "Finds flights."}))
	id, err := h.Append(convo.User("Window seats only, I am tall. Flights to Rome?"))
	require.NoError(t, err)
	require.NoError(t, h.Pin(id))
	for n := range 40 {
		call := convo.ToolCall{ID: fmt.Sprint("c", n), Name: "search", Arguments: fmt.Sprintf(`{"day":%d}`, n)}
		_, err := h.Append(
			convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: "Which day?"}, convo.Text(fmt.Sprint("Day ", n, ".")), call}},
			convo.Result(call, strings.Repeat(fmt.Sprintf("Flight %d leaves at nine and has a seat at the window. ", n), 20)),
			convo.Assistant(strings.Repeat("There is one at nine, with a seat at the window. ", 6)), convo.User(fmt.Sprint("And on day ", n+1, "? I can leave after breakfast, and want to be there before the museum closes.")))
		require.NoError(t, err)
		s, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens() + 100, Output: 20}))
	}
	mustAppend(t, h, convo.Assistant("I look.", convo.ToolCall{ID: "last", Name: "search", Arguments: `{"day":41}`}))
}

func pagesOf(h *convo.History, seen *inspect.Reports) *inspect.Pages {
	return &inspect.Pages{Conversations: []inspect.Conversation{{History: h, Reports: seen}}}
}

func TestPages_Refuses(t *testing.T) {
	h, seen := talk(t)
	p := pagesOf(h, seen)
	p.Hosts = []string{"Convo.example.com", "192.168.1.5:8080"}
	nonces := map[string]bool{}
	for _, c := range []struct {
		method, host string
		want         int
	}{
		{"GET", "localhost", 200}, {"HEAD", "localhost:80", 200}, {"GET", "LOCALHOST.", 200}, {"GET", "127.0.0.1:8080", 200}, {"GET", "127.1.2.3", 200},
		{"GET", "[::1]:8080", 200}, {"GET", "[::1]", 200}, {"GET", "::1", 200}, {"GET", "convo.example.com:443", 200}, {"GET", "192.168.1.5", 200},
		{"POST", "localhost", 405}, {"DELETE", "localhost", 405}, {"PUT", "localhost", 405}, {"OPTIONS", "localhost", 405}, {"get", "localhost", 405},
		{"GET", "evil.example", 403}, {"HEAD", "evil.example", 403}, {"GET", "", 403}, {"GET", "localhost.evil.example", 403}, {"GET", "a.localhost", 403}, {"GET", "10.0.0.1", 403}, {"GET", "0.0.0.0", 403},
		{"GET", "convo.example.com.evil", 403}, {"GET", "xconvo.example.com", 403}, {"GET", "127.0.0.1.evil.example", 403}, {"GET", "localhost:80:80", 403}, {"GET", "[localhost", 403}, {"GET", strings.Repeat("a", 1<<20), 403},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.Host = c.method, c.host
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		name := fmt.Sprintf("%s %.40s", c.method, c.host)
		assert.Equal(t, c.want, w.Code, name)
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), name)
		nonce := regexp.MustCompile(`^default-src 'none'; style-src 'nonce-(\w+)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$`).FindStringSubmatch(w.Header().Get("Content-Security-Policy"))
		require.Len(t, nonce, 2, name)
		assert.False(t, nonces[nonce[1]], "a nonce is used once")
		nonces[nonce[1]] = true
		switch {
		case c.want != 200:
			hasNot(t, w.Body.String(), "Window seats")
			assert.Less(t, w.Body.Len(), 1000, name)
			assert.Equal(t, c.want == 405, w.Header().Get("Allow") == "GET, HEAD", name)
		case c.method == "HEAD":
			assert.Zero(t, w.Body.Len())
			assert.NotEmpty(t, w.Header().Get("Content-Length"))
		default:
			assert.Equal(t, 1, strings.Count(w.Body.String(), `<style nonce="`+nonce[1]+`">`))
			assert.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
		}
	}
}

func TestPages_Empty(t *testing.T) {
	h := newHistory(t, nil)
	for range 2 {
		page := ask(t, inspect.Handler(h), "/")
		has(t, page, "The conversation is empty.")
		has(t, page, "Conversation 1")
		has(t, page, "there is nothing to send")
		require.NoError(t, h.Close()) // it is also shown when it is closed
	}
	has(t, ask(t, &inspect.Pages{}, "/"), "There is none.")
	has(t, ask(t, inspect.Handler(nil, nil), "/"), "There is none.")
	status, page := get(t, inspect.Handler(nil), "/")
	assert.Equal(t, 404, status)
	has(t, page, "There is no conversation 1.")
	var out bytes.Buffer
	require.NoError(t, inspect.WriteHTML(&out, nil))
	has(t, out.String(), "The conversation is empty.")
}

func TestPages_Several(t *testing.T) {
	h, _ := talk(t)
	other := newHistory(t, nil)
	p := inspect.Handler(h, nil, other)
	list := ask(t, p, "/")
	has(t, list, `<a href="?c=1"><bdi>A trip to Rome</bdi></a>`)
	has(t, list, `<a href="?c=3"><bdi>Conversation 3</bdi></a>`)
	hasNot(t, list, "?c=2")
	has(t, ask(t, p, "/?c=1"), "Window seats only")
	has(t, ask(t, p, "/?c=1"), `<a href="?list">`)
	has(t, ask(t, p, "/?c=3"), "The conversation is empty.")
	for _, c := range []string{"2", "4"} {
		status, _ := get(t, p, "/?c="+c)
		assert.Equal(t, 404, status)
	}
}

// Conversations that come and go keep their addresses, and have their own lines and checks.
func TestPages_List(t *testing.T) {
	talked, seen := talk(t)
	empty := newHistory(t, nil)
	var list []inspect.Conversation
	p := &inspect.Pages{List: func() []inspect.Conversation { return list }}
	refuses := func(target string, status int, want string) {
		got, page := get(t, p, target)
		assert.Equal(t, status, got)
		has(t, page, want)
	}
	refuses("/?c=7", http.StatusNotFound, "There is no conversation 7.")
	list = []inspect.Conversation{{ID: 7, Name: "Flights", History: talked, Reports: seen, About: []string{"agent/1.0 <b>", "gpt-5"}, Problem: "It was refused.\x1b", Formats: []wire.Format{wire.Gemini{}}}}
	page := ask(t, p, "/")
	has(t, page, `<a href="?c=7"><bdi>Flights</bdi></a>`)
	has(t, page, `<span class="faint">agent/1.0 &lt;b&gt;</span><span class="faint">gpt-5</span><span class="bad">It was refused.␛</span><svg class="small"`)
	has(t, page, "Refresh every 5 seconds")
	assert.NotZero(t, tokensOf(t, page)["results"])
	page = ask(t, p, "/?c=7")
	has(t, page, `<p class="faint">agent/1.0 &lt;b&gt;</p>`)
	has(t, page, `<p class="bad">It was refused.␛</p>`)
	has(t, page, `<a href="?list">All conversations</a>`)
	has(t, page, `<th scope="row">Gemini</th>`)
	hasNot(t, page, `<th scope="row">Anthropic</th>`)
	list = append([]inspect.Conversation{{ID: 8, History: empty}}, list...)
	page = ask(t, p, "/")
	has(t, page, `<a href="?c=8"><bdi>Conversation 8</bdi></a>`)
	has(t, page, `<a href="?c=7"><bdi>Flights</bdi></a>`)
	list = list[:1]
	refuses("/?c=7", http.StatusNotFound, "There is no conversation 7.")
	p.List = func() []inspect.Conversation { panic("no list") }
	refuses("/", http.StatusInternalServerError, "because of a panic: no list")
}

// Names stay apart in the list: those in several lines, those that turn the line around, and
// equal ones.
func TestPages_Names(t *testing.T) {
	p := &inspect.Pages{}
	for _, name := range []string{"one\ntwo", "one two", "\u202eeno\u2066", "same", "same"} {
		h := newHistory(t, nil)
		p.Conversations = append(p.Conversations, inspect.Conversation{Name: name, History: h})
	}
	var names []string
	for _, m := range regexp.MustCompile(`<bdi>([^<]*)</bdi></a>`).FindAllStringSubmatch(html.UnescapeString(ask(t, p, "/")), -1) {
		names = append(names, m[1])
	}
	assert.Equal(t, []string{"one␊two", "one two", "[U+202E]eno[U+2066]", "same", "same (conversation 5)"}, names)
	has(t, ask(t, p, "/?c=1"), "<title>one␊two · convo</title>")
}

// Requests and a conversation that goes on do not disturb each other.
func TestPages_Concurrent(t *testing.T) {
	seen := &inspect.Reports{}
	h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 4_000}, OnCompaction: seen.Add})
	p := pagesOf(h, seen)
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			for range long.Or(4, 10) {
				ask(t, p, "/?open=e3&open=c1")
			}
		})
	}
	for n := range 200 {
		mustAppend(t, h, convo.User(fmt.Sprint("Question ", n)), convo.Assistant(strings.Repeat("An answer. ", 20)))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
	}
	wait.Wait()
}
