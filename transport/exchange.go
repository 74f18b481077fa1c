package transport

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/models"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/wire"
)

// An exchange is a request and its answer.
type exchange struct {
	t        *Transport
	r        *http.Request
	api      api
	came     []byte // the body as it came
	plain    []byte // without its encoding
	list     span   // of plain: the messages
	thinking span   // of plain: the field that enables thinking; empty: it is not enabled
	tools    []byte
	about    Conversation
	cacheTTL time.Duration // see convo.Usage

	talk  *talk
	n     int    // values of the list
	first *value // that is no system text
	s     *convo.Snapshot
	sent  []byte   // the body that is sent
	raw   [][]byte // the messages in it; nil: as they came
}

// begin finds out what is to be sent.
func (x *exchange) begin() (err error) {
	defer guard(&err)
	if err := x.decompress(); err != nil {
		return err
	}
	system, err := x.read()
	if err != nil {
		return err
	}
	list, err := elements(x.plain, x.list)
	if err != nil {
		return err
	}
	values, err := x.t.reader.values(x.api, x.plain, list)
	if err == nil && !isNull(system) {
		var v *value
		if v, err = x.t.reader.value(x.api, true, system); err == nil && v.read != 0 {
			values = slices.Insert(values, 0, v)
		}
	}
	if err != nil {
		return err
	}
	x.sent, x.n = x.came, len(values)
	c, err := x.t.find(x.r.Context(), x, values)
	if err != nil || c.talk == nil {
		return err
	}
	x.talk = c.talk
	if err := x.follow(c); err != nil {
		x.leave()
		return err
	}
	return nil
}

// decompress sets plain.
func (x *exchange) decompress() error {
	var r io.Reader
	var err error
	switch encoding := strings.ToLower(x.r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		x.plain = x.came
		return nil
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(x.came))
	case "deflate":
		r = flate.NewReader(bytes.NewReader(x.came))
	default:
		return fmt.Errorf("a body in the encoding %q can't be read", encoding)
	}
	if err == nil {
		x.plain, err = io.ReadAll(io.LimitReader(r, int64(x.t.o.MaxBody)+1))
	}
	if err == nil && len(x.plain) > x.t.o.MaxBody {
		err = fmt.Errorf("the body is larger than %d bytes", x.t.o.MaxBody)
	}
	return err
}

