package convo_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/modeltest"
)

// defaultModelOps is how many operations a default run makes.
const defaultModelOps = 20_000

var modelOps = flag.Int("convo.ops", defaultModelOps, "operations of TestHistory_Model")
var modelSeed = flag.Uint64("convo.seed", 1, "seed of the first History of TestHistory_Model")

func modelOptions() modeltest.Options {
	return modeltest.Options{Operations: *modelOps, Seed: *modelSeed, CheckSaved: checkSaved}
}

func TestHistory_Model(t *testing.T) { modeltest.Run(t, modelOptions()) }

func FuzzHistory_Model(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 4000)] // longer than a case needs to be
		modeltest.Replay(t, data, modelOptions())
	})
}
