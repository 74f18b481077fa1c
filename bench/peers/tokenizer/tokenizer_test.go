package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/texts"
)

// golden holds the counts of OpenAI's own code for four texts and for the
// oddities. This tokenizer counts the first three oddities differently, as its
// notes say.
var golden = map[string]struct{ plain, odd []int }{
	"o200k_base":  {[]int{10, 125, 9, 900}, []int{3, 3, 3, 3, 7}},
	"cl100k_base": {[]int{10, 125, 14, 900}, []int{3, 3, 3, 3, 7}},
}

var plain = []string{
	"The quick brown fox jumps over the lazy dog.",
	strings.Repeat("a", 1000),
	"Каждый новый пользователь получает доступ к системе.",
	strings.Repeat("if err != nil {\n\treturn err\n}\n", 100),
}

func TestCounters(t *testing.T) {
	for _, c := range library().Counters {
		t.Run(c.Vocabulary, func(t *testing.T) {
			count, err := c.New()
			require.NoError(t, err)
			want := golden[c.Vocabulary]
			require.Len(t, want.plain, len(plain))
			for i, text := range plain {
				assert.Equal(t, want.plain[i], count(text), "%.40q", text)
			}
			require.Len(t, want.odd, len(texts.Oddities))
			for i, o := range texts.Oddities {
				if i < 3 {
					assert.NotEqual(t, want.odd[i], count(o.Text), o.Name)
				} else {
					assert.Equal(t, want.odd[i], count(o.Text), o.Name)
				}
			}
		})
	}
	assert.Len(t, library().Counters, len(golden))
}
