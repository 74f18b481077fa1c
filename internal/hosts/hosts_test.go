package hosts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/hosts"
	"github.com/stretchr/testify/assert"
)

func TestIsWrapped(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"plain", "Fix the parser.", false},
		{"a reminder", "<system-reminder>\nThe file a.go has changed.\n</system-reminder>\n", true},
		{"a notification", "<task-notification><id>b7</id><status>completed</status></task-notification>", true},
		{"with attributes", `<hook name="stop" code="1">go vet failed</hook>`, true},
		{"several elements", "<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n<command-args></command-args>", true},
		{"an empty element", `<environment cwd="/tmp"/>`, true},
		{"words after it", "<system-reminder>The file has changed.</system-reminder> Undo that.", false},
		{"words between", "<a>1</a> and <a>2</a>", false},
		{"a task of the user", "<task>Port the parser.</task><environment_details>Linux</environment_details>", false},
		{"a query of the user", "<user_query>Why?</user_query>", false},
		{"not closed", "<b>bold", false},
		{"a comparison", "<5 and >3", false},
		{"no name", "<>x</>", false},
		{"an address", "<https://example.com> is down", false},
	} {
		assert.Equal(t, tt.want, hosts.IsWrapped(tt.text), tt.name)
	}
}

// The fourth text from the end on counts as a repetition, if it is long enough and differs in
// numbers, paths and identifiers alone.
func TestEchoes(t *testing.T) {
	notice := "The background task build finished with exit code 0 after some seconds, and its output is in the file out/%d.txt (%d s)"
	for name, c := range map[string]struct {
		text func(i int) string
		want bool
	}{
		"a notice":          {func(i int) string { return fmt.Sprintf(notice, i, 7*i) }, true},
		"short":             {func(i int) string { return fmt.Sprintf("Order %d has arrived at the store.", i) }, false},
		"other words":       {func(i int) string { return strings.Repeat(string(rune('a'+i))+"ab is here, ", 12) }, false},
		"nothing but paths": {func(i int) string { return strings.Repeat(fmt.Sprintf("src/a%d/b_%d.go ", i, i*7), 12) }, false},
	} {
		var e hosts.Echoes
		for i := range 10 {
			assert.Equal(t, c.want && i >= 3, e.Has(c.text(i)), "%s %d", name, i)
		}
	}
}
