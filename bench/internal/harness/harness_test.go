package harness

import (
	"archive/zip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// write writes a file, and makes its directories.
func write(t *testing.T, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// A world is a directory of peers with a module proxy of its own.
type world struct{ proxy, peers string }

// newWorld returns a world whose proxy offers example.com/there and
// example.com/gone.
func newWorld(t *testing.T) world {
	w := world{filepath.Join(t.TempDir(), "proxy"), filepath.Join(t.TempDir(), "peers")}
	for _, name := range []string{"there", "gone"} {
		module := "example.com/" + name
		dir := filepath.Join(w.proxy, module, "@v")
		mod := "module " + module + "\n\ngo 1.26\n"
		write(t, filepath.Join(dir, "list"), "v1.0.0\n")
		write(t, filepath.Join(dir, "v1.0.0.info"), `{"Version":"v1.0.0","Time":"2026-01-02T15:04:05Z"}`)
		write(t, filepath.Join(dir, "v1.0.0.mod"), mod)
		f, err := os.Create(filepath.Join(dir, "v1.0.0.zip"))
		require.NoError(t, err)
		z := zip.NewWriter(f)
		for file, text := range map[string]string{"go.mod": mod, "a.go": "package " + name + "\n"} {
			part, err := z.Create(module + "@v1.0.0/" + file)
			require.NoError(t, err)
			_, err = part.Write([]byte(text))
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		require.NoError(t, f.Close())
	}
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOTOOLCHAIN", "local")
	w.use(t, w.url())
	return w
}

// url returns the file URL of the proxy.
func (w world) url() string { return "file://" + filepath.ToSlash(w.proxy) }

// use sets the proxy, and makes the module cache empty.
func (w world) use(t *testing.T, proxy string) {
	t.Setenv("GOPROXY", proxy)
	t.Setenv("GOMODCACHE", t.TempDir())
}

// add adds a peer that needs the modules. Its source is that of the fake.
func (w world) add(t *testing.T, name string, modules ...string) string {
	bench, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join("testdata", "main.go"))
	require.NoError(t, err)
	dir := filepath.Join(w.peers, name)
	write(t, filepath.Join(dir, "main.go"), string(source))
	mod := "module peers/" + name + "\n\ngo 1.26\n\nrequire github.com/seed-c1b73e60/convo/bench v0.0.0\n\nreplace github.com/seed-c1b73e60/convo/bench => " + bench + "\n"
	sums := ""
	for _, m := range modules {
		mod += "\nrequire " + m + " v1.0.0\n"
		write(t, filepath.Join(dir, filepath.Base(m)+".go"), "package main\n\nimport _ \""+m+"\"\n")
		out, err := goCommand(t.TempDir(), "mod", "download", "-json", m+"@v1.0.0").Output()
		require.NoError(t, err, "%s", out)
		var sum struct{ Sum, GoModSum string }
		require.NoError(t, json.Unmarshal(out, &sum))
		sums += m + " v1.0.0 " + sum.Sum + "\n" + m + " v1.0.0/go.mod " + sum.GoModSum + "\n"
	}
	write(t, filepath.Join(dir, "go.mod"), mod)
	write(t, filepath.Join(dir, "go.sum"), sums)
	return dir
}

func (w world) lose(t *testing.T, module, ext string) {
	require.NoError(t, os.Remove(filepath.Join(w.proxy, module, "@v", "v1.0.0"+ext)))
}

func open(t *testing.T, folder string) *Fleet {
	f, err := Open(folder, io.Discard)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func names(f *Fleet) []string {
	var list []string
	for _, p := range f.Peers {
		list = append(list, p.Name)
	}
	return list
}

func TestOpen_WhatIsNotOfferedIsNotAvailable(t *testing.T) {
	for _, ext := range []string{".zip", ".mod"} {
		t.Run(ext, func(t *testing.T) {
			w := newWorld(t)
			w.add(t, "b", "example.com/there")
			w.add(t, "a", "example.com/there", "example.com/gone")
			w.lose(t, "example.com/gone", ext)
			w.use(t, w.url())
			var said strings.Builder
			f, err := Open(w.peers, &said)
			require.NoError(t, err)
			assert.NoError(t, f.Broken)
			assert.Equal(t, []string{"b"}, names(f))
			require.Len(t, f.Missing, 1)
			assert.Equal(t, "a", f.Missing[0].Name)
			assert.Contains(t, f.Missing[0].Reason, "example.com/gone")
			assert.Contains(t, f.Missing[0].Reason, "no such file")
			assert.NotContains(t, f.Missing[0].Reason, "example.com/there@v1.0.0:")
			assert.Contains(t, said.String(), "a: not available here: ")
			assert.NoError(t, f.Close())
		})
	}
}

// A peer is left out only if the proxy answers that it does not offer a module.
func TestOpen_AnswersOfAProxy(t *testing.T) {
	for status, missing := range map[int]bool{403: true, 404: true, 410: true, 401: false, 429: false, 500: false} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			w := newWorld(t)
			w.add(t, "a", "example.com/gone")
			files := http.FileServer(http.Dir(w.proxy))
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "gone/@v/v1.0.0.zip") {
					http.Error(rw, "an answer of the proxy", status)
					return
				}
				files.ServeHTTP(rw, r)
			}))
			defer server.Close()
			w.use(t, server.URL)
			f := open(t, w.peers)
			assert.Empty(t, f.Peers)
			if missing {
				require.Len(t, f.Missing, 1)
				assert.NoError(t, f.Broken)
				assert.Contains(t, f.Missing[0].Reason, "example.com/gone@v1.0.0: ")
				assert.Contains(t, f.Missing[0].Reason, http.StatusText(status))
				return
			}
			assert.Empty(t, f.Missing)
			assert.ErrorContains(t, f.Broken, "peer a is broken")
		})
	}
}

