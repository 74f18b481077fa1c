module github.com/seed-c1b73e60/convo/bench/glue/openai

go 1.26.5

require (
	github.com/openai/openai-go/v3 v3.98.0
	github.com/seed-c1b73e60/convo v0.1.0
	github.com/seed-c1b73e60/convo/bench v0.1.0
	github.com/seed-c1b73e60/convo/clients/convoopenai v0.1.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/seed-c1b73e60/convo => ../../..
	github.com/seed-c1b73e60/convo/bench => ../..
	github.com/seed-c1b73e60/convo/clients/convoopenai => ../../../clients/convoopenai
)
