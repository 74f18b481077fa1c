module github.com/seed-c1b73e60/convo/adapters/langchaingo

go 1.26

require (
	github.com/seed-c1b73e60/convo v0.1.0
	github.com/stretchr/testify v1.11.1
	github.com/tmc/langchaingo v0.1.11
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/dlclark/regexp2 v1.10.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkoukk/tiktoken-go v0.1.8 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/seed-c1b73e60/convo => ../..
