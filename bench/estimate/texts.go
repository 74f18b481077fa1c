package estimate

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/udhr"
)

// A class is a set of texts of one kind.
type class struct {
	name  string
	texts []string
}

// atHand returns text that every machine with Go has, and generated text, with at
// most limit bytes of each class. None of it was used in the fit.
func atHand(limit int) []class {
	root, cache := goEnv("GOROOT"), goEnv("GOMODCACHE")
	read := func(dir string, exts ...string) []string {
		texts, _ := files(dir, limit, exts...)
		return texts
	}
	all := []class{
		{"Go, standard library", read(filepath.Join(root, "src"), ".go")},
		{"assembler", read(filepath.Join(root, "src"), ".s")},
		{"C and headers", read(root, ".c", ".h")},
		{"HTML", append(read(root, ".html"), read(cache, ".html")...)},
		{"Markdown", read(cache, ".md")},
		{"YAML", read(cache, ".yml", ".yaml")},
		{"JSON files", read(cache, ".json")},
		{"checksums", read(cache, "go.sum")},
	}
	return append(all, generated(limit/8)...)
}

// languages returns the texts of the Declaration, with a class for each script.
func languages() []class {
	var all []class
	for language, text := range udhr.Texts() {
		script := udhr.Script(language)
		i := slices.IndexFunc(all, func(c class) bool { return c.name == script })
		if i < 0 {
			i = len(all)
			all = append(all, class{name: script})
		}
		all[i].texts = append(all[i].texts, text)
	}
	return all
}

// directory returns a class for each subdirectory of dir.
func directory(dir string, limit int) ([]class, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []class
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		texts, err := files(filepath.Join(dir, e.Name()), limit)
		if err != nil {
			return nil, err
		}
		all = append(all, class{e.Name(), texts})
	}
	return all, nil
}

// fitted lists how the directories in the module cache begin that hold the
// modules to which the estimator was fitted.
var fitted = []string{"hugo@", "prometheus@", "v2@v2.62.0", "v2@v2.63.0"}

// files reads a random choice of the files below dir whose names end in one of
// exts, up to limit bytes in all and 32 KB of each.
func files(dir string, limit int, exts ...string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && slices.ContainsFunc(fitted, func(m string) bool { return strings.HasPrefix(d.Name(), m) }) {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if len(exts) == 0 || slices.ContainsFunc(exts, func(e string) bool { return strings.HasSuffix(path, e) }) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	var texts []string
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text := string(raw[:min(len(raw), 32<<10)])
		if len(raw) > len(text) {
			text = text[:strings.LastIndexByte(text, '\n')+1]
		}
		if limit -= len(text); limit < 0 {
			break
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "none" // the go command is missing; the directory will not be found
	}
	return strings.TrimSpace(string(out))
}

// generated makes size bytes of each class that has no files. Its generators are
// not those of the text for the fit.
func generated(size int) []class {
	makers := []struct {
		name string
		text func(*rand.Rand) string
	}{
		{"JSON, orders", orders},
		{"JSON, indented", indented},
		{"base64", func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(noise(r, 3000)) }},
		{"hex", func(r *rand.Rand) string { return hex.EncodeToString(noise(r, 3000)) }},
		{"UUIDs", identifiers},
		{"CSV", readings},
		{"log", journal},
		{"diff of numbers", patch},
	}
	var all []class
	for i, m := range makers {
		c := class{name: m.name}
		for n, left := uint64(0), size; left > 0; n++ {
			text := m.text(rand.New(rand.NewPCG(uint64(1000+i), n)))
			left -= len(text)
			c.texts = append(c.texts, text)
		}
		all = append(all, c)
	}
	return all
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

var (
	first  = strings.Fields("Mia Noah Emma Liam Olivia Raj Priya Kenji Aiko Fatima Omar Ingrid Lars Zofia Marek Camila Mateo Chidi Amara Hannah")
	last   = strings.Fields("Johnson Patel Tanaka Okafor Lindqvist Novak Fernandez Rossi Weber Dubois Haddad Petrov Nielsen O'Brien Castillo Moreau")
	goods  = strings.Fields("lamp desk chair monitor keyboard headset backpack kettle blender jacket sneakers notebook charger tripod bicycle helmet tent")
	colors = strings.Fields("black white navy olive crimson teal beige silver walnut charcoal")
	cities = strings.Fields("Denver Austin Oslo Leeds Porto Ghent Osaka Lagos Lima Quito Perth Turin Malmo Seattle Nairobi Gdansk")
	states = strings.Fields("pending shipped delivered cancelled returned processing")
)

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

func order(r *rand.Rand) map[string]any {
	items := make([]any, 1+r.IntN(4))
	for i := range items {
		items[i] = map[string]any{
			"sku": fmt.Sprintf("%s-%05d", strings.ToUpper(pick(r, goods)[:3]), r.IntN(100000)), "title": pick(r, colors) + " " + pick(r, goods),
			"quantity": 1 + r.IntN(5), "unit_price": float64(r.IntN(40000)) / 100, "in_stock": r.IntN(3) > 0,
		}
	}
	return map[string]any{
		"order_id": fmt.Sprintf("#W%07d", r.IntN(10000000)), "status": pick(r, states),
		"customer": map[string]any{"first_name": pick(r, first), "last_name": pick(r, last), "email": strings.ToLower(pick(r, first)) + fmt.Sprint(r.IntN(9999)) + "@example.org"},
		"address":  map[string]any{"street": fmt.Sprintf("%d %s Avenue", r.IntN(999), pick(r, last)), "city": pick(r, cities), "zip": fmt.Sprintf("%05d", r.IntN(100000))},
		"items":    items, "placed_at": fmt.Sprintf("2025-%02d-%02dT%02d:%02d:%02dZ", 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60)), "coupon": nil,
	}
}