// A proxy that cannot be reached is an error, not a missing module.
func TestOpen_NoProxyIsBroken(t *testing.T) {
	w := newWorld(t)
	w.add(t, "a", "example.com/there")
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for _, proxy := range []string{server.URL, "off"} {
		w.use(t, proxy)
		f := open(t, w.peers)
		assert.Empty(t, f.Missing)
		assert.ErrorContains(t, f.Broken, "go mod download")
	}
}

func TestOpen_WhatIsWrongIsBroken(t *testing.T) {
	type faults map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}
	cases := faults{
		"a wrong line of go.sum": {func(t *testing.T, dir string) {
			file := filepath.Join(dir, "go.sum")
			sum, err := os.ReadFile(file)
			require.NoError(t, err)
			i := strings.Index(string(sum), "example.com/there v1.0.0 h1:") + len("example.com/there v1.0.0 h1:")
			sum[i] ^= 1
			write(t, file, string(sum))
		}, "checksum mismatch"},
		"a wrong line of go.sum for a go.mod": {func(t *testing.T, dir string) {
			file := filepath.Join(dir, "go.sum")
			sum, err := os.ReadFile(file)
			require.NoError(t, err)
			i := strings.Index(string(sum), "v1.0.0/go.mod h1:") + len("v1.0.0/go.mod h1:")
			sum[i] ^= 1
			write(t, file, string(sum))
		}, "checksum mismatch"},
		"no go.sum": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "go.sum")))
		}, "missing go.sum entry"},
		"a typo in an import": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "there.go"), "package main\n\nimport _ \"example.com/their\"\n")
		}, "example.com/their"},
		"a typo in an import of a module that is there": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "there.go"), "package main\n\nimport _ \"example.com/there/a\"\n")
		}, "example.com/there/a"},
		"a fault of syntax": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "there.go"), "package main\n\nfunc\n")
		}, "syntax error"},
		"a fault of go.mod": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "go.mod"), "modul x\n")
		}, "unknown directive"},
	}
	started := faults{ // these are built and started first, which takes longer
		"it dies at once": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { panic(\"its last words\") }\n")
		}, "its last words"},
		"it says something else": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "main.go"), "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n")
		}, "no answer"},
		"it names no table": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "main.go"), "package main\n\nimport \"github.com/seed-c1b73e60/convo/bench/peer\"\n\nfunc main() { peer.Main(peer.Peer{Notes: []peer.Note{{Table: \"Apend\"}}}) }\n")
		}, `there is no table "Apend"`},
	}
	if long.On() {
		maps.Copy(cases, started)
	} else {
		cases["it names no table"] = started["it names no table"]
	}
	w := newWorld(t)
	w.add(t, "whole", "example.com/there")
	for name, tt := range cases {
		tt.spoil(t, w.add(t, strings.ReplaceAll(name, " ", "_"), "example.com/there"))
	}
	w.use(t, w.url())
	f := open(t, w.peers)
	assert.Equal(t, []string{"whole"}, names(f), "the others run")
	assert.Empty(t, f.Missing)
	broken, ok := f.Broken.(interface{ Unwrap() []error })
	require.True(t, ok, "%v", f.Broken)
	all := flat(broken)
	require.Len(t, all, len(cases))
	for name, tt := range cases {
		begin := "peer " + strings.ReplaceAll(name, " ", "_") + " is broken: "
		i := slices.IndexFunc(all, func(err error) bool { return strings.HasPrefix(err.Error(), begin) })
		require.NotEqual(t, -1, i, name)
		assert.ErrorContains(t, all[i], tt.want, name)
	}
}

