package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// This file fakes the provider, the tool and the model that writes summaries.

func city(turn int) string {
	cities := []string{"Lisbon", "Oslo", "Rome", "Vienna", "Athens", "Porto", "Turin", "Malmo"}
	return cities[turn%len(cities)]
}

// model calls the tool after a question, and answers after the tool's result.
func model(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	msgs := s.Messages()
	last := msgs[len(msgs)-1]
	usage := convo.Usage{Input: s.Tokens() + 120, Output: 30} // 120 tokens for the tool definitions
	answer := convo.Assistant("Three flights a day, and on each there is a window seat after 9.")
	if last.Role != convo.RoleTool {
		to := strings.TrimSuffix(strings.TrimPrefix(last.Text(), "How about "), "?")
		answer = convo.Assistant("", convo.ToolCall{
			ID:        fmt.Sprintf("call_%d", s.Version()),
			Name:      "flights",
			Arguments: fmt.Sprintf(`{"to":%q}`, to),
		})
	}
	return convo.Reply{Messages: []convo.Message{answer}, Usage: usage}, nil
}

// flights is a tool with long results.
func flights(call convo.ToolCall) string {
	var b strings.Builder
	for i := range 14 {
		fmt.Fprintf(&b, "flight TX%d%02d departs %02d:10, seats 12A and 30F are free, one bag, no meal\n", len(call.Arguments), i, 9+i%12)
	}
	return b.String()
}

// summarize takes the place of a call to a small model with req.Prompt as the user
// message.
func summarize(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	seen := strings.TrimPrefix(req.Previous, "The user has asked about flights to ")
	seen = strings.TrimSuffix(seen, ".")
	for _, m := range req.Messages {
		if to, ok := strings.CutPrefix(m.Text(), "How about "); ok && m.Role == convo.RoleUser {
			to = strings.TrimSuffix(to, "?")
			if !strings.Contains(seen, to) {
				seen = strings.TrimPrefix(seen+", "+to, ", ")
			}
		}
	}
	return convo.Summary{Text: "The user has asked about flights to " + seen + "."}, nil
}
