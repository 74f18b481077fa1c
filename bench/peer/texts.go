package peer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
)

// textBytes is the length of the texts of [TextOf], and of [Text].
const textBytes = 400

// TextOf returns the text of message i of a conversation whose texts are all different.
// Half of them are prose, a quarter Go, and a quarter JSON. Each has 400 bytes.
func TextOf(i int) string {
	r := rand.New(rand.NewPCG(49, uint64(i)))
	var b strings.Builder
	for b.Len() < textBytes {
		switch i % 4 {
		case 0, 1:
			writeSentence(r, &b)
		case 2:
			writeCode(r, &b)
		case 3:
			writeObject(r, &b)
		}
	}
	return b.String()[:textBytes]
}

var texts struct {
	sync.Mutex
	list []string
}

// Texts returns the texts of messages 0 to n-1, which are made once. Callers must not change
// the list.
func Texts(n int) []string {
	texts.Lock()
	defer texts.Unlock()
	for i := len(texts.list); i < n; i++ {
		texts.list = append(texts.list, TextOf(i))
	}
	return texts.list[:n:n]
}

// Next returns the texts that follow after n messages. After 10,000 they come again.
func Next(n int) func(i int) string {
	const most = 10_000
	list := Texts(n + most)[n:]
	return func(i int) string { return list[i%most] }
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// writeSentence writes a sentence, one in three with a file, an error code or an amount.
func writeSentence(r *rand.Rand, b *strings.Builder) {
	n := 6 + r.IntN(9)
	for i := range n {
		w := pick(r, words)
		if i == 0 {
			w = strings.ToUpper(w[:1]) + w[1:]
		} else {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	switch r.IntN(9) {
	case 0:
		fmt.Fprintf(b, " in internal/%s/%s_%s.go", pick(r, nouns), pick(r, nouns), pick(r, nouns))
	case 1:
		fmt.Fprintf(b, " with E%04d", r.IntN(10_000))
	case 2:
		fmt.Fprintf(b, " for %d.%02d EUR", r.IntN(5_000), r.IntN(100))
	}
	b.WriteString(pick(r, []string{". ", ". ", ". ", "? ", ".\n"}))
}

// writeCode writes lines of a Go function.
func writeCode(r *rand.Rand, b *strings.Builder) {
	name := func() string {
		second := pick(r, nouns)
		return pick(r, nouns) + strings.ToUpper(second[:1]) + second[1:]
	}
	v := name()
	fmt.Fprintf(b, "func (s *%s) %s(ctx context.Context, n int) error {\n", name(), name())
	fmt.Fprintf(b, "\t%s, err := s.%s.%s(ctx, %q, n+%d)\n", v, pick(r, nouns), name(), pick(r, nouns)+"/"+pick(r, nouns), r.IntN(1000))
	fmt.Fprintf(b, "\tif err != nil {\n\t\treturn fmt.Errorf(\"%s %%d: %%w\", n, err)\n\t}\n", pick(r, words))
	fmt.Fprintf(b, "\treturn %s.%s(0x%x)\n}\n\n", v, name(), r.Uint32())
}

// writeObject writes a line of JSON.
func writeObject(r *rand.Rand, b *strings.Builder) {
	fmt.Fprintf(b, `{"id":"%08x-%04x","%s_%s":%d,"path":"/%s/%s/%d","%s":"%s %s","at":"2026-%02d-%02dT%02d:%02d:00Z"}`+"\n",
		r.Uint32(), r.IntN(1<<16), pick(r, nouns), pick(r, nouns), r.IntN(100_000), pick(r, nouns), pick(r, nouns), r.IntN(10_000),
		pick(r, nouns), pick(r, words), pick(r, words), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60))
}

var (
	words = strings.Fields(`the the the a a of of to to and and in in is it that this for with on as are was be not by from at or an can
		we you they which when where how only also then than there each other more most less first last new old same next still
		should must may would could will has have had does did make made read write change keep remove find look test run build
		fail pass call return send get set open close start stop wait check print count move copy name type value file line list
		order part place point case side end time way work word number change request answer reader writer caller before after
		between without within against under over again already always never often soon now later here every some any both few
		many much long short small large slow fast right wrong true false empty full whole clear simple hard easy early late`)
	nouns = strings.Fields(`account address amount archive batch billing branch bucket budget cache catalog channel client cluster column
		config cursor customer database device digest engine event export field filter gateway handler header index invoice job
		journal key label ledger limit lock manager mapper market merge message meter module monitor network node notice offset
		order owner packet parser payment planner policy pool price printer product profile queue quota record region registry
		report request resolver result router scanner schema session shard shipment signal snapshot socket source stock storage
		stream supplier table tenant ticket token tracker trade user vault vendor version volume wallet warehouse worker`)
)
