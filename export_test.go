package convo

import (
	"reflect"
	"unicode"
)

// FiguresOf returns the numbers of tokens that an error names.
func FiguresOf(err error) (limit, prompt, output, total int) {
	f := figuresOf(err)
	return f.limit, f.prompt, f.output, f.total
}

// Drafts returns how many records of h may have been stored or not.
func Drafts(h *History) int { return len(h.log.drafts) }

// SetStore makes another Store that of h.
func SetStore(h *History, s Store) { h.log.store = s }

// Repeated returns what a text repeats.
var Repeated = repeated

// RecordFields returns the names of the fields that the Data of a record may have.
func RecordFields() (names []string) {
	for f := range reflect.TypeFor[recordJSON]().Fields() {
		var name []rune
		for _, c := range f.Name {
			if unicode.IsUpper(c) {
				name = append(name, '_')
			}
			name = append(name, unicode.ToLower(c))
		}
		names = append(names, string(name))
	}
	return names
}
