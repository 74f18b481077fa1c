package convo

import "unicode/utf8"

// Heuristic is the default [Tokenizer]: a guess at what o200k, the tokenizer of
// GPT-4o and later, makes of a text, from the kinds of characters in it. It
// needs no vocabulary, makes one pass and does not allocate. Text that is not
// empty counts at least 1.
//
// Over messages of some hundred tokens it is mostly within a tenth on English,
// Chinese and Go, a sixth too high on JSON and other code, a quarter too high
// on hex and UUIDs, and off by up to a quarter on other scripts. Over whole
// conversations that evens out; usage reports correct the rest, see
// [History.RecordUsage].
type Heuristic struct{}

// Weights, in 256ths of a token. A word costs one token, more when it is long;
// case changes and digits inside break it, as in base64; digits go by threes.
const (
	one          = 256
	wordCost     = 235
	afterAccent  = 100
	longLetter   = 22 // each letter past 4
	longerLetter = 60 // each letter past 9, beside longLetter
	upperLetter  = 20
	caseChange   = 210 // a lower letter, then an upper one
	mixChange    = 90  // a letter, then a digit, or the reverse
	digitGroup   = 290
	punctCost    = 180
	punctMore    = 45
	newlineCost  = 200
	spacesCost   = 290
	tabsCost     = 280
)

// longRun is from where on a run of one byte is priced apart.
const longRun = 16

// CountTokens estimates the tokens of text.
func (Heuristic) CountTokens(text string) int {
	if text == "" {
		return 0
	}
	var sum int64
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			sum += runeCost(r)
			i += size
			continue
		}
		if i+longRun <= len(text) && text[i+1] == c {
			if n := equalRun(text[i:]); n >= longRun {
				sum += longRunCost(c, n)
				i += n
				continue
			}
		}
		kind := kinds[c]
		j := i + 1
		switch kind {
		case letterKind:
			upper := c <= 'Z'
			uppers, changes := 0, 0
			if upper {
				uppers = 1
			}
			for j < len(text) && kinds[text[j]] == letterKind {
				now := text[j] <= 'Z'
				if now {
					uppers++
					if !upper {
						changes++
					}
				}
				upper = now
				j++
			}
			n := j - i
			if i >= 2 && text[i-2] >= 0xC3 && text[i-2] <= 0xC9 {
				sum -= wordCost - afterAccent // an accented letter stands before: the same word
			}
			sum += wordCost + longLetter*int64(max(n-4, 0)) + longerLetter*int64(max(n-9, 0)) + caseChange*int64(changes)
			if uppers > 1 {
				sum += upperLetter * int64(uppers)
			}
			if i > 0 && kinds[text[i-1]] == digitKind {
				sum += mixChange
			}
		case digitKind:
			for j < len(text) && kinds[text[j]] == digitKind {
				j++
			}
			sum += digitGroup * int64((j-i+2)/3)
			if i > 0 && kinds[text[i-1]] == letterKind {
				sum += mixChange
			}
		case spaceKind:
			for j < len(text) && text[j] == c {
				j++
			}
			if j-i > 1 {
				sum += spacesCost
			}
		case newlineKind:
			for j < len(text) && kinds[text[j]] == newlineKind {
				j++
			}
			sum += newlineCost
		case tabKind:
			for j < len(text) && text[j] == c {
				j++
			}
			sum += tabsCost
		case punctKind:
			for j < len(text) && kinds[text[j]] == punctKind {
				j++
			}
			sum += punctCost + punctMore*int64(j-i-1)
		default:
			sum += one
		}
		i = j
	}
	return int(max((sum+one/2)/one, 1))
}

// Kinds of ASCII bytes.
const (
	controlKind = iota
	letterKind
	digitKind
	spaceKind
	newlineKind
	tabKind
	punctKind
)

var kinds = func() (k [256]uint8) {
	for c := range k {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			k[c] = letterKind
		case c >= '0' && c <= '9':
			k[c] = digitKind
		case c == ' ':
			k[c] = spaceKind
		case c == '\n' || c == '\r':
			k[c] = newlineKind
		case c == '\t':
			k[c] = tabKind
		case c > ' ' && c < 0x7f:
			k[c] = punctKind
		}
	}
	return k
}()

// equalRun is how often the first byte stands at the beginning of text.
func equalRun(text string) int {
	n := 1
	for n < len(text) && text[n] == text[0] {
		n++
	}
	return n
}

// longRunCost prices a long run of one byte: vocabularies hold whole runs.
func longRunCost(c byte, n int) int64 {
	perToken := int64(8)
	switch {
	case kinds[c] == newlineKind || kinds[c] == tabKind:
		perToken = 16
	case c == ' ':
		perToken = 128
	case kinds[c] == digitKind:
		perToken = 3
	case kinds[c] == punctKind:
		perToken = 48
	case kinds[c] == controlKind:
		perToken = 1
	}
	return one + one*int64(n)/perToken
}

// runeCost prices a character beyond ASCII, by its script.
func runeCost(r rune) int64 {
	switch {
	case r == utf8.RuneError: // invalid
		return 256
	case r < 0x250: // accented Latin
		return 105
	case r < 0x370: // phonetic, combining
		return 256
	case r < 0x530: // Greek, Cyrillic
		return 88
	case r < 0x590: // Armenian
		return 200
	case r < 0x600: // Hebrew
		return 130
	case r < 0x700: // Arabic
		return 100
	case r < 0x900: // Syriac and others
		return 300
	case r < 0xd80: // the scripts of India
		return 118
	case r < 0xe00: // Sinhala
		return 300
	case r < 0xe80: // Thai
		return 120
	case r < 0x10a0: // Lao, Tibetan, Burmese
		return 190
	case r < 0x1100: // Georgian
		return 120
	case r < 0x1200: // Hangul letters
		return 200
	case r < 0x1800: // Ethiopic to Khmer
		return 150
	case r < 0x2000: // Mongolian to polytonic Greek
		return 200
	case r < 0x3040: // symbols, CJK punctuation
		return 200
	case r < 0x3100: // kana
		return 170
	case r < 0x3400: // CJK compatibility
		return 300
	case r < 0x4e00: // Han extension A
		return 700
	case r < 0xa000: // Han
		return 205
	case r < 0xac00: // Yi and others
		return 500
	case r < 0xd7b0: // Hangul
		return 178
	case r < 0x10000: // full width and others
		return 220
	case r < 0x20000: // emoji and others
		return 560
	default: // Han extension B and on
		return 1000
	}
}
