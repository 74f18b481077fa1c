package layers_test

import (
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layerExceptions are the uses of a higher layer that remain, each with its
// reason: "file.go name" of what is used.
var layerExceptions = map[string]string{
	"restore.go newHistory":       "Restore begins as New does, with the default strategy",
	"compactor.go Edit":           "the edit that waits is a value to the compactor",
	"compactor.go Drop":           "the edit that waits is a value to the compactor",
	"compact_attempt.go isDirect": "the strategies of this package need no goroutine",
}

// A file uses only names of its own layer and of lower layers. root.md lists the
// layers, lowest first; ARCHITECTURE.md says where types may be named freely.
//
// Methods of interfaces and fields belong to the file that declares them. There is no
// exception for the interfaces of Options, such as CompactionStrategy: a lower layer has
// no reason to call one. A function of history.go counts as high as what it uses,
// directly or through other functions of history.go.
//
// The test reads names. It therefore does not find calls of functions that a higher layer
// has put into a field or passed as an argument, or calls through an interface of a lower
// layer.
func TestLayers(t *testing.T) {
	layers := readLayers(t, "", "root.md")
	pkg := loadPackage(t, "")
	for _, file := range pkg.files() {
		if _, ok := layers[file]; !ok {
			assert.Equal(t, "history.go", file, "%s is in no layer; add it to the list in internal/layers/root.md", file)
		}
	}
	unused := maps.Clone(layerExceptions)
	for _, fault := range pkg.layerFaults(layers, unused) {
		t.Error(fault)
	}
	assert.Empty(t, unused, "exceptions that nothing needs")
}

// Of two files, the lower one in root.md needs to know nothing of the higher one. An arrow back
// up is a use of a file by one that is listed before it, as two files of a layer may do.
func TestLayers_Arrows(t *testing.T) {
	list, err := os.ReadFile("root.md")
	require.NoError(t, err)
	order := map[string]int{}
	for _, m := range regexp.MustCompile("`([a-z_]+\\.go)`").FindAllStringSubmatch(string(list), -1) {
		order[m[1]] = len(order)
	}
	order["history.go"] = len(order)
	arrows := map[[2]string]bool{} // from a file, and to the one that it uses
	for _, u := range loadPackage(t, "").uses() {
		if u.from != u.in {
			arrows[[2]string{u.from, u.in}] = true
		}
	}
	up := 0
	for a := range arrows {
		if order[a[1]] > order[a[0]] {
			up++
		}
	}
	t.Logf("%d arrows between %d files, %d of them back up", len(arrows), len(order), up)
	assert.Less(t, up*7, len(arrows), "arrows back up")
}

// layerFaults returns the uses of higher layers. It removes the exceptions that it needed
// from exceptions.
func (l *loaded) layerFaults(layers map[string]int, exceptions map[string]string) (faults []string) {
	uses := l.uses()
	heights := historyHeights(uses, layers)
	allowed := maps.Clone(exceptions)
	for _, u := range uses {
		from, to := layers[u.from], layers[u.in]
		if u.in == "history.go" {
			to = heights[u.obj]
		}
		if from == 0 || to <= from {
			continue
		}
		if key := u.from + " " + u.obj.Name(); allowed[key] != "" {
			delete(exceptions, key)
			continue
		}
		faults = append(faults, fmt.Sprintf("%s: %s (layer %d) uses %s of %s (layer %d)", u.at, u.from, from, u.obj.Name(), u.in, to))
	}
	return faults
}

// historyHeights returns the highest layer that each function of history.go uses.
func historyHeights(uses []use, layers map[string]int) map[types.Object]int {
	heights := map[types.Object]int{}
	for again := true; again; {
		again = false
		for _, u := range uses {
			if u.from != "history.go" || u.by == nil {
				continue
			}
			if to := max(layers[u.in], heights[u.obj]); to > heights[u.by] {
				heights[u.by], again = to, true
			}
		}
	}
	return heights
}

func TestLayers_Refuses(t *testing.T) {
	common := map[string]string{
		"history.go": `package convo
			type Options struct { Strategy Strategy; Tokenizer Tokenizer }
			type History struct { opts Options; view int }
			func (h *History) up() { h.through() }
			func (h *History) through() { _ = Low(top(0)) }
			func (h *History) small() int { h.view++; return least }`,
		"high.go": `package convo
			type Strategy interface { Compact(*Goal) }
			type Goal struct { Size int }
			type Trigger interface { Due() bool }
			type Number int
			func (Number) Double() {}
			func top(int) int { return limit }
			const limit = 1`,
		"low.go": `package convo
			type Low int
			const least = 1
			type Tokenizer interface { Count() int }`,
	}
	layers := map[string]int{"low.go": 1, "x.go": 1, "high.go": 2}
	checkSources(t, common, "x.go", []checkedSource{
		{"function", "func f() { top(0) }", "uses top of high.go"},
		{"function as a value", "var f = top", "uses top of high.go"},
		{"constant", "const c = limit", "uses limit of high.go"},
		{"method", "func f(n interface{ Double() }, h *History) { n.Double() }", ""},
		{"method of a type", "var f = Number.Double", "uses Number of high.go|uses Double of high.go"},
		{"method of an interface", "func f(h *History) { h.opts.Strategy.Compact(nil) }", "uses Compact of high.go"},
		{"method of an interface of this layer", "func f(h *History) { h.opts.Tokenizer.Count() }", ""},
		{"method of an interface as a value", "func f(h *History) any { return h.opts.Strategy.Compact }", "uses Compact of high.go"},
		{"field", "func f(x in) { x.Plan(nil) }; type in interface { Plan(*Goal) }", ""},
		{"field of what a method returns", "func f(x in) { x.Plan().Size++ }; type in interface { Plan() *Goal }", "uses Size of high.go"},
		{"field in a literal", "var _ = &Goal{Size: 1}", "uses Goal of high.go|uses Size of high.go"},
		{"type in an interface with a name", "type in interface { Plan(Goal) Trigger }", ""},
		{"embedded in an interface", "type in interface { Trigger }", "uses Trigger of high.go"},
		{"type in an inline interface", "func f(x any) { _, _ = x.(interface{ Plan(Goal) }) }", "uses Goal of high.go"},
		{"type in the interface of a parameter", "func f(x interface{ Plan(Goal) }) {}", "uses Goal of high.go"},
		{"type in the interface of a field", "type s struct { x interface{ Plan(Goal) } }", "uses Goal of high.go"},
		{"type in a constraint", "func f[T interface{ ~int; Plan(Goal) }]() {}", "uses Goal of high.go"},
		{"type in a constraint with a name", "type c interface { Number | string }", "uses Number of high.go"},
		{"type as a constraint", "func f[T Trigger]() {}", "uses Trigger of high.go"},
		{"type in an interface in a function", "func f() { type in interface { Plan(Goal) } }", "uses Goal of high.go"},
		{"by way of history.go", "func f(h *History) { h.through() }", "uses through of history.go"},
		{"by way of two functions of history.go", "func f(h *History) { h.up() }", "uses up of history.go"},
		{"history.go", "func f(h *History) int { return h.small() + h.view }", ""},
		{"lower layer", "func f(t Tokenizer) int { return t.Count() + least + int(Low(1)) }", ""},
	}, func(l *loaded) []string { return l.layerFaults(layers, nil) })
}

// readLayers returns the number of the layer of each file in a folder, from 1 on.
// The file with that name has the layers, as a numbered list. Each file name in backquotes, up
// to the next number, is in the layer.
func readLayers(t *testing.T, folder, name string) map[string]int {
	t.Helper()
	list, err := os.ReadFile(name)
	require.NoError(t, err)
	layers := map[string]int{}
	n := 0
	for line := range strings.Lines(string(list)) {
		if regexp.MustCompile(`^\d+\. `).MatchString(line) {
			n++
		}
		for _, m := range regexp.MustCompile("`([a-z_]+\\.go)`").FindAllStringSubmatch(line, -1) {
			require.NotContains(t, layers, m[1])
			layers[m[1]] = n
		}
	}
	for file := range layers {
		assert.FileExists(t, filepath.Join(root, folder, file))
	}
	return layers
}
