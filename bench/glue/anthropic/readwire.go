package anthropic

import (
	"context"
	"net/http"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// readWithWire reads an answer without the SDK.
func readWithWire(ctx context.Context, url string, show func(string)) (convo.Reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return convo.Reply{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return convo.Reply{}, err
	}
	defer resp.Body.Close()
	stream := wire.Anthropic{}.Stream()
	for delta, err := range wire.Read(resp.Body, stream) {
		if err != nil {
			return convo.Reply{}, err
		}
		show(delta.Text)
	}
	in, err := stream.Transcript()
	return in.Reply(), err
}