func orders(r *rand.Rand) string {
	list := make([]any, 30)
	for i := range list {
		list[i] = order(r)
	}
	out, _ := json.Marshal(list)
	return string(out)
}

func indented(r *rand.Rand) string {
	list := make([]any, 30)
	for i := range list {
		list[i] = order(r)
	}
	out, _ := json.MarshalIndent(list, "", "    ")
	return string(out)
}

func identifiers(r *rand.Rand) string {
	var out strings.Builder
	for range 100 {
		h := hex.EncodeToString(noise(r, 16))
		fmt.Fprintf(&out, "%s-%s-%s-%s-%s\n", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
	}
	return out.String()
}

func readings(r *rand.Rand) string {
	var out strings.Builder
	out.WriteString("sensor,city,day,low,high,humidity,pressure\n")
	for range 200 {
		fmt.Fprintf(&out, "%d,%s,2024-%02d-%02d,%.1f,%.1f,%d,%.2f\n", r.IntN(5000), pick(r, cities), 1+r.IntN(12), 1+r.IntN(28), r.NormFloat64()*10, 15+r.NormFloat64()*10, r.IntN(100), 1000+r.NormFloat64()*15)
	}
	return out.String()
}

func journal(r *rand.Rand) string {
	var out strings.Builder
	for range 100 {
		fmt.Fprintf(&out, "2025/%02d/%02d %02d:%02d:%02d %s: cannot ship %s %s to %s: stock is %d, need %d (attempt %d, %d ms)\n", 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60),
			pick(r, []string{"warning", "error", "notice"}), pick(r, colors), pick(r, goods), pick(r, cities), r.IntN(10), r.IntN(100), r.IntN(5), r.IntN(3000))
	}
	return out.String()
}

func patch(r *rand.Rand) string {
	var out strings.Builder
	for range 60 {
		a, b := pick(r, goods), pick(r, goods)
		fmt.Fprintf(&out, "@@ -%d,3 +%d,3 @@ func ship%s() {\n \tprice := %d\n-\tstock[%q] = %d\n+\tstock[%q] = %d\n", r.IntN(900), r.IntN(900), strings.ToUpper(a[:1])+a[1:], r.IntN(1000), a, r.IntN(99), b, r.IntN(99))
	}
	return out.String()
}
