module github.com/seed-c1b73e60/convo/clients/convogoopenai

go 1.26

require (
	github.com/sashabaranov/go-openai v1.43.0
	github.com/seed-c1b73e60/convo v0.1.0
)

replace github.com/seed-c1b73e60/convo => ../..
