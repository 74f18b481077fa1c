package main

import (
	"fmt"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// A program is an agent of another project, and how it is run.
type program struct {
	name   string
	binary string // below the folder in which it is installed
	format string
	window int // of the provider; of what the program believes, see file

	// The tool with which the model reads a file, and its arguments for one.
	tool      string
	arguments string // a format with the name of the file

	side string // what the model says to a request without tools; empty: a sentence

	file   string // what it is configured with, relative to its home; empty: nothing
	config string // what file says; {url} stands for the address of the provider
	env    []string
	args   []string // the task follows
	again  []string // in place of args, to go on with the last conversation; nil: it can't
}

// programs are all of them. What they believe their window to be is larger than that of the
// provider, so that they do not shorten anything themselves.
var programs = []program{
	{
		name: "codex", binary: "node_modules/.bin/codex", format: provider.FormatOpenAIResponses, window: 60_000,
		tool: "exec_command", arguments: `{"cmd":"cat %s"}`,
		file: ".codex/config.toml",
		config: `model = "test-model"
model_provider = "test"
model_context_window = 1000000
sandbox_mode = "danger-full-access"
approval_policy = "never"
[model_providers.test]
name = "test"
base_url = "{url}/v1"
env_key = "TEST_KEY"
wire_api = "responses"
`,
		env:   []string{"TEST_KEY=none"},
		args:  []string{"exec", "--skip-git-repo-check"},
		again: []string{"exec", "resume", "--skip-git-repo-check", "--last"},
	},
	{
		name: "gemini", binary: "node_modules/.bin/gemini", format: provider.FormatGemini, window: 45_000,
		tool: "run_shell_command", arguments: `{"command":"cat %s"}`,
		side:   `{"unproductive_state_analysis":"none","unproductive_state_confidence":0}`,
		file:   ".gemini/settings.json",
		config: `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`,
		env:    []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL={url}", "GEMINI_CLI_TRUST_WORKSPACE=true"},
		args:   []string{"-y", "-m", "gemini-2.5-pro", "-p"}, // and with -r it sends each result twice
	},
	{
		name: "opencode", binary: "node_modules/opencode-linux-x64/bin/opencode", format: provider.FormatOpenAIChat, window: 60_000,
		tool: "bash", arguments: `{"command":"cat %s","description":"reads a file"}`,
		file: "work/opencode.json",
		config: `{"provider":{"test":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"{url}/v1","apiKey":"none"},
"models":{"test-model":{"limit":{"context":1000000,"output":8000}}}}},"autoupdate":false,"share":"disabled"}`,
		args:  []string{"run", "-m", "test/test-model"},
		again: []string{"run", "-m", "test/test-model", "-c"},
	},
	{
		name: "pi", binary: "node_modules/.bin/pi", format: provider.FormatAnthropic, window: 40_000,
		tool: "read", arguments: `{"path":"%s"}`,
		file: ".pi/agent/models.json",
		config: `{"providers":{"test":{"baseUrl":"{url}","api":"anthropic-messages","apiKey":"none",
"models":[{"id":"test-model","name":"test","reasoning":false,"input":["text"],"contextWindow":1000000,"maxTokens":8000,
"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}}]}}}`,
		env:   []string{"PI_OFFLINE=1"},
		args:  []string{"--provider", "test", "--model", "test-model", "-p"},
		again: []string{"--provider", "test", "--model", "test-model", "-c", "-p"},
	},
	{
		name: "qwen", binary: "node_modules/.bin/qwen", format: provider.FormatOpenAIChat, window: 60_000,
		tool: "run_shell_command", arguments: `{"command":"cat %s","is_background":false}`,
		file:   ".qwen/settings.json",
		config: `{"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true}}`,
		env:    []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL={url}/v1"},
		args:   []string{"--auth-type", "openai", "-m", "test-model", "-y"},
		again:  []string{"--auth-type", "openai", "-m", "test-model", "-y", "-c"},
	},
	{
		name: "crush", binary: "crush", format: provider.FormatOpenAIChat, window: 60_000,
		tool: "bash", arguments: `{"command":"cat %s","description":"reads a file"}`,
		file: "work/crush.json",
		config: `{"providers":{"test":{"type":"openai-compat","base_url":"{url}/v1","api_key":"none",
"models":[{"id":"test-model","name":"test","context_window":1000000,"default_max_tokens":8000}]}},
"models":{"large":{"provider":"test","model":"test-model"},"small":{"provider":"test","model":"test-model"}},
"permissions":{"allowed_tools":["bash","view"]},
"options":{"disable_metrics":true,"disable_provider_auto_update":true}}`,
		env:   []string{"CRUSH_DISABLE_METRICS=1"},
		args:  []string{"run", "-q"},
		again: []string{"run", "-q", "-C"},
	},
}

const (
	task = "Read the files %s to %s, one after the other, and say what they have in common. While you do so, %s."
	rule = "never write into the folder vendor"
)

// fileName returns the name of a file of the task.
func fileName(n int) string { return fmt.Sprintf("file-%02d.txt", n) }
