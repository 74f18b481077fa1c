package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// An mcpClient has two methods of an MCP client. In the official SDK, *mcp.ClientSession has
// them; mcp.Tool, mcp.CallToolResult and mcp.Content take the place of the types below.
type mcpClient interface {
	ListTools(ctx context.Context) ([]mcpTool, error)
	CallTool(ctx context.Context, name string, arguments any) (mcpResult, error)
}

type mcpTool struct {
	Name, Description string
	InputSchema       any
}

type mcpResult struct {
	Content []mcpContent
	IsError bool
}

type mcpContent struct{ Type, Text string }

// mcpHandlers returns a Handler for each tool of an MCP server. The name of the server is part
// of their names, since two servers may have a tool with the same name.
func mcpHandlers(ctx context.Context, server string, client mcpClient) (all []convo.Handler, err error) {
	tools, err := client.ListTools(ctx)
	if err != nil {
		return nil, err
	}
	for _, tool := range tools {
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil {
			return nil, err
		}
		run := func(ctx context.Context, call convo.ToolCall) (parts []convo.Part, err error) {
			result, err := client.CallTool(ctx, tool.Name, json.RawMessage(call.Arguments))
			if err != nil {
				return nil, err // the model reads it
			}
			for _, c := range result.Content {
				if c.Type != "text" {
					c.Text = "[" + c.Type + "]" // for an image, make a convo.Media
				}
				parts = append(parts, convo.Text(c.Text))
			}
			if result.IsError {
				return parts, errors.New("the tool failed")
			}
			return parts, nil
		}
		all = append(all, convo.Handler{
			Tool: convo.Tool{Name: server + "." + tool.Name, Description: tool.Description, Schema: string(schema)},
			Run:  run,
		})
	}
	return all, nil
}

func Example_mcp() {
	ctx := context.Background()
	tools, err := mcpHandlers(ctx, "files", fakeMCP{})
	check(err)
	model := script(
		convo.Assistant("", convo.ToolCall{Name: "files.read", Arguments: `{"path":"a.go"}`}),
		convo.Assistant("", convo.ToolCall{Name: "files.read", Arguments: `{"path":"a.md"}`}),
		convo.Assistant("It is an empty package."),
	)

	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	check(err)
	_, err = h.Append(convo.User("What is in my files?"))
	check(err)
	_, err = h.Run(ctx, model, convo.RunOptions{Tools: tools})
	check(err)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 user: What is in my files?
	// 2 assistant: call files.read({"path":"a.go"})
	// 3 tool: result of files.read(package a)
	// 4 assistant: call files.read({"path":"a.md"})
	// 5 tool: error of files.read(there is no such file the tool failed)
	// 6 assistant: It is an empty package.
}

// fakeMCP stands for an MCP server with one tool.
type fakeMCP struct{}

func (fakeMCP) ListTools(context.Context) ([]mcpTool, error) {
	return []mcpTool{{Name: "read", Description: "Reads a file.", InputSchema: map[string]any{"type": "object"}}}, nil
}

func (fakeMCP) CallTool(_ context.Context, _ string, arguments any) (mcpResult, error) {
	if string(arguments.(json.RawMessage)) == `{"path":"a.go"}` {
		return mcpResult{Content: []mcpContent{{"text", "package a"}}}, nil
	}
	return mcpResult{Content: []mcpContent{{"text", "there is no such file"}}, IsError: true}, nil
}
