package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Prices are the prices of models. A file of them is a JSON object:
//
//	{"currency": "USD", "per": 1000000, "models": {
//	  "claude-": {"new": 3, "cached": 0.3, "written": 3.75, "output": 15},
//	  "":        {"new": 1, "cached": 0.1, "written": 1, "output": 5}}}
//
// A key of models is the beginning of the names of models. The longest key that matches is
// used, and "" matches every name.
type Prices struct {
	Currency string           `json:"currency"`
	Per      float64          `json:"per"` // how many tokens a price is for
	Models   map[string]Price `json:"models"`
}

// A Price is what tokens of one model cost: those that are neither read from the cache nor
// written to it, those that are read from it, those that are written to it, and those of
// answers.
type Price struct {
	New     float64 `json:"new"`
	Cached  float64 `json:"cached"`
	Written float64 `json:"written"`
	Output  float64 `json:"output"`
}

func (p Price) of(fresh, cached, written, output int64) float64 {
	return p.New*float64(fresh) + p.Cached*float64(cached) + p.Written*float64(written) + p.Output*float64(output)
}

// For returns the price of one token of a model, and whether there is one.
func (p *Prices) For(model string) (Price, bool) {
	best, found := "", false
	for name := range p.Models {
		if strings.HasPrefix(model, name) && (!found || len(name) > len(best)) {
			best, found = name, true
		}
	}
	price := p.Models[best]
	return Price{price.New / p.Per, price.Cached / p.Per, price.Written / p.Per, price.Output / p.Per}, found
}

const (
	mostCurrency = 8
	mostPrice    = 1e6 // of one token; sums of money stay finite
)

// ReadPrices reads a file of prices.
func ReadPrices(r io.Reader) (*Prices, error) {
	d := json.NewDecoder(io.LimitReader(r, 1<<20))
	d.DisallowUnknownFields()
	p := &Prices{Per: 1_000_000}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("prices: %w", readable(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("prices: want one JSON object and nothing after it")
	}
	if len(p.Currency) > mostCurrency {
		return nil, fmt.Errorf("prices: currency has %d bytes; want at most %d, such as USD", len(p.Currency), mostCurrency)
	}
	if len(p.Models) == 0 {
		return nil, errors.New(`prices: models is empty; name at least one, or "" for all`)
	}
	if !(p.Per > 0) || math.IsInf(p.Per, 0) {
		return nil, fmt.Errorf("prices: per is %g; want how many tokens a price is for, such as 1000000", p.Per)
	}
	for name, m := range p.Models {
		for _, n := range []float64{m.New, m.Cached, m.Written, m.Output} {
			if !(n >= 0) || math.IsInf(n, 0) {
				return nil, fmt.Errorf("prices: a price of %q is %g; want 0 or more", name, n)
			}
			if n/p.Per > mostPrice {
				return nil, fmt.Errorf("prices: a price of %q is %g for %g tokens; want at most %g for one token", name, n, p.Per, float64(mostPrice))
			}
		}
	}
	return p, nil
}

// readable returns what package json says about a file of prices, without the types of Go.
func readable(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; want a JSON object")
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want, field := "a number", cmp.Or(e.Field, "the file")
		switch e.Type.Kind() {
		case reflect.Struct, reflect.Map:
			want = "an object"
		case reflect.String:
			want = "a string"
		}
		return fmt.Errorf("%s is of the type %s; want %s", field, e.Value, want)
	}
	return err
}

// unpriced records that a model has no price.
func (r *Report) unpriced(model string) {
	if !slices.Contains(r.Unpriced, model) {
		r.Unpriced = append(r.Unpriced, model)
	}
}
