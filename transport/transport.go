package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// Options configures a Transport. The zero value works.
type Options struct {
	// Base makes the requests. Nil: [http.DefaultTransport].
	Base http.RoundTripper

	// History returns the options of a conversation that begins. Roles is always the
	// result of [convo.Relaxed]. Without Limits.Window and Limits.High, the window is
	// [Window] of the model, also of another model later; without MaxResult, no result is cut
	// when it comes. Nil, or a nil result: the defaults of package convo. If no window is
	// known, a conversation is only made smaller when the provider has refused a request
	// as too long.
	History func(Conversation) *convo.Options

	// Key returns a name of the conversation of a request, which separates conversations that
	// begin with the same messages. Nil or "": the name that the program itself sends, see
	// [Conversation.Key], if it does.
	Key func(*http.Request) string

	// SummaryModel is the model that writes the summaries, at the provider of the
	// conversation and with the credentials of its newest request that was answered; "*" is the
	// model of the conversation itself, whose prompt cache is used where that costs less. It is
	// not asked while requests fit, at most four summaries are written at a time, and a call
	// takes at most a minute; if it fails, [convo.Extract] writes the summary. Empty: Extract
	// writes all. It has no effect on options of History that have a Strategy.
	SummaryModel string

	// Watch leaves all requests as they are. The conversations are followed and can be looked
	// at; nothing is compacted.
	Watch bool

	// Store keeps what was decided about the conversations, so that they go on after a
	// restart with the same requests. Nil: nothing is kept.
	Store Store

	Most    int           // how many conversations are kept, besides those with a request under way; 0: 200
	Idle    time.Duration // after which a conversation is forgotten; 0: an hour; negative: never
	MaxBody int           // of a request, in bytes; a larger one passes as it is; 0: 64 MB

	// Logger gets a warning for each conversation that is not followed, and why, and the lines
	// of each History whose options have no Logger. Nil: nothing is logged.
	Logger *slog.Logger
}

// A Conversation is a conversation that a [Transport] follows.
type Conversation struct {
	ID      string // a number that the Transport gives to it
	Format  string // of package wire, such as "anthropic"
	Model   string // of the newest request
	Key     string // see Options.Key
	Program string // the User-Agent of the newest request

	// First are the messages of its first request, up to the first one of the user, and the
	// system text before them. They must not be changed.
	First []convo.Message

	History  *convo.History // nil for Options.History, which makes it
	Requests int
	Used     time.Time // of the newest request
	Last     Answer
}

// An Answer is what the provider said to a request.
type Answer struct {
	Status int    // of HTTP; 0: none yet
	Error  string // what the provider said if it refused the request, at most 4 kB
	Sent   int    // bytes of the body that was sent
}

// A Transport is an [http.RoundTripper] that keeps conversations inside their windows. Of a
// request it changes the messages, and the field that enables thinking where Anthropic's API would
// refuse it, because the answers have lost the thinking that they began with. It is safe for
// concurrent use.
type Transport struct {
	o      Options
	reader *reader

	mu     sync.Mutex
	talks  []*talk
	index  map[uint64]*talk // by a fingerprint of each beginning of their lists
	made   int
	swept  time.Time
	told   map[string]bool
	closed bool

	store     chan struct{} // holds a value while the Store is used
	summaries chan struct{} // holds one value for each summary that a model writes
}