// read finds the fields of the body.
func (x *exchange) read() (system []byte, err error) {
	var metadata, stored, cacheKey, session, options, retention []byte
	found := 0
	err = fields(x.plain, func(name string, v span) {
		raw := v.of(x.plain)
		switch name {
		case x.api.list:
			x.list = v
			found++
		case x.api.system:
			system = raw
		case "system_instruction": // protobuf takes both
			if x.api.system == "systemInstruction" {
				system = raw
			}
		case "tools":
			x.tools = raw
		case "model":
			x.about.Model = textOf(raw)
		case "metadata":
			metadata = raw
		case "thinking":
			var is struct{ Type string }
			if x.api.name == wire.FormatAnthropic && json.Unmarshal(raw, &is) == nil && is.Type == "enabled" {
				x.thinking = v
			}
		case "prompt_cache_key":
			cacheKey = raw
		case "session_id":
			session = raw
		case "prompt_cache_options":
			options = raw
		case "prompt_cache_retention":
			retention = raw
		case "previous_response_id", "conversation":
			if !isNull(raw) {
				stored = []byte(name)
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case found != 1:
		return nil, fmt.Errorf("there is no field %q, or more than one", x.api.list)
	case stored != nil && x.api.name == wire.FormatOpenAIResponses:
		return nil, fmt.Errorf("%s: the provider keeps the conversation", stored)
	}
	x.about.Format, x.about.Program = x.api.name, x.r.UserAgent()
	x.about.Model = cmp.Or(x.about.Model, modelOf(x.r.URL))
	x.cacheTTL = cmp.Or(models.CacheTTL(options, retention), x.api.cacheTTL(x.about.Model, x.plain))
	if x.t.o.Key != nil {
		x.about.Key = x.t.o.Key(x.r)
	}
	var user struct {
		UserID string `json:"user_id"`
	}
	if x.api.name == wire.FormatAnthropic && !isNull(metadata) {
		_ = json.Unmarshal(metadata, &user)
	}
	x.about.Key = cmp.Or(x.about.Key, sessionOf(x.r.Header), textOf(cacheKey), textOf(session), user.UserID)
	return system, nil
}

// sessionOf returns the ID of a session that a program sends in a header: Session-Id is that of
// Codex, Session_id that of pi, and X-Session-Id that of opencode and crush.
func sessionOf(h http.Header) string {
	for _, name := range []string{"Session_id", "Session-Id", "X-Session-Id", "X-Session-Affinity"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// follow takes over the list, and sets what is to be sent.
func (x *exchange) follow(c choice) (err error) {
	defer guard(&err)
	k := c.talk
	if err := k.lock(x.r.Context()); err != nil {
		return err
	}
	defer k.unlock()
	h := k.mirror.History()
	if !x.api.isCount {
		err = x.setModel(h)
	}
	if err != nil {
		return err
	}
	if _, err = k.mirror.Follow(c.list); err != nil {
		x.t.drop(k)
		return err
	}
	if x.t.o.Watch {
		x.s = h.Snapshot()
		return nil
	}
	s, _, err := h.Prepare(x.r.Context())
	if err != nil { // it does not fit, and the provider will say so
		if errors.As(err, new(*convo.FloorError)) { // whose text has figures
			err = errors.New("it is too large, and nothing in it may be removed")
		}
		if x.r.Context().Err() == nil {
			x.t.tell(err.Error())
		}
		s = h.Snapshot()
	}
	return x.write(s)
}

// setModel sets the model and the tools of the History, if they have changed.
func (x *exchange) setModel(h *convo.History) error {
	k := x.talk
	key := ""
	if !isNull(x.tools) {
		key = toolsKey(x.tools)
	}
	if h.Snapshot().Model() == x.about.Model && k.tools == key {
		return nil
	}
	limits := k.limits
	if k.isUsual {
		limits.Window = Window(x.about.Model)
	}
	if limits.Tools == 0 && key != "" {
		limits.Tools, _ = wire.ToolTokens(x.about.Model, x.tools, nil) // what it can't read is counted by usage
	}
	err := h.SetModel(x.about.Model, limits)
	if err == nil && limits == (convo.Limits{}) { // which SetModel leaves as they are
		err = h.SetLimits(limits)
	}
	if err != nil {
		return err
	}
	k.tools = key
	return h.SetToolsKey(key)
}

// write sets the body for a snapshot. The lock of the talk must be held.
func (x *exchange) write(s *convo.Snapshot) error {
	k := x.talk
	if x.s, x.sent, x.raw = s, x.came, nil; !k.cuts && k.mirror.History().Status().LastEdit.IsZero() {
		return nil
	}
	view, err := k.mirror.View(s)
	if err != nil {
		return err
	}
	raw, isWhole, err := k.raws(view, x.n, x.first)
	if err != nil || isWhole {
		return err
	}
	x.sent, x.raw = splice(x.plain, x.list, raw), raw
	if at := x.thinking; at != (span{}) && lacksThinking(raw) {
		if at.from > x.list.from {
			n := len(x.sent) - len(x.plain)
			at = span{at.from + n, at.to + n}
		}
		x.sent = slices.Concat(x.sent[:at.from], []byte(`{"type":"disabled"}`), x.sent[at.to:])
	}
	x.decide()
	return nil
}

// decide keeps what was decided, if that has changed.
func (x *exchange) decide() {
	k := x.talk
	now := k.mirror.History().Status().Decisions
	if now == k.decided {
		return
	}
	data, err := k.mirror.Decisions()
	if err != nil {
		x.t.lose(err)
		return
	}
	k.decided = now
	x.t.mu.Lock()
	k.decide(len(k.chain), data)
	x.t.mu.Unlock()
	x.t.save(x.r.Context(), k)
}

// leave says that the request is not under way any more.
func (x *exchange) leave() {
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	x.talk.under--
}

// run sends the request, again if the provider finds it too long and it can be made smaller.
func (x *exchange) run() (*http.Response, error) {
	if x.talk == nil {
		return x.t.o.Base.RoundTrip(request(x.r, x.sent))
	}
	for tries := 1; ; tries++ {
		r := x.request()
		if tries > 1 {
			r.Header.Del(idempotency)
		}
		resp, err := x.t.o.Base.RoundTrip(r)
		if err != nil {
			x.leave()
			return nil, err
		}
		refused := x.refusal(resp)
		if refused != nil && !x.t.o.Watch && !x.api.isCount && tries <= mostTries && x.recover(refused) {
			_ = resp.Body.Close()
			continue
		}
		x.t.mu.Lock()
		x.talk.last = Answer{Status: resp.StatusCode, Sent: len(x.sent)}
		if refused != nil {
			text := refused.Error()
			x.talk.last.Error = strings.ToValidUTF8(text[:min(len(text), mostSaid)], "")
		}
		x.t.mu.Unlock()
		resp.Body = newWatcher(x, resp, refused == nil)
		return resp, nil
	}
}

const (
	mostSaid    = 4 << 10           // bytes of what the provider has said that are kept
	mostTries   = 2                 // how often a refused request is sent again
	idempotency = "Idempotency-Key" // names a request, to which a provider may then answer as before
)

// request returns the request that is sent.
func (x *exchange) request() *http.Request {
	r := request(x.r, x.sent)
	if !bytes.Equal(x.sent, x.came) && &x.plain[0] != &x.came[0] {
		r.Header.Del("Content-Encoding")
	}
	if accepted := r.Header.Get("Accept-Encoding"); accepted != "" { // so that the answer can be read
		r.Header.Set("Accept-Encoding", "identity")
		if slices.ContainsFunc(strings.Split(accepted, ","), takesGzip) {
			r.Header.Set("Accept-Encoding", "gzip")
		}
	}
	return r
}

// takesGzip reports whether an element of Accept-Encoding is gzip, and its weight is not zero.
func takesGzip(coding string) bool {
	name, weight, _ := strings.Cut(coding, ";")
	_, q, ok := strings.Cut(weight, "=")
	return strings.EqualFold(strings.TrimSpace(name), "gzip") && (!ok || strings.Trim(q, " 0.") != "")
}

// recover makes the conversation smaller after a refusal, and reports whether it did.
func (x *exchange) recover(refused error) bool {
	k := x.talk
	if k.lock(x.r.Context()) != nil {
		return false
	}
	defer k.unlock()
	err := func() (err error) {
		defer guard(&err)
		h := k.mirror.History()
		body := overflow.Body{JSON: x.sent} // in which a path of the refusal is looked up
		if x.api.name == wire.FormatAnthropic {
			body.Paths = overflow.Dotted
		}
		overflow.Encoded(x.s, body)
		defer overflow.Encoded(x.s, overflow.Body{})
		if _, _, err := h.Recover(x.r.Context(), x.s, refused); err != nil {
			return err
		}
		return x.write(h.Snapshot())
	}()
	if err != nil && !errors.Is(err, refused) {
		defer guard(new(error))
		x.t.o.Logger.Warn("transport: a refused request can't be made smaller", "cause", err)
	}
	return err == nil
}
