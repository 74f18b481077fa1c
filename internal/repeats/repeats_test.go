package repeats

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

const goodSummary = "## Goal\n- Find a flight to Rome for two.\n## Constraints and preferences\n- Window seats only, the user is tall.\n- No flights before 9:00.\n## Done\n- Searched LX 1726 and AZ 573; both have seats.\n## Next steps\n- Ask which of the two to book.\n"

// lines returns n lines, with the number of the line in place of %d.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

func TestOf(t *testing.T) {
	for name, tt := range map[string]struct{ text, words string }{
		"nothing":               {"", ""},
		"short":                 {strings.Repeat("done ", 39), ""},
		"a summary":             {goodSummary, ""},
		"a list":                {lines(200, "- file src/pkg/handler_%d.go: reviewed, no problems found, all of its tests pass"), ""},
		"a table":               {"| file | state |\n|---|---|\n" + lines(200, "| a%d.go | done |"), ""},
		"numbered alike":        {lines(300, "%d. done"), ""},
		"none under each":       {strings.ReplaceAll("## Goal\n- none\n## Constraints\n- none\n## Done\n- none\n## In progress\n- none\n## Blocked\n- none\n## Decisions\n- none\n## Facts\n- none\n", "#", "#"), ""},
		"JSON":                  {`{"files":[` + lines(100, `{"name":"f%d","state":"done","errors":[],"warnings":[],"owner":null},`) + `]}`, ""},
		"zeros":                 {"The vector is [" + strings.Repeat("0, ", 200) + "0]. " + goodSummary, ""},
		"nothing but zeros":     {strings.Repeat("0 ", 1500), "0"},
		"bangs":                 {strings.Repeat("!", 3000), "!"},
		"an emoji":              {strings.Repeat("🔥", 700), "🔥"},
		"bangs at the end":      {goodSummary + strings.Repeat("!", 300), ""},
		"rows of a table":       {"The matrix:\n" + strings.Repeat("| yes | yes | yes |\n", 14) + "\n" + goodSummary[:140], ""},
		"a dump":                {"Dump:\n" + strings.Repeat("ff ff ff ff ff ff ff ff\n", 10) + "That is an erased flash page at 0x8000; the user wants it kept erased and the next page programmed.\nNothing else.", ""},
		"a song":                {"The text must be kept word for word:\n" + strings.Repeat("na na na na\n", 20) + "hey Jude.\nIt goes into song.txt, which the user will open tomorrow, and he asks for chords.", ""},
		"a rule":                {goodSummary + strings.Repeat("=", 400) + "\n" + goodSummary[:140], ""},
		"rules":                 {strings.Repeat("─", 80) + "\n" + goodSummary + strings.Repeat("─", 80), ""},
		"code":                  {goodSummary + strings.Repeat("}\n", 200), ""},
		"Chinese":               {"用户想找一张去罗马的机票，要靠窗的座位，因为他个子高。不要九点以前的航班。已经查了两个航班，都有座位。下一步是问用户订哪一个。他还说预算是每人三百欧元，最好有托运行李，回程在下周日晚上。", ""},
		"a few times":           {strings.Repeat("The user said that he wants to go on with the work on the parser tomorrow. ", 3), ""},
		"a little of the text":  {lines(200, "- fact %d holds") + strings.Repeat("and so on ", 20), ""},
		"the last fifth":        {lines(60, "- fact %d holds") + strings.Repeat("and so on ", 25), "and so on"},
		"a word":                {strings.Repeat("done ", 100), "done"},
		"a word without spaces": {strings.Repeat("done", 100), "done"},
		"a letter":              {strings.Repeat("a", 300), "a"},
		"a phrase":              {strings.Repeat("I will check the file. ", 12), "will check the file. I"},
		"a line":                {strings.Repeat("- The tests pass.\n", 15), "The tests pass. -"},
		"lines":                 {strings.Repeat("- The tests pass.\n- The build is green.\n", 8), "The tests pass. - The build is green. -"},
		"white space varies":    {strings.Repeat("- The tests pass.\n- The tests  pass.\n\n- The\ttests pass. ", 6), "The tests pass. -"},
		"at the end":            {goodSummary + strings.Repeat("and so on ", 20), "and so on"},
		"at the beginning":      {strings.Repeat("and so on ", 20) + goodSummary, ""},
		"most, then more":       {strings.Repeat("and so on ", 100) + goodSummary[:200], "so on and"},
		"in the middle":         {goodSummary[:100] + strings.Repeat(" and so on", 25) + goodSummary[100:], ""},
		"several":               {goodSummary + strings.Repeat("one more ", 30) + strings.Repeat("two more ", 30), "more two"},
		"a long piece":          {strings.Repeat(goodSummary, 4), ""},
		"Chinese again":         {"用户想找一张去罗马的机票。" + strings.Repeat("下一步是问用户。", 20), ""},
		"cut off inside":        {strings.Repeat("The user said that he wants to go on. ", 10)[:370], "user said that he wants to go on. The"},
	} {
		got := Of(tt.text)
		switch name {
		case "a long piece":
			assert.Len(t, got, len(strings.TrimSpace(goodSummary)), name)
		case "Chinese again":
			assert.Contains(t, strings.Repeat("下一步是问用户。", 3), got, name)
			assert.NotEmpty(t, got)
		default:
			assert.Equal(t, tt.words, got, name)
		}
	}
}

