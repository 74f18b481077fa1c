// Pictures draws the pictures of the documentation, docs/img/*.svg, and writes the figures that
// README.md quotes, from the results that are in this module next to the code that measured them:
//
//	go run ./pictures                       # all
//	go run ./pictures life keep             # these
//	go run ./pictures -measure life         # measures first
//	go run ./pictures -measure readme speed # all that depends on the speed of the machine
//
// Run it in the directory of the module. Drawing needs nothing but the results, and gives
// the same bytes each time.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/compaction"
	"github.com/seed-c1b73e60/convo/bench/cost"
	"github.com/seed-c1b73e60/convo/bench/estimate"
	"github.com/seed-c1b73e60/convo/bench/keep"
	"github.com/seed-c1b73e60/convo/bench/keep/facts"
	"github.com/seed-c1b73e60/convo/bench/life"
	"github.com/seed-c1b73e60/convo/bench/readme"
	"github.com/seed-c1b73e60/convo/bench/speed"
)

// A picture is docs/img/NAME.svg, drawn from NAME/NAME.json in the folder, by default that of the
// module. One that is only quoted has no image.
type picture struct {
	name    string
	folder  string
	measure func() (any, error)
	draw    func(results []byte) ([]byte, error)
	quotes  func(results []byte) ([]readme.Quote, error)
}

// of returns the picture of a package.
func of[T any](name string, measure func() (T, error), draw func(T) []byte) picture {
	return picture{
		name:    name,
		measure: func() (any, error) { return measure() },
		draw: func(results []byte) ([]byte, error) {
			var all T
			if err := json.Unmarshal(results, &all); err != nil {
				return nil, err
			}
			return draw(all), nil
		},
	}
}

// in returns the picture with the results in a folder.
func (p picture) in(folder string) picture {
	p.folder = folder
	return p
}

// quoted is what README.md quotes.
var quoted = picture{
	name:    "readme",
	measure: func() (any, error) { return readme.Measure() },
	quotes: func(results []byte) ([]readme.Quote, error) {
		var all readme.Results
		err := json.Unmarshal(results, &all)
		return all.Quotes(), err
	},
}

var pictures = []picture{
	of("compaction", compaction.Measure, compaction.Draw),
	of("cost", cost.Measure, cost.Draw),
	of("estimate", estimate.Measure, estimate.Draw),
	of("facts", facts.Measure, facts.Draw).in("keep"),
	of("keep", keep.Measure, keep.Draw),
	of("life", life.Measure, life.Draw),
	of("speed", speed.Measure, speed.Draw),
	quoted,
}

// results and image are the files of a picture, below the directory of the module.
func (p picture) results() string { return filepath.Join(p.folder, p.name, p.name+".json") }
func (p picture) image() string   { return filepath.Join("..", "docs", "img", p.name+".svg") }

func main() {
	measure := flag.Bool("measure", false, "measure again")
	flag.Parse()
	if err := run(*measure, flag.Args()); err != nil {
		log.Fatal("pictures: ", err)
	}
}

func run(measure bool, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(pictures, func(p picture) bool { return p.name == name }) {
			return fmt.Errorf("no picture is named %q", name)
		}
	}
	for _, p := range pictures {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		if err := p.write(measure); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (p picture) write(measure bool) error {
	if measure {
		all, err := p.measure()
		if err != nil {
			return err
		}
		data, err := format(all)
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.results(), data, 0o644); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(p.results())
	if err != nil {
		return err
	}
	if p.draw == nil {
		return p.quote(data)
	}
	image, err := p.draw(data)
	if err != nil {
		return err
	}
	return os.WriteFile(p.image(), image, 0o644)
}

// quote writes what pages say of the results.
func (p picture) quote(results []byte) error {
	all, err := p.quotes(results)
	if err != nil {
		return err
	}
	for _, q := range all {
		page, err := os.ReadFile(q.Page)
		if err != nil {
			return err
		}
		if n := len(q.At.FindAllIndex(page, -1)); n != 1 {
			return fmt.Errorf("%s has %d places for %q, want one", q.Page, n, q.Text)
		}
		if err := os.WriteFile(q.Page, q.At.ReplaceAllLiteral(page, []byte(q.Text)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// format returns JSON in which each list of numbers, and each object of a list of objects,
// is a line, so that a change of the results can be read.
func format(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return []byte(strings.NewReplacer("},{", "},\n{", "],[", "],\n[").Replace(string(data)) + "\n"), nil
}
