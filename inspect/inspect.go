// Package inspect shows what fills the window of a conversation, as a page.
//
//	http.Handle("/debug/convo", inspect.Handler(h))
//
// The page has the window as a bar with its limits, the exchanges as a strip, each message,
// the summary, what providers would refuse, and the compactions that a [Reports] has
// collected. It needs no script and no other file, and changes nothing.
//
// Conversations are private: serve the page on a loopback address, or behind a login.
package inspect

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Conversation is a conversation that Pages shows.
type Conversation struct {
	Name    string         // empty: its title, or else its number
	History *convo.History // nil: it is left out
	Reports *Reports       // nil: its compactions are not listed

	ID      int           // in addresses; 0: its place among the conversations, from 1
	About   []string      // what else is said of it, such as its model
	Problem string        // what is wrong with it, which stands out
	Formats []wire.Format // whose Check is shown; nil: those of Pages
}

// Pages is an http.Handler that shows conversations. Set its fields before the first
// request; it is then safe for concurrent use.
//
// It answers GET and HEAD requests whose Host is a loopback address, localhost or one of
// Hosts, so that a foreign website cannot read it through the user's browser. It writes to
// no History and no Store. A page has at most 200 messages and the first 4 kB of each text;
// a link leads to the rest. The time for a page is linear in the size of the conversation.
type Pages struct {
	Conversations []Conversation

	// List returns conversations that come and go, which follow those of Conversations. It is
	// called for each page. Nil: there are none.
	List func() []Conversation

	// Store has further conversations. Each can be shown as of any of its records. Nil:
	// there are none.
	Store convo.Store

	// Hosts are other names by which the pages may be requested, such as
	// "convo.example.com". Ports are ignored.
	Hosts []string

	// Formats are the formats whose Check is shown. Nil: those of package wire.
	Formats []wire.Format
}

// Handler returns Pages that show histories. It registers nothing. A nil History is left
// out.
func Handler(histories ...*convo.History) *Pages {
	p := &Pages{}
	for _, h := range histories {
		p.Conversations = append(p.Conversations, Conversation{History: h})
	}
	return p
}

// WriteHTML writes one page that shows s, such as for a report of a fault. The page has no
// links to other pages: it has the newest 1,000 messages and the beginning of a long text.
// A conversation of more than 200,000 tokens is not checked. The only errors are those of w.
func WriteHTML(w io.Writer, s *convo.Snapshot) error {
	v := newView(state{}, rand.Text())
	v.Alone = true
	if s == nil {
		s = &convo.Snapshot{}
	}
	if title, _ := s.Meta(); title != "" {
		v.Title = short(title)
	}
	v.showMoment(momentOf(s, "the snapshot has no limits."))
	v.showChecks(s, nil)
	return v.write(w)
}

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nonce, head := rand.Text(), w.Header()
	head.Set("Content-Security-Policy", policy(nonce)+"; frame-ancestors 'none'")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "inspect: the page answers only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if !p.Allows(r.Host) {
		http.Error(w, fmt.Sprintf("inspect: the host %q is not allowed; use localhost, or add the name to Pages.Hosts", short(r.Host)), http.StatusForbidden)
		return
	}
	v, status := p.view(r.Context(), readState(r.URL.Query()), nonce)
	var page bytes.Buffer
	if err := v.write(&page); err != nil {
		http.Error(w, "inspect: "+short(err.Error()), http.StatusInternalServerError)
		return
	}
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = page.WriteTo(w) // fails if the client is gone
	}
}

// policy is the Content-Security-Policy of a page.
func policy(nonce string) string {
	return "default-src 'none'; style-src 'nonce-" + nonce + "'; base-uri 'none'; form-action 'none'"
}

// Allows reports whether p answers requests with this Host.
func (p *Pages) Allows(host string) bool {
	name := bare(host)
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() || name == "localhost" {
		return true
	}
	return name != "" && slices.ContainsFunc(p.Hosts, func(h string) bool { return bare(h) == name })
}

// bare returns a host without its port, in lower case.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// view returns what the page at an address shows. A panic of a Store or a Format becomes a
// problem on the page.
func (p *Pages) view(ctx context.Context, at state, nonce string) (v *view, status int) {
	defer func() {
		if x := recover(); x != nil {
			v = newView(at, nonce)
			status = v.fail(http.StatusInternalServerError, "The page cannot be made, because of a panic: %v", x)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	v = newView(at, nonce)
	list := p.Conversations
	if p.List != nil {
		list = slices.Concat(list, p.List())
	}
	isOne := len(list) == 1 && p.List == nil
	v.Home = !isOne || p.Store != nil
	switch {
	case at.key != "" && p.Store == nil:
		status = v.fail(http.StatusNotFound, "The page has no Store; set Pages.Store to show what is saved in it.")
	case at.key != "" && at.archive > 0:
		status = p.showStoreArchive(ctx, v)
	case at.key != "":
		status = p.showRecord(ctx, v)
	case at.list || at.number == 0 && !isOne:
		status = p.showList(ctx, v, list)
	default:
		status = p.showConversation(ctx, v, list)
	}
	return v, status
}

func (p *Pages) showConversation(ctx context.Context, v *view, list []Conversation) int {
	n := max(v.at.number, 1)
	i := -1
	for at := range list {
		if list[at].number(at) == n {
			i = at
		}
	}
	if i < 0 || list[i].History == nil {
		return v.fail(http.StatusNotFound, "There is no conversation %d.", n)
	}
	c := &list[i]
	v.Title = c.name(i, c.History.Snapshot())
	v.About, v.Wrong = c.lines()
	if v.at.archive > 0 {
		return v.showArchive(ctx, c.History)
	}
	v.Refreshable = true
	key, _ := c.History.Saved()
	v.hasArchive = key != ""
	m := now(c.History)
	v.showMoment(m)
	v.showReports(c.Reports)
	formats := c.Formats
	if formats == nil {
		formats = p.Formats
	}
	v.showChecks(m.Snapshot, formats)
	return http.StatusOK
}

// number returns the number of the i-th conversation in addresses.
func (c *Conversation) number(i int) int { return cmp.Or(c.ID, i+1) }

// lines returns what is said of c, and what is wrong.
func (c *Conversation) lines() (about []string, problem string) {
	for _, line := range c.About {
		about = append(about, short(line))
	}
	return about, visible(first(c.Problem, mostText/4))
}

// name returns what the page calls the i-th conversation.
func (c *Conversation) name(i int, s *convo.Snapshot) string {
	title, _ := s.Meta()
	for _, name := range []string{c.Name, title} {
		if name != "" {
			return short(name)
		}
	}
	return fmt.Sprint("Conversation ", c.number(i))
}