// Structured texts of all kinds are not loops, even if their lines are similar.
func TestOf_Structured(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	words := strings.Fields("the user asked for a flight to Rome and window seats only because he is tall so file test build green done failed open closed server client error handler parser token budget limit window 从这里 到河边 有多远 沿着河 走一段路 就到了 الرحلة إلى روما тест готов ошибка файл")
	word := func() string { return words[rnd.IntN(len(words))] }
	phrase := func(n int) string {
		var b strings.Builder
		for range 1 + rnd.IntN(n) {
			b.WriteString(word() + " ")
		}
		return strings.TrimSpace(b.String())
	}
	chinese := []rune("用户想找一张去罗马的机票要靠窗座位因为他个子高不九点以前航班已经查了两都有下步是问订哪")
	kinds := map[string]func(i int, same string) string{
		"list":  func(i int, same string) string { return fmt.Sprintf("- src/%s_%d.go: %s", word(), i, same) },
		"table": func(i int, same string) string { return fmt.Sprintf("| %d | %s | %s | ok | ok |", i, same, word()) },
		"JSON": func(i int, same string) string {
			data, _ := json.Marshal(map[string]any{"id": i, "state": same, "list": []int{0, 0, 0}})
			return string(data) + ","
		},
		"code": func(i int, same string) string {
			return fmt.Sprintf("\t\tif err := step%d(ctx); err != nil {\n\t\t\treturn fmt.Errorf(%q, err)\n\t\t}", i, same)
		},
		"prose": func(int, string) string { return phrase(20) + "." },
		"Chinese": func(int, string) string {
			var b strings.Builder
			for range 5 + rnd.IntN(20) {
				b.WriteRune(chinese[rnd.IntN(len(chinese))])
			}
			return b.String() + "。"
		},
		"heading": func(i int, same string) string { return "## " + phrase(3) + "\n- " + same + "\n- none" },
		"log":     func(i int, same string) string { return fmt.Sprintf("12:%02d:%02d INFO %s", i/60%60, i%60, same) },
		"diff": func(i int, same string) string {
			return fmt.Sprintf("@@ -%d,7 +%d,7 @@\n-\t%s\n+\t%s", i*9, i*9, same, phrase(4))
		},
	}
	names := []string{"list", "table", "JSON", "code", "prose", "Chinese", "heading", "log", "diff"}
	most := long.Or(1500, 10_000)
	for n := range most {
		var b strings.Builder
		from := rnd.IntN(1000)
		for range 1 + rnd.IntN(3) {
			kind, same := kinds[names[rnd.IntN(len(names))]], phrase(12)
			for i := range 1 + rnd.IntN(30) {
				b.WriteString(kind(from+i, same) + "\n")
			}
		}
		require.Empty(t, Of(b.String()), "text %d: %s", n, b.String())
	}
}

