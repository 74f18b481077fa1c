module github.com/seed-c1b73e60/convo/bench/glue/goopenai

go 1.26.5

require (
	github.com/sashabaranov/go-openai v1.43.0
	github.com/seed-c1b73e60/convo v0.1.0
	github.com/seed-c1b73e60/convo/bench v0.1.0
	github.com/seed-c1b73e60/convo/clients/convogoopenai v0.1.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/seed-c1b73e60/convo => ../../..
	github.com/seed-c1b73e60/convo/bench => ../..
	github.com/seed-c1b73e60/convo/clients/convogoopenai => ../../../clients/convogoopenai
)
