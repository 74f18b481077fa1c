module github.com/seed-c1b73e60/convo/bench/peers/cohere

go 1.26.5

require (
	github.com/cohere-ai/tokenizer v1.1.2
	github.com/seed-c1b73e60/convo/bench v0.1.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/dlclark/regexp2 v1.10.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/seed-c1b73e60/convo v0.1.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/seed-c1b73e60/convo => ../../..
	github.com/seed-c1b73e60/convo/bench => ../..
)
