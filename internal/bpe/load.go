package bpe

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// load fills the tables from a vocabulary file.
func (t *tables) load(data string) {
	t.vocab = vocabulary(data)
	size := bits.Len(uint(t.vocab.len())) // 1<<size is 1.3 times the tokens, for both encodings
	t.loadPairs(size)
	t.loadTokens(size)
}

// loadPairs fills the table of mergeable pairs.
func (t *tables) loadPairs(size int) {
	t.pairs, t.pairShift = make([]uint64, 1<<size), 64-size
	t.mayPair = make([]uint64, 1<<(size+3-6))
	touch(t.pairs)
	touch(t.mayPair)
	var batch [batchSize]uint64
	n := 0
	for r := t.vocab.reader(); ; n++ {
		id, left, right := r.next()
		if id == 0 || n == batchSize {
			t.addPairs(batch[:n])
			n = 0
		}
		if id == 0 {
			return
		}
		batch[n] = (left<<idBits|right)<<idBits | uint64(id)
	}
}

// batchSize is how many entries are put into a hash table in one loop. Each
// entry is in another place in memory. In a loop that does nothing else, the
// processor fetches many of these places at once, which takes about a quarter
// off the loading time.
const batchSize = 128

func (t *tables) addPairs(entries []uint64) {
	table, may, shift := t.pairs, t.mayPair, uint(t.pairShift&63)
	mask := uint64(len(table) - 1)
	for _, entry := range entries {
		hash := entry >> idBits * hashFactor
		bit := hash >> ((shift - 3) & 63)
		may[bit/64] |= 1 << (bit & 63)
		i := hash >> shift
		for table[i&mask] != 0 {
			i++
		}
		table[i&mask] = entry
	}
}

// A loadedToken holds what loading needs of a token: its first 8 bytes, with
// the first one lowest, and its last 8 bytes, with the last one highest.
type loadedToken struct{ head, tail uint64 }

// The size of a loaded token is at most longSize: longer tokens count as that
// long. The bit isText, set in the same byte, says that the token is valid
// UTF-8.
const (
	longSize = maxKey + 1
	isText   = 0x80
)

// A tokenLoader fills the tables of whole tokens. It collects the entries of
// the hash tables in batches; see batchSize.
type tokenLoader struct {
	*tables
	tokens       []loadedToken
	sizes        []uint8
	shorts       [batchSize]uint64
	mids         [batchSize][2]uint64
	nShort, nMid int
}

func (t *tables) loadTokens(size int) {
	t.short, t.shortShift = make([]uint64, 1<<size), 64-size
	t.mid, t.midShift = make([][2]uint64, 1<<(size-1)), 64-size+1
	t.chars.init()
	touch(t.short)
	touch(t.mid)

	n := t.vocab.len()
	l := tokenLoader{tables: t, tokens: make([]loadedToken, n), sizes: make([]uint8, n)}
	for id := range uint32(256) {
		b := t.vocab.byteOf(id)
		t.bytes[b] = id
		l.tokens[id] = loadedToken{head: uint64(b), tail: uint64(b) << 56}
		l.sizes[id] = 1
		if b < utf8.RuneSelf {
			l.sizes[id] |= isText
			l.addShort(uint64(b) | 1<<56)
		}
	}
	r := t.vocab.reader()
	for id, left, right := r.next(); id != 0; id, left, right = r.next() {
		l.add(id, left, right)
	}
	l.flushShorts()
	l.flushMids()
}

// add adds a token that two other tokens merge to.
func (l *tokenLoader) add(id uint32, leftID, rightID uint64) {
	left, right := &l.tokens[leftID], &l.tokens[rightID]
	leftSize, rightSize := l.sizes[leftID], l.sizes[rightID]
	text := leftSize & rightSize & isText
	leftSize &^= isText
	rightSize &^= isText
	size := min(leftSize+rightSize, longSize)
	tok := loadedToken{
		head: left.head | right.head<<(8*uint(leftSize)),
		tail: right.tail | left.tail>>(8*uint(rightSize)),
	}
	l.tokens[id] = tok
	if first := byte(right.head); first|byte(left.tail>>56) >= utf8.RuneSelf {
		if first&0xC0 != 0x80 {
			l.addSpan(left.tail, leftSize, right.head, rightSize)
		}
		if text == 0 && tok.isText(size) {
			text = isText
		}
	}
	l.sizes[id] = size | text
	switch {
	case text == 0: // must not be found: invalid bytes of a text count as U+FFFD
	case size < 8:
		l.addShort(tok.head | uint64(size)<<56)
		switch {
		case tok.head&0x80 != 0:
			l.addChar(tok.head, id)
		case size == 2 && tok.head&0x8000 == 0:
			l.ascii[tok.head&0x7F<<7|tok.head>>8] = id
		}
	case size <= maxKey:
		l.addMid(tok.head, tok.tail>>(8*uint(16-size))|uint64(size)<<56)
	}
}