// flat returns the errors that were joined, also one by one.
func flat(joined interface{ Unwrap() []error }) (all []error) {
	for _, err := range joined.Unwrap() {
		if inner, ok := err.(interface{ Unwrap() []error }); ok {
			all = append(all, flat(inner)...)
		} else {
			all = append(all, err)
		}
	}
	return all
}

// A missing module does not hide that another one is broken.
func TestOpen_BrokenIsNotHiddenByMissing(t *testing.T) {
	w := newWorld(t)
	dir := w.add(t, "a", "example.com/there", "example.com/gone")
	file := filepath.Join(dir, "go.sum")
	sum, err := os.ReadFile(file)
	require.NoError(t, err)
	i := strings.Index(string(sum), "example.com/there v1.0.0 h1:") + len("example.com/there v1.0.0 h1:")
	sum[i] ^= 1
	write(t, file, string(sum))
	w.lose(t, "example.com/gone", ".zip")
	w.use(t, w.url())
	f := open(t, w.peers)
	assert.Empty(t, f.Missing)
	assert.ErrorContains(t, f.Broken, "checksum mismatch")
}

func TestOpen_BrokenIsNotHiddenByMissing_Answers(t *testing.T) {
	w := newWorld(t)
	w.add(t, "a", "example.com/there", "example.com/gone")
	files := http.FileServer(http.Dir(w.proxy))
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "gone/@v/v1.0.0.zip"):
			http.Error(rw, "refused", http.StatusForbidden)
		case strings.HasSuffix(r.URL.Path, "there/@v/v1.0.0.zip"):
			http.Error(rw, "on fire", http.StatusInternalServerError)
		default:
			files.ServeHTTP(rw, r)
		}
	}))
	defer server.Close()
	w.use(t, server.URL)
	f := open(t, w.peers)
	assert.Empty(t, f.Missing)
	assert.ErrorContains(t, f.Broken, "500 Internal Server Error")
}

func TestOpen_NoPeers(t *testing.T) {
	f := open(t, "")
	assert.Empty(t, f.Peers)
	_, err := Open(t.TempDir(), io.Discard)
	assert.ErrorContains(t, err, "no peers in")
}

// fake returns a peer that runs.
func fake(t *testing.T) (*Fleet, *Peer) {
	w := newWorld(t)
	w.add(t, "fake")
	f := open(t, w.peers)
	require.NoError(t, f.Broken)
	require.Len(t, f.Peers, 1)
	return f, f.Peers[0]
}

