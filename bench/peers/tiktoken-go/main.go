// Command tiktoken-go counts tokens for bench with tiktoken-go and its offline
// loader.
package main

import (
	"fmt"

	tiktoken "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() { peer.Main(library()) }

const name = "tiktoken-go"

func library() peer.Peer {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	p := peer.Peer{
		Modules: []string{"github.com/pkoukk/tiktoken-go", "github.com/pkoukk/tiktoken-go-loader"},
		Notes: []peer.Note{
			{Table: peer.TableSpeed, Text: "tiktoken-go is measured with EncodeOrdinary, its fastest function that treats special tokens as text. It has to build the list of tokens even if only their number is wanted."},
			{Table: peer.TableLong, Text: "tiktoken-go searches the whole word after each merge, so ten times the text takes about a hundred times as long."},
			{Table: peer.TableSame, Text: "tiktoken-go counts as OpenAI's own code does, except for characters that are newer than the Unicode tables of the Go release it is built with."},
			{Table: peer.TableLoad, Text: "tiktoken-go's loader embeds four vocabularies. Every further call of tiktoken.GetEncoding builds its tables again."},
		},
	}
	for _, vocabulary := range []string{"o200k_base", "cl100k_base"} {
		p.Counters = append(p.Counters, peer.Counter{Name: name, Vocabulary: vocabulary, Quadratic: true, New: func() (func(string) int, error) {
			encoder, err := tiktoken.GetEncoding(vocabulary)
			return func(s string) int { return len(encoder.EncodeOrdinary(s)) }, err
		}})
		p.Programs = append(p.Programs, peer.Program{
			Name:    name + " and its loader, " + vocabulary,
			Imports: []string{`tiktoken "github.com/pkoukk/tiktoken-go"`, `loader "github.com/pkoukk/tiktoken-go-loader"`},
			Load:    fmt.Sprintf(`tiktoken.SetBpeLoader(loader.NewOfflineLoader()); t, err := tiktoken.GetEncoding(%q); check(err); count := func(s string) int { return len(t.EncodeOrdinary(s)) }`, vocabulary),
		})
	}
	return p
}