// A loop of any length is found at the end of a text, and anywhere if it makes up most of
// the text.
func TestOf_Loops(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 23))
	words := strings.Fields(goodSummary + " 用户 想找 一张 去罗马的 机票 файл готов")
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[rnd.IntN(len(words))] + []string{" ", "\n"}[rnd.IntN(2)])
		}
		return b.String()
	}
	for n := range long.Or(800, 5000) {
		piece := text(1+rnd.IntN(120)) + "a "
		times := max(4, 240/len(piece)+1) + rnd.IntN(20)
		loop := strings.Repeat(piece, times)
		rest := text(rnd.IntN(len(loop) / 8))
		at := []int{0, len(rest), rnd.IntN(len(rest) + 1)}[rnd.IntN(3)]
		if rnd.IntN(2) == 0 {
			rest = text(rnd.IntN(len(loop) * 14))
			at = len(rest)
		}
		for at < len(rest) && rest[at] != ' ' {
			at++ // between words
		}
		whole := rest[:at] + " " + loop + rest[at:]
		require.NotEmpty(t, Of(whole), "text %d: %q %d times in %s", n, piece, times, whole)
	}
}

// The loops are the same as those found by trying all of them.
func TestOf_AsBySlowSearch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 19))
	found := 0
	for n := range 400 {
		var b strings.Builder
		for size := 150 + rnd.IntN(1500); b.Len() < size; {
			piece := make([]byte, 1+rnd.IntN(70))
			for i := range piece {
				piece[i] = "ab-"[rnd.IntN(3)]
			}
			b.WriteString(strings.Repeat(string(piece), 1+rnd.IntN(6)))
		}
		want := slowRepeats(b.String() + " ")
		require.Equal(t, want, Of(b.String()) != "", "text %d: %s", n, b.String())
		if want {
			found++
		}
	}
	assert.Greater(t, found, 50)
	assert.Less(t, found, 350)
}

// Two loops that are long enough only with the text after the middle, or before it.
func TestOf_AroundTheMiddle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 23))
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + rnd.IntN(26))
		}
		return string(b)
	}
	long, short := strings.Repeat(letters(120), 4), strings.Repeat(letters(40), 11)
	for _, s := range []string{
		letters(30) + long + short + letters(50),
		letters(50) + short + long + letters(30),
	} {
		require.True(t, slowRepeats(s+" "))
		assert.NotEmpty(t, Of(s))
	}
}

func slowRepeats(s string) bool {
	atEnd := false
	looped := make([]bool, len(s))
	for period := 1; period <= len(s)/4; period++ {
		for from := 0; from+period < len(s); {
			to := from + period
			for to < len(s) && s[to] == s[to-period] {
				to++
			}
			if n := to - from; n >= 200 && n >= len(s)/16 && n >= 4*period {
				atEnd = atEnd || to >= len(s)-8 && strings.ContainsAny(s[from:from+period], "ab")
				for i := from; i < to; i++ {
					looped[i] = true
				}
			}
			from = max(from+1, to-period+1)
		}
	}
	n := 0
	for _, is := range looped {
		if is {
			n++
		}
	}
	return atEnd || n >= len(s)*4/5
}

// The memory is used again for each part of a text.
func TestOf_Allocations(t *testing.T) {
	for _, n := range []int{2_000, 200_000} {
		text := lines(n/40, "- file %d: reviewed, no problems found")
		if allocs := testing.AllocsPerRun(3, func() { Of(text) }); allocs > 16 {
			t.Errorf("%v allocations for %d bytes, want at most 16", allocs, len(text))
		}
	}
}

func BenchmarkOf(b *testing.B) {
	for _, n := range []int{2_000, 20_000, 200_000} {
		text := lines(n/40, "- file %d: reviewed, no problems found")
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Of(text)
			}
		})
	}
}
