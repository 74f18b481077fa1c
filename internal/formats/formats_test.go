package formats_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/formats"
	"github.com/seed-c1b73e60/convo/wire"
)

func TestNew(t *testing.T) {
	for _, name := range formats.Names() {
		f := formats.New(name, "m")
		said, err := f.Encode(convo.NewSnapshot([]convo.Message{convo.User("hi")}))
		assert.NoError(t, err, name)
		assert.Empty(t, f.Check(said.Body()), name)
	}
	assert.Equal(t, wire.OpenAIChat{Dialect: wire.Mistral, Model: "m"}, formats.New(wire.FormatMistral, "m"))
	assert.Nil(t, formats.New("morse", ""))
	assert.Subset(t, formats.Names(), formats.Main())
	assert.NotContains(t, formats.Main(), wire.FormatOllama)
}
