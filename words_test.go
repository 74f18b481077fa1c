package convo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What hosts put into the role of the user counts as a result: the host's mark decides, and
// without one the form of the text.
func TestMessage_IsHosts(t *testing.T) {
	meta := func(text, meta string) convo.Message {
		m := convo.User(text)
		m.Meta = meta
		return m
	}
	anna := convo.User("<system-reminder>I typed this.</system-reminder>")
	anna.Author = "Anna"
	for _, tt := range []struct {
		name string
		m    convo.Message
		want bool
	}{
		{"plain", convo.User("Fix the parser."), false},
		{"marked", meta("Continue.", convo.HostMeta), true},
		{"marked, with a text", meta("Continue.", "host todo hook"), true},
		{"another meta", meta("Continue.", "hostile"), false},
		{"an author decides", anna, false},
		{"a reminder", convo.User("<system-reminder>\nThe file a.go has changed.\n</system-reminder>\n"), true},
		{"a notification", convo.User("<task-notification><id>b7</id><status>completed</status></task-notification>"), true},
		{"with attributes", convo.User(`<hook name="stop" code="1">go vet failed</hook>`), true},
		{"several elements", convo.User("<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n<command-args></command-args>"), true},
		{"an empty element", convo.User(`<environment cwd="/tmp"/>`), true},
		{"several parts", convo.User("<environment_context>\n</environment_context>", convo.Text("<skill>x</skill>")), true},
		{"words after it", convo.User("<system-reminder>The file has changed.</system-reminder> Undo that."), false},
		{"words in another part", convo.User("<system-reminder>The file has changed.</system-reminder>", convo.Text("Undo that.")), false},
		{"words between", convo.User("<a>1</a> and <a>2</a>"), false},
		{"a task of the user", convo.User("<task>Port the parser.</task><environment_details>Linux</environment_details>"), false},
		{"a query of the user", convo.User("<user_query>Why?</user_query>"), false},
		{"not closed", convo.User("<b>bold"), false},
		{"a comparison", convo.User("<5 and >3"), false},
		{"no name", convo.User("<>x</>"), false},
		{"an address", convo.User("<https://example.com> is down"), false},
		{"empty", convo.User(""), false},
		{"an image", convo.User("", convo.NewMedia("image/png", []byte("x"))), false},
		{"an image with a tag", convo.User("<shot></shot>", convo.NewMedia("image/png", []byte("x"))), false},
		{"an assistant", convo.Assistant("<system-reminder>x</system-reminder>"), false},
	} {
		assert.Equal(t, tt.want, convo.IsHosts(tt.m), tt.name)
	}
}

// The user's words outlive what hosts say in the user's role, however often and however new it
// is, and the summary does not say that the user said it.
func TestDefault_HostsTextLeavesFirst(t *testing.T) {
	notice := "The background task build finished with exit code 0 after some seconds, and its output is in the file"
	for name, host := range map[string]func(i int) convo.Message{
		"a tag": func(i int) convo.Message {
			return convo.User(fmt.Sprintf("<task-notification>task b%d is done</task-notification>", i))
		},
		"a mark": func(i int) convo.Message {
			m := convo.User(fmt.Sprint("Go on with step ", i))
			m.Meta = convo.HostMeta
			return m
		},
		"repetition": func(i int) convo.Message { return convo.User(fmt.Sprintf("%s out/%d.txt (%d s)", notice, i, i*7)) },
	} {
		h := historyOf(t, windowOf(20_000, nil), host(0))
		var facts []string
		for i := range 300 {
			if i%15 == 0 && len(facts) < 10 {
				facts = append(facts, fmt.Sprintf("Remember that my friend %s lives in street %d.", strings.Repeat(string(rune('a'+i/15)), 5), 100+i))
				mustAppend(t, h, convo.Assistant("ok"), convo.User(facts[len(facts)-1]))
			}
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			mustAppend(t, h, convo.Assistant(strings.Repeat("I work on it. ", 40)), host(i+1))
		}
		_, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		s := h.Snapshot()
		var view strings.Builder
		hosts := 0
		for _, e := range s.All() {
			view.WriteString(e.Message.Text() + "\n")
			if e.Message.Role == convo.RoleUser && !strings.HasPrefix(e.Message.Text(), "Remember") {
				hosts++
			}
		}
		for _, fact := range facts {
			assert.Contains(t, view.String(), fact, name)
		}
		assert.Less(t, hosts, 30, name)
		sum, ok := s.Summary()
		require.True(t, ok)
		_, said, _ := strings.Cut(sum.Text, "The user said:\n")
		said, _, _ = strings.Cut(said, "The assistant said:")
		assert.LessOrEqual(t, strings.Count(said, "\n"), 4, "%s: %s", name, sum.Text)
	}
}

// What people say does not count as a repetition, in no script and with no form.
func TestDefault_RepetitionsAreOfHosts(t *testing.T) {
	han := []rune("天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏")
	for name, text := range map[string]func(i int) string{
		"short":   func(i int) string { return fmt.Sprintf("Order %d has arrived.", i) },
		"Chinese": func(i int) string { return strings.Repeat(string(han[i%24])+string(han[i/24%24]), 30) },
		"paths":   func(i int) string { return strings.Repeat(fmt.Sprintf("src/a%d/b_%d.go ", i, i*7), 12) },
		"prose": func(i int) string {
			return strings.Repeat(string(rune('a'+i%26))+string(rune('a'+i/26))+" is here, ", 12)
		},
	} {
		h := historyOf(t, windowOf(200_000, nil), convo.User("go"))
		for i := range 100 {
			mustAppend(t, h, convo.Assistant(strings.Repeat("a", 3000)), convo.User(text(i)))
		}
		_, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		users := 0
		for _, e := range h.Snapshot().All() {
			if e.Message.Role == convo.RoleUser {
				users++
			}
		}
		assert.Equal(t, 101, users, name)
	}
}