// New returns a Transport.
func New(o Options) *Transport {
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	o.Most = cmp.Or(o.Most, 200)
	o.Idle = cmp.Or(o.Idle, time.Hour)
	o.MaxBody = cmp.Or(o.MaxBody, 64<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Transport{o: o, reader: newReader(), index: map[uint64]*talk{}, told: map[string]bool{}, store: make(chan struct{}, 1), summaries: make(chan struct{}, mostSummaries)}
}

// RoundTrip implements [http.RoundTripper]. A request that cannot be followed, for whatever reason,
// goes out as it came; so the only errors are those of reading its body and those of Base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := apiOf(r.URL)
	if !ok || r.Method != http.MethodPost || r.Body == nil || len(r.Trailer) > 0 || r.Header.Get("Upgrade") != "" {
		return t.o.Base.RoundTrip(r)
	}
	if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") {
		t.tell("the body is signed; use the module clients/convobedrock")
		return t.o.Base.RoundTrip(r)
	}
	body, err := read(r.Body, r.ContentLength, t.o.MaxBody+1)
	if err != nil {
		_ = r.Body.Close()
		return nil, err
	}
	if len(body) > t.o.MaxBody {
		t.tell(fmt.Sprintf("the body is larger than %d bytes", t.o.MaxBody))
		own := r.Clone(r.Context())
		own.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		return t.o.Base.RoundTrip(own)
	}
	_ = r.Body.Close()
	x := &exchange{t: t, r: r, api: a, came: body}
	if err := x.begin(); err != nil {
		if r.Context().Err() == nil {
			t.tell(err.Error())
		}
		return t.o.Base.RoundTrip(request(r, body))
	}
	return x.run()
}

// read reads at most so many bytes.
func read(r io.Reader, expected int64, most int) ([]byte, error) {
	var b bytes.Buffer
	if expected > 0 {
		b.Grow(int(min(expected, int64(most))) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(r, int64(most)))
	return b.Bytes(), err
}

// request returns r with a body, which may be sent several times.
func request(r *http.Request, body []byte) *http.Request {
	own := r.Clone(r.Context())
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	own.Body, _ = own.GetBody()
	own.ContentLength, own.TransferEncoding = int64(len(body)), nil
	if own.Header.Get("Content-Length") != "" {
		own.Header.Set("Content-Length", fmt.Sprint(len(body)))
	}
	return own
}

// tell logs once why something is not followed.
func (t *Transport) tell(why string) {
	t.mu.Lock()
	isNew := !t.told[why] && len(t.told) < 1000
	if isNew {
		t.told[why] = true
	}
	t.mu.Unlock()
	if isNew {
		defer guard(new(error)) // a Logger that panics is no reason to keep a request
		t.o.Logger.Warn("transport: a request passes as it came", "cause", why)
	}
}

// lose logs that a conversation may not go on as it was after a restart.
func (t *Transport) lose(cause error) {
	defer guard(new(error))
	t.o.Logger.Warn("transport: what was decided about a conversation is lost", "cause", cause)
}

// guard makes an error of a panic.
func guard(err *error) {
	if v := recover(); v != nil {
		*err = &convo.PanicError{In: "transport", Value: v, Stack: string(debug.Stack())}
	}
}

// Conversations returns the conversations that t follows, those used last first.
func (t *Transport) Conversations() []Conversation {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Conversation
	for _, k := range t.talks {
		c := k.about
		c.History, c.Requests, c.Used, c.Last = k.mirror.History(), k.count, k.used, k.last
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Conversation) int { return b.Used.Compare(a.Used) })
	return all
}

// Close forgets all conversations, and lets all later requests pass as they are. Requests that are
// under way go on.
func (t *Transport) Close() error {
	t.mu.Lock()
	talks := t.talks
	t.closed, t.talks, t.index = true, nil, map[uint64]*talk{}
	for _, k := range talks {
		k.isGone = true
	}
	t.mu.Unlock()
	var all error
	for _, k := range talks {
		all = errors.Join(all, k.mirror.History().Close())
	}
	return all
}

// A Store keeps bytes under names. [Dir] is a Store. Its methods are called one at a time, and may
// take five seconds.
type Store interface {
	// Load returns what Save has stored under a name, or nil if there is nothing.
	Load(ctx context.Context, name string) ([]byte, error)

	// Save replaces what is stored under a name. Names are of letters, digits and "-".
	Save(ctx context.Context, name string, data []byte) error
}
