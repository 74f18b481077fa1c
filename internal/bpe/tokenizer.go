package bpe

// A Tokenizer counts with an encoding. It does not hold the encoding, so no encoding is loaded
// before the first count.
type Tokenizer uint8

// The tokenizers, by their encodings.
const (
	TokenizerOfCl100k Tokenizer = iota
	TokenizerOfO200k
)

// Name returns the name of the encoding.
func (t Tokenizer) Name() string {
	return [...]string{TokenizerOfCl100k: "cl100k", TokenizerOfO200k: "o200k"}[t]
}

// CountTokens returns the number of tokens in text.
func (t Tokenizer) CountTokens(text string) int {
	if t == TokenizerOfO200k {
		return O200k().Count(text)
	}
	return Cl100k().Count(text)
}
