// Package peer is shared by bench and the programs in bench/peers. It measures,
// defines the work to be measured, and defines the protocol between bench and
// the programs. It imports the standard library alone, so that no program gets
// modules that it does not need.
//
// A peer is a program for another library. It calls [Main] with a [Peer] that
// describes what the library can do. Bench builds the program, asks for that
// description, and then has it do the work round by round.
package peer

import (
	"runtime/debug"
	"slices"
)

// A Peer describes what a library can do.
type Peer struct {
	Modules  []string // module paths whose versions are printed
	Cells    []Cell
	Counters []Counter
	Programs []Program
	Talks    []Keeper // for the table of what can still be sent after a reduction
	Costs    []Keeper // for the tables of what a conversation costs
	Notes    []Note
}

// A Table is a table in which a peer can have rows or columns.
type Table string

const (
	TableAppend Table = "Append"
	TableCheck  Table = "Check, nothing to do"
	TableStep   Table = "A step at the limit"
	TableTrim   Table = "Trim to half"
	TableRead   Table = "Snapshot and read"
	TablePairs  Table = "Can what is left be sent?"
	TableSpeed  Table = "throughput"
	TableCalls  Table = "small calls"
	TableLong   Table = "one letter repeated"
	TableSame   Table = "same counts?"
	TableLoad   Table = "Loading a vocabulary"
	TableSave   Table = "A turn saved, without a sync"

	TableMany    Table = "A turn of each of many conversations"
	TableStream  Table = "A streamed request"
	TableAgent   Table = "A turn of a long agent"
	TableCommits Table = "Two commits" // of the programs below compare
)

// Tables lists all tables.
var Tables = []Table{
	TableAppend, TableCheck, TableStep, TableTrim, TableRead, TablePairs,
	TableSpeed, TableCalls, TableLong, TableSame, TableLoad, TableSave, TableMany, TableStream, TableAgent, TableCommits,
}

// A Cell is a row of one of the tables TableAppend to TableRead, or of TableSave.
type Cell struct {
	Table    Table            `json:"table"`
	Name     string           `json:"name"`
	QuickMax int              `json:"quick_max,omitempty"` // the highest n of a quick run; 0 means no limit of its own
	New      func(n int) Case `json:"-"`
}

// A Counter counts tokens by one vocabulary.
type Counter struct {
	Name       string `json:"name"`
	Vocabulary string `json:"vocabulary"`          // "o200k_base", "cl100k_base", or a vocabulary of its own
	Quadratic  bool   `json:"quadratic,omitempty"` // takes time quadratic in the length of a word
	// New loads the vocabulary and returns a function that counts the tokens of
	// a text, or returns -1 if it cannot.
	New func() (func(string) int, error) `json:"-"`
}

// A Program is a separate program that loads a vocabulary, to measure what that
// costs. It is built in the directory of the peer.
type Program struct {
	Name    string   `json:"name"`
	Imports []string `json:"imports"` // as written in the source, with quotes
	Load    string   `json:"load"`    // Go code that defines count, a func(string) int, and may call check(error)
}

// A Keeper is a way of a library to keep a conversation within a limit.
type Keeper struct {
	Name    string                  `json:"name"`
	NoTools bool                    `json:"no_tools,omitempty"` // supports only questions and answers
	New     func(Job) (Keep, error) `json:"-"`
}

// A Note is printed below a table.
type Note struct {
	Table Table  `json:"table"`
	Text  string `json:"text"`
}

// A Module is a module that a program contains.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// An About is what a program reports about itself.
type About struct {
	Modules  []Module  `json:"modules,omitempty"` // those named in Peer.Modules
	Others   []Module  `json:"others,omitempty"`
	Cells    []Cell    `json:"cells,omitempty"`
	Counters []Counter `json:"counters,omitempty"`
	Programs []Program `json:"programs,omitempty"`
	Talks    []Keeper  `json:"talks,omitempty"`
	Costs    []Keeper  `json:"costs,omitempty"`
	Notes    []Note    `json:"notes,omitempty"`
}

// about describes the peer and the modules of this program.
func (p Peer) about() *About {
	a := &About{Cells: p.Cells, Counters: p.Counters, Programs: p.Programs, Talks: p.Talks, Costs: p.Costs, Notes: p.Notes}
	a.Modules, a.Others = Modules(p.Modules)
	return a
}

// Modules returns the modules that this program is built from: the named ones in
// the order of their names in the list, and the others. Modules of this repository
// have no version and are left out.
func Modules(named []string) (chosen, others []Module) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, nil
	}
	for _, path := range named {
		if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path }); i >= 0 {
			chosen = append(chosen, Module{path, info.Deps[i].Version})
		}
	}
	for _, m := range info.Deps {
		if m.Replace == nil && !slices.Contains(named, m.Path) {
			others = append(others, Module{m.Path, m.Version})
		}
	}
	return chosen, others
}
