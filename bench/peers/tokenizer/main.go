// Command tokenizer counts tokens for bench with tiktoken-go/tokenizer.
package main

import (
	"fmt"

	"github.com/tiktoken-go/tokenizer"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() { peer.Main(library()) }

const name = "tiktoken-go/tokenizer"

func library() peer.Peer {
	p := peer.Peer{
		Modules: []string{"github.com/tiktoken-go/tokenizer"},
		Notes: []peer.Note{
			{Table: peer.TableSpeed, Text: "tiktoken-go/tokenizer is measured with Count, its fastest function that treats special tokens as text."},
			{Table: peer.TableSame, Text: "tiktoken-go/tokenizer does not count U+007F, and splits some runs of white space differently."},
			{Table: peer.TableLoad, Text: "tiktoken-go/tokenizer contains all its vocabularies as Go source. A program that uses its codec package contains only those that it names. It loads as fast as convo or faster, because its vocabulary is compiled in the form in which it is used; that also makes it large. convo builds its tables from a compact form. Both keep what they have loaded."},
		},
	}
	for _, vocabulary := range []string{"o200k_base", "cl100k_base"} {
		p.Counters = append(p.Counters, peer.Counter{Name: name, Vocabulary: vocabulary, New: func() (func(string) int, error) {
			codec, err := tokenizer.Get(tokenizer.Encoding(vocabulary))
			return func(s string) int {
				n, err := codec.Count(s)
				if err != nil {
					return -1
				}
				return n
			}, err
		}})
		p.Programs = append(p.Programs, peer.Program{
			Name:    name + ", " + vocabulary,
			Imports: []string{`"github.com/tiktoken-go/tokenizer"`},
			Load:    fmt.Sprintf(`t, err := tokenizer.Get(%q); check(err); count := func(s string) int { n, err := t.Count(s); check(err); return n }`, vocabulary),
		})
	}
	p.Programs = append(p.Programs, peer.Program{
		Name:    name + "/codec, o200k_base alone",
		Imports: []string{`"github.com/tiktoken-go/tokenizer/codec"`},
		Load:    `t := codec.NewO200kBase(); count := func(s string) int { n, err := t.Count(s); check(err); return n }`,
	})
	return p
}
