module github.com/seed-c1b73e60/convo/bench/judge/ollama

go 1.26.5

require (
	github.com/ollama/ollama v0.17.4
	github.com/seed-c1b73e60/convo v0.1.0
	github.com/seed-c1b73e60/convo/bench v0.1.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.1 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/wk8/go-ordered-map/v2 v2.1.8 // indirect
	golang.org/x/crypto v0.43.0 // indirect
	golang.org/x/sys v0.37.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/seed-c1b73e60/convo => ../../..
	github.com/seed-c1b73e60/convo/bench => ../..
)
