package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

func reminderOf(text string) obj {
	return obj{"type": "text", "text": "<system-reminder>" + text + "</system-reminder>"}
}

// What a program reminds the model of beside a result that was cleared stays, and so does what it
// says in front of its first message, for which the summary stands.
func TestTransport_Reminders(t *testing.T) {
	c := &recorder{}
	tr := small(t, transport.Options{Base: c})
	p := newProgram(t, nil, "", provider.FormatAnthropic)
	image := obj{"type": "image", "source": obj{"type": "base64", "media_type": "image/png", "data": pictureOf(t, 800)}}
	p.list = []any{obj{"role": "user", "content": []any{reminderOf("the rules"), obj{"type": "text", "text": "Begin. " + strings.Repeat("more ", 1500)}, reminderOf("the date"), image}}}
	isCleared, isSummarized := false, false
	for i := range 60 {
		id := fmt.Sprint("toolu_", i)
		if i%5 == 4 {
			p.list = append(p.list, obj{"role": "assistant", "content": "Done."}, obj{"role": "user", "content": fmt.Sprintf("Go on, %d. ", i) + strings.Repeat("more ", 300)})
		}
		p.list = append(p.list,
			obj{"role": "assistant", "content": []any{obj{"type": "text", "text": strings.Repeat("words ", i*3)}, obj{"type": "tool_use", "id": id, "name": "read", "input": obj{}}}},
			obj{"role": "user", "content": []any{obj{"type": "tool_result", "tool_use_id": id, "content": strings.Repeat("text ", 400)}, reminderOf(fmt.Sprint("beside ", id))}})
		post(t, tr, p.path(), p.body())
		sent := string(c.body)
		require.Contains(t, sent, "the rules")
		if strings.Contains(sent, `"text":"Begin. `) {
			require.Contains(t, sent, "the date")
		} else {
			isSummarized = true
			require.Contains(t, sent, `"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>the rules</system-reminder>"},{"type":"text","text":"<summary`)
			require.NotContains(t, sent, "the date")
		}
		isCleared = isCleared || strings.Contains(sent, "result of read cleared")
		require.Equal(t, strings.Count(sent, `"tool_use_id"`), strings.Count(sent, "beside toolu"))
	}
	require.True(t, isCleared)
	require.True(t, isSummarized)
}