func TestPeer(t *testing.T) {
	f, p := fake(t)
	assert.Equal(t, []string{"a note of the fake"}, f.Notes(peer.TableAppend))
	assert.Empty(t, f.Notes(peer.TableTrim))

	t.Run("cells", func(t *testing.T) {
		require.Len(t, p.Cells, 4)
		assert.Equal(t, 7, p.Cells[0].QuickMax)
		small, large, slow := p.Cell(p.Cells[0], 1000), p.Cell(p.Cells[0], 4000), p.Cell(p.Cells[3], 1)
		got, err := measure.Cells([]measure.Cell{small, large, slow}, measure.Effort{Rounds: 2, Round: time.Millisecond})
		require.NoError(t, err)
		assert.InDelta(t, 1, got[0].Allocs, 0.1)
		assert.InDelta(t, 1024, got[0].Bytes, 100)
		assert.InDelta(t, 4096, got[1].Bytes, 400)
		k, once, err := slow.Fit(time.Millisecond)
		require.NoError(t, err)
		assert.Equal(t, 1, k)
		assert.True(t, once)
		_, err = measure.Cells([]measure.Cell{p.Cell(p.Cells[1], 1)}, measure.Quick)
		assert.ErrorContains(t, err, "fake: it fails")
		_, err = p.Cell(peer.Cell{Table: peer.TableAppend, Name: "nobody's"}, 1).Round(1)
		assert.ErrorContains(t, err, "no cell")
	})
	t.Run("counters", func(t *testing.T) {
		counts, err := p.Count(p.Counters[0], []string{"a", "", "ccc"})
		require.NoError(t, err)
		assert.Equal(t, []int{1, 0, 3}, counts)
		_, err = p.Count(p.Counters[1], []string{"a"})
		assert.ErrorContains(t, err, "no vocabulary")
		_, err = p.Count(peer.Counter{Name: "bytes", Vocabulary: "other"}, []string{"a"})
		assert.ErrorContains(t, err, "no counter")
		c := p.CountCell(peer.CounterOf{Name: "bytes", Vocabulary: "o200k_base", Texts: []string{"a", "b", "c"}, Whole: true})
		k, _, err := c.Fit(time.Second)
		require.NoError(t, err)
		assert.Equal(t, 3, k, "each text once")
		_, err = c.Round(k)
		assert.NoError(t, err)
		_, err = p.CountCell(peer.CounterOf{Name: "bytes", Vocabulary: "o200k_base", Texts: []string{""}}).Round(1)
		assert.ErrorContains(t, err, "nothing was counted")
	})
	t.Run("keepers", func(t *testing.T) {
		job := peer.Job{Summary: "so far", Asks: []int{1, 3}}
		for i, text := range []string{"one", "two", "three"} {
			job.Messages = append(job.Messages, peer.Message{N: i, Role: "user", Text: text})
		}
		got, err := p.Keep(false, "newest", job)
		require.NoError(t, err)
		assert.Equal(t, []peer.Request{{View: job.Messages[:1], TooLong: true}, {View: job.Messages[2:]}}, got)
		got, err = p.Keep(true, "newest and a summary", job)
		require.NoError(t, err)
		summary := peer.Message{N: peer.Made, Role: "user", Text: "so far"}
		apart := []peer.Apart{{Input: 5, Output: 1}}
		assert.Equal(t, []peer.Request{{View: []peer.Message{summary, job.Messages[0]}, Apart: apart}, {View: []peer.Message{summary, job.Messages[2]}, Apart: apart}}, got)
		_, err = p.Keep(true, "newest", job)
		assert.ErrorContains(t, err, "no keeper")
		_, err = p.Keep(false, "newest", peer.Job{Asks: []int{1}})
		assert.ErrorContains(t, err, "a request after 1 messages of 0")
	})
	t.Run("programs", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "x.go")
		write(t, file, "package main\n\nimport _ \"github.com/seed-c1b73e60/convo/bench/peer\"\n\nfunc main() {}\n")
		binary, err := Build(p.Dir, filepath.Join(t.TempDir(), "x"), file)
		require.NoError(t, err)
		assert.NoError(t, exec.Command(binary).Run())
	})
	t.Run("its end", func(t *testing.T) {
		_, err := p.Cell(p.Cells[2], 1).Round(1)
		assert.ErrorContains(t, err, "its last words")
		assert.Error(t, f.Close())
	})
}

func TestFleet_CloseEndsThePrograms(t *testing.T) {
	f, p := fake(t)
	require.NoError(t, f.Close())
	assert.True(t, p.cmd.ProcessState.Success())
	_, err := os.Stat(f.dir)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
