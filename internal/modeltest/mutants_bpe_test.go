package modeltest_test

// The tests that compare with the golden files and with the slow tokenizer.
const (
	bpeTexts   = "TestSlow$/^/^(hard_cases|mixed_text|random_strings|alike|invalid_UTF-8.*)$"
	bpePattern = "TestEncoding_next|" + bpeTexts
)

// bpeMutants are the mutants of package bpe. Their tests do not need
// tiktoken-go.
var bpeMutants = []mutant{
	{name: "the highest token first", file: "internal/bpe/merge.go", text: "			best = min(best, key)\n", with: "			if best == none || key != none && key > best {\n				best = key\n			}\n", test: bpeTexts},
	{name: "the rightmost pair first", file: "internal/bpe/merge.go", text: "return id<<smallBits | uint32(i)\n", with: "return id<<smallBits | uint32(maxSmall-1-i)\n", test: bpeTexts},
	{name: "a merge that leaves the pair before it", file: "internal/bpe/merge.go", text: "			keys[p] = e.pairKey(ids[p], id, p)\n", with: "			_ = p\n", test: bpeTexts},
	{name: "a long run merged from where it was found", file: "internal/bpe/merge.go", text: "		i = p\n", with: "		_ = p\n", test: bpeTexts},
	{name: "a queue without the pair before a merge", file: "internal/bpe/merge.go", text: "		q.push(l.prev, e.pair(ids[l.prev], id))\n", with: "", test: bpeTexts},
	{name: "a queue with the tokens in another order", file: "internal/bpe/merge.go", text: "bits.TrailingZeros64(q.waiting[at])", with: "63 - bits.LeadingZeros64(q.waiting[at])", test: bpeTexts},
	{name: "a character taken whole beside a token that holds a part of it", file: "internal/bpe/merge.go", text: "id != 0 && whole && wholeRight {", with: "id != 0 && (whole || true) {", test: bpeTexts},
	{name: "contractions before words in one case only", file: "internal/bpe/pattern.go", text: "	switch s[i+1] | 0x20 {\n", with: "	switch s[i+1] {\n", test: bpePattern},
	{name: "no long s in a contraction", file: "internal/bpe/pattern.go", text: "	case 0xC5 | 0x20:\n", with: "	case 0:\n", test: bpePattern},
	{name: "no contraction behind a word", file: "internal/bpe/pattern.go", text: "return end + contraction(s, end)", with: "return end", test: bpePattern},
	{name: "a newline before a word", file: "internal/bpe/pattern.go", text: "	if c&(newline|number) != 0 {\n		return i\n	}\n	// The first", with: "	if c&number != 0 {\n		return i\n	}\n	// The first", test: bpePattern},
	{name: "the front of a word gives nothing back", file: "internal/bpe/pattern.go", text: "	if inBoth >= 0 {", with: "	if inBoth > len(s) {", test: bpePattern},
	{name: "numbers of four digits", file: "internal/bpe/pattern.go", text: "	for range 2 {\n", with: "	for range 3 {\n", test: bpePattern},
	{name: "a slash ends punctuation in cl100k too", file: "internal/bpe/pattern.go", text: "s[end] == '/' && e.caseWords", with: "s[end] == '/'", test: bpePattern},
	{name: "all space before a word", file: "internal/bpe/pattern.go", text: "	case end < len(s) && last > i:\n		return last", with: "	case end < len(s) && last > i:\n		return end", test: bpePattern},
	{name: "a mark alone is no word", file: "internal/bpe/pattern.go", text: "	case c&back != 0:\n		end, _ = caseLetters(s, i)\n		return end\n", with: "", test: bpePattern},
	{name: "a class of the block before", file: "internal/bpe/class.go", text: "block := int(classData[uint32(r)>>7])", with: "block := int(classData[max(uint32(r)>>7, 9)-1])", test: "Test_classOf|" + bpeTexts},
	{name: "three bytes decoded as two", file: "internal/bpe/class.go", text: "c >= 0xC2 && c < 0xE0 && c1&0xC0 == 0x80 {", with: "c >= 0xC2 && c < 0xE4 && c1&0xC0 == 0x80 {", test: "Test_decode|" + bpeTexts},
	{name: "a brace is an ASCII letter", file: "internal/bpe/count.go", text: "(0x80-'z'-1)*lows", with: "(0x80-'z'-2)*lows", test: bpeTexts},
	{name: "a piece remembered by its place", file: "internal/bpe/count.go", text: "	if known[0] == a && known[1]&^countMask == b {\n", with: "	if known[0] != 0 && known[1]&^countMask == b {\n", test: bpeTexts},
	{name: "a long piece remembered by a part of it", file: "internal/bpe/count.go", text: " && key[1] == known[1] && key[2] == known[2] {\n", with: " && key[1] == known[1] {\n", test: bpeTexts},
	{name: "a count that does not fit is remembered", file: "internal/bpe/count.go", text: "	if n <= maxCount {\n		key[3]", with: "	if n > 0 {\n		key[3]", test: bpeTexts},
	{name: "a cut where a token spans two characters", file: "internal/bpe/tables.go", text: "	return t.spans[bit/64]>>(bit&63)&1 != 0 || t.maySplit(left, right)\n", with: "	return t.spans[bit/64]>>(bit&63)&1 != 0\n", test: bpeTexts},
	{name: "a loader without the last batch", file: "internal/bpe/load.go", text: "		if id == 0 || n == batchSize {\n", with: "		if n == batchSize {\n", test: "TestEncoding_Token|" + bpeTexts},
	{name: "a loader that swaps the parts of a token", file: "internal/bpe/load.go", text: "(left<<idBits|right)<<idBits", with: "(right<<idBits|left)<<idBits", test: bpeTexts},
	{name: "a loader of bytes by their id", file: "internal/bpe/load.go", text: "		t.bytes[b] = id\n", with: "		t.bytes[id] = uint32(b)\n", test: bpeTexts},
	{name: "widths that grow one token late", file: "internal/bpe/vocab.go", text: "	if id > 1<<r.width {\n", with: "	if id > 1<<r.width+1 {\n", test: bpeTexts},
	{name: "a token read at another place", file: "internal/bpe/vocab.go", text: "	at += int(id-first) * 2 * width\n", with: "	at += int(id-first) * 2 * (width - 1)\n", test: "TestSlow_Vocabulary"},
}
