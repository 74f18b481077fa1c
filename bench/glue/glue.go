// Package glue holds what the agents in the modules below it share. The modules
// show how many lines an agent takes with an official SDK alone, and with convo.
package glue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Window is the context window of the model, in tokens. An answer needs
// up to Reserve of them.
const (
	Window  = 4_000
	Reserve = 400
)

// System is the system prompt of the agents.
const System = "You are a travel agent. Be brief."

// An Ask has an agent answer a question. Text is shown as it arrives.
type Ask func(ctx context.Context, question string, show func(string)) error

// A Tool is a tool of the agents.
type Tool struct {
	Name, Description string
	Parameters        map[string]any // a JSON schema
}

// Tools returns the two tools of the agents. Both want a city.
func Tools() []Tool {
	schema := map[string]any{
		"type":       "object",
		"properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required":   []string{"city"},
	}
	return []Tool{
		{"weather", "The weather forecast for a city.", schema},
		{"trains", "Today's trains to a city.", schema},
	}
}

// Run runs a tool. No train goes to the city of Nowhere, which is an error.
func Run(name, arguments string) (string, error) {
	var args struct{ City string }
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		return "", err
	}
	switch {
	case name == "weather":
		return strings.Repeat("Weather in "+args.City+": rain, 14 degrees, wind from the west. ", 6), nil
	case name == "trains" && args.City == "Nowhere":
		return "", fmt.Errorf("no such city: %s", args.City)
	case name == "trains":
		return strings.Repeat("Train to "+args.City+" at 09:10 from platform 4, one change. ", 6), nil
	}
	return "", fmt.Errorf("no such tool: %s", name)
}

// Handlers returns the tools as those of convo.
func Handlers() (list []convo.Handler) {
	for _, t := range Tools() {
		schema, err := json.Marshal(t.Parameters)
		if err != nil {
			panic(err) // it is made of maps and strings
		}
		list = append(list, convo.Handler{
			Tool: convo.Tool{Name: t.Name, Description: t.Description, Schema: string(schema)},
			Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
				text, err := Run(call.Name, call.Arguments)
				return []convo.Part{convo.Text(text)}, err
			},
		})
	}
	return list
}
