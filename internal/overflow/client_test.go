package overflow

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A fieldsError is like the error of a client whose text says nothing of the provider's.
type fieldsError struct {
	Code, Message, Type string
	StatusCode          int
}

func (e *fieldsError) Error() string { return fmt.Sprintf("API error: %d", e.StatusCode) }

// A valueError has the same fields, but is no pointer.
type valueError struct{ fieldsError }

func (e valueError) Error() string { return "API error" }

// An embeddingError embeds an error, and hides one of its fields.
type embeddingError struct {
	*fieldsError
	Message string
}

func (e *embeddingError) Error() string { return "attempt 3 failed" }

// A circularError embeds itself.
type circularError struct{ *circularError }

func (e *circularError) Error() string { return "circular" }

type largeError struct{ large bool }

func (e largeError) Error() string           { return "stream failed" }
func (e largeError) IsContextTooLarge() bool { return e.large }

type panicLarge struct{}

func (panicLarge) Error() string           { return "no" }
func (panicLarge) IsContextTooLarge() bool { panic("x") }

func TestIs_WhatClientsSay(t *testing.T) {
	const long = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
	circular := new(circularError)
	circular.circularError = circular
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a message in a field":       {&fieldsError{Message: long, StatusCode: 400}, true},
		"a code in a field":          {&fieldsError{Code: "context_length_exceeded", StatusCode: 400}, true},
		"an embedded field":          {&embeddingError{fieldsError: &fieldsError{Code: "context_length_exceeded", StatusCode: 400}}, true},
		"the outer of two fields":    {&embeddingError{fieldsError: &fieldsError{Message: long, StatusCode: 400}, Message: "invalid tool"}, false},
		"an embedded nil":            {new(embeddingError), false},
		"one that embeds itself":     {circular, false},
		"wrapped":                    {fmt.Errorf("send: %w", &fieldsError{Message: long, StatusCode: 400}), true},
		"another message":            {&fieldsError{Message: "invalid tool", StatusCode: 400}, false},
		"the status of a rate limit": {&fieldsError{Message: long, StatusCode: 429}, false},
		"only the status 413":        {&fieldsError{StatusCode: 413}, true},
		"a nil pointer":              {(*fieldsError)(nil), false},
		"a value":                    {valueError{fieldsError{Message: "x", StatusCode: 400}}, false},
		"a method":                   {largeError{true}, true},
		"a method that says no":      {largeError{}, false},
		"joined":                     {errors.Join(errors.New("x"), largeError{true}), true},
		"a method that panics":       {panicLarge{}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, Is(tt.err)) })
	}
	assert.Equal(t, 8192, int(Read(&fieldsError{Message: long, StatusCode: 400}).Limit))
}
