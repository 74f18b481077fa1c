package convogenkit_test

import (
	"context"
	"log"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/seed-c1b73e60/convo"
	convogenkit "github.com/seed-c1b73e60/convo/adapters/genkit"
	"github.com/seed-c1b73e60/convo/mirror"
)

func ExampleNew() {
	ctx := context.Background()
	g := genkit.Init(ctx)
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 200_000, Reserve: 8_000}})
	if err != nil {
		log.Fatal(err)
	}
	w := convogenkit.New(mirror.New(h, convogenkit.Codec()))
	answer, err := genkit.Generate(ctx, g, ai.WithModelName("anthropic/claude-opus-5-5"), ai.WithPrompt("Hello"), ai.WithUse(w.Middleware()))
	if err != nil {
		log.Fatal(err)
	}
	log.Print(answer.Text())
}
