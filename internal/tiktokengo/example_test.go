//go:build tiktoken

package tiktokengo_test

import (
	"errors"
	"fmt"
	"path"

	"github.com/pkoukk/tiktoken-go"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// offline loads the vocabulary that this module embeds into tiktoken-go, so that
// the example needs no network. Any other loader would do. Without one
// tiktoken-go downloads the vocabulary.
type offline struct{}

func (offline) LoadTiktokenBpe(url string) (map[string]int, error) {
	if path.Base(url) != "cl100k_base.tiktoken" {
		return nil, errors.New("unknown vocabulary: " + url)
	}
	ranks := map[string]int{}
	for id := uint32(0); ; id++ {
		token, ok := bpe.Cl100k().Token(id)
		if !ok {
			return ranks, nil
		}
		ranks[token] = int(id)
	}
}

// An encoder of tiktoken-go becomes a Tokenizer in one line.
func Example() {
	tiktoken.SetBpeLoader(offline{})
	enc, err := tiktoken.GetEncoding(tiktoken.MODEL_CL100K_BASE)
	if err != nil {
		fmt.Println(err)
		return
	}
	tokenizer := convo.TokenizerFunc(func(text string) int { return len(enc.EncodeOrdinary(text)) })

	h, _ := convo.New(&convo.Options{Tokenizer: tokenizer, Overheads: convo.Overheads{Message: -1}})
	h.Append(convo.User("It's exact, isn't it?"))
	fmt.Println(tokenizer.CountTokens("It's exact, isn't it?"), h.Tokens().Tokens)
	// Output:
	// 8 8
}