// isText reports whether a token of up to 15 bytes is valid UTF-8. It reports
// false for longer ones, which are in no table of whole tokens.
func (tok *loadedToken) isText(size uint8) bool {
	if size > maxKey {
		return false
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], tok.head)
	if size > 8 {
		binary.LittleEndian.PutUint64(b[8:], tok.tail>>(8*uint(16-size)))
	}
	return utf8.Valid(b[:size])
}

func (l *tokenLoader) addShort(key uint64) {
	if l.nShort == batchSize {
		l.flushShorts()
	}
	l.shorts[l.nShort] = key
	l.nShort++
}

func (l *tokenLoader) addMid(head, tail uint64) {
	if l.nMid == batchSize {
		l.flushMids()
	}
	l.mids[l.nMid] = [2]uint64{head, tail}
	l.nMid++
}

func (l *tokenLoader) flushShorts() {
	table, shift := l.short, uint(l.shortShift&63)
	mask := uint64(len(table) - 1)
	keys := l.shorts[:l.nShort]
	l.nShort = 0
	for _, key := range keys {
		i := key * hashFactor >> shift
		for table[i&mask] != 0 {
			i++
		}
		table[i&mask] = key
	}
}

func (l *tokenLoader) flushMids() {
	table, shift := l.mid, uint(l.midShift&63)
	mask := uint64(len(table) - 1)
	keys := l.mids[:l.nMid]
	l.nMid = 0
	for _, key := range keys {
		i := hashMid(key[0], key[1]) >> shift
		for table[i&mask][1] != 0 {
			i++
		}
		table[i&mask] = key
	}
}

// addSpan records that a token spans the last character of its left part and
// the first character of its right part, or fragments of them. It takes the
// last 8 bytes of the left part, the first 8 bytes of the right part, and their
// sizes.
func (t *tables) addSpan(tail uint64, leftSize uint8, head uint64, rightSize uint8) {
	left, leftWhole := lastChar(tail, leftSize)
	right, rightWhole := firstChar(head, rightSize)
	switch {
	case !leftWhole:
		last, lead := tail>>56, byte(head)
		t.endSpans[last][lead>>6] |= 1 << (lead & 63)
	case !rightWhole:
		bit := leadHash(left, byte(head))
		t.leadSpans[bit/64] |= 1 << (bit & 63)
	default:
		bit := spanHash(left, right)
		t.spans[bit/64] |= 1 << (bit & 63)
	}
}

// firstChar returns the first character of a token, given the token's first 8
// bytes, and whether the token holds all of that character.
func firstChar(head uint64, size uint8) (r rune, whole bool) {
	b0, b1, b2 := byte(head), byte(head>>8), byte(head>>16)
	switch {
	case b0 < utf8.RuneSelf:
		return rune(b0), true
	case b0 > 0xE0 && b0 < 0xED && b1&0xC0 == 0x80 && b2&0xC0 == 0x80:
		return rune(b0&0x0F)<<12 | rune(b1&0x3F)<<6 | rune(b2&0x3F), true
	case b0 >= 0xC2 && b0 < 0xE0 && b1&0xC0 == 0x80:
		return rune(b0&0x1F)<<6 | rune(b1&0x3F), true
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], head)
	r, n := utf8.DecodeRune(b[:min(size, 8)])
	return r, r != utf8.RuneError || n > 1
}

// lastChar returns the last character of a token, given the token's last 8
// bytes, and whether the token holds all of that character.
func lastChar(tail uint64, size uint8) (r rune, whole bool) {
	b0, b1, b2 := byte(tail>>40), byte(tail>>48), byte(tail>>56)
	switch {
	case b2 < utf8.RuneSelf:
		return rune(b2), true
	case b0 > 0xE0 && b0 < 0xED && b1&0xC0 == 0x80 && b2&0xC0 == 0x80:
		return rune(b0&0x0F)<<12 | rune(b1&0x3F)<<6 | rune(b2&0x3F), true
	case b1 >= 0xC2 && b1 < 0xE0 && b2&0xC0 == 0x80:
		return rune(b1&0x1F)<<6 | rune(b2&0x3F), true
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], tail)
	r, n := utf8.DecodeLastRune(b[8-min(size, 8):])
	return r, r != utf8.RuneError || n > 1
}

// addChar records a token of up to 7 bytes of valid UTF-8 that begins beyond
// ASCII, if it is a single character.
func (t *tables) addChar(head uint64, id uint32) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], head)
	if r, size := utf8.DecodeRune(b[:]); head>>(8*uint(size)) == 0 {
		t.chars.set(r, id)
	}
}

const pageSize = 4096

// touch writes to each page of a new table. Filling a hash table reads an entry
// before it writes it, and the operating system maps a page that is read first
// twice: to a shared page of zeros when it is read, and to memory of its own
// when it is written. Writing first saves 1,600 of 4,200 page faults when
// o200k is loaded, and 8 to 12 percent of the CPU time of a first load.
func touch[T any](table []T) {
	var zero T
	for i := 0; i < len(table); i += pageSize / int(unsafe.Sizeof(zero)) {
		table[i] = zero
	}
}
