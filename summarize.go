package convo

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/answers"
	"github.com/seed-c1b73e60/convo/internal/extract"
	"github.com/seed-c1b73e60/convo/internal/prompt"
	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Summarize is a [CompactionStrategy] that replaces the oldest exchanges with a summary.
// It cuts where [Truncate] does, deep enough for the edit to free Goal.MinFree. If there
// is already a summary, the summarizer updates it.
//
// A summary that is too long is shortened: by the model, in one more call, and then at
// the end of a sentence. A summary more than four times too long is refused; see
// [RefusedError]. So is a text that is empty or cut off, or in which a model repeats itself.
// So is what is no summary: a tool call, nothing but reasoning, an answer to the
// conversation, or JSON unless Prompt is set. A call that fails, or whose text is
// refused, is repeated once if Timeout leaves time for it. If the request was too long,
// or the error is a [*RefusedError] of the summarizer, only a request with Sent is
// repeated, without it.
//
// If the messages to summarise do not fit the summarizer's window, they are summarised in
// several calls, each of which updates the summary before.
type Summarize struct {
	With Summarizer // writes the summary; nil means Extract{}, which calls no model

	// KeepTokens is the most raw tokens of the newest messages to keep, besides the floor. 0:
	// as many as the goal allows, or none with KeepLast or KeepTurns; negative: none.
	KeepTokens int

	// KeepLast and KeepTurns are how many of the newest entries and turns to keep; less than
	// 1: none. The exchange that contains the first of them stays whole. What any of
	// KeepTokens, KeepLast and KeepTurns keeps stays. System entries do not count.
	//
	// What KeepLast and KeepTurns keep stays even if the view is then larger than Goal.Target.
	// The oldest of it is summarised only if the request would exceed the limit otherwise;
	// Report.NotKept counts that. A later strategy in a Chain may drop it to reach the target.
	KeepLast, KeepTurns int

	// MaxTokens is how long a summary may be, in raw tokens. A longer one is shortened. 0 or
	// less means an eighth of Limits.Low, but at least 500, or 128 for Extract; then, and if it
	// is not below the summarizer's window, it is at most an eighth of that window. The bound
	// is also at most half of Goal.Target, and at most the room left by the edit. It is at most
	// the current summary and a quarter of what could be summarised, or 500 or 128 if that is
	// more.
	MaxTokens int

	// Window is the context window of the summarizer's model, in tokens. 0: Limits.Window of
	// the History. If negative, or neither is set, all is summarised in one call.
	Window int

	// MaxResult is how many tokens of one tool result are shown in the prompt for a summarizer
	// that calls a model, but at least 64. The middle of a longer one is left out, and
	// Report.Unread counts it; SummaryRequest.Messages holds the whole result. 0: an eighth of
	// the summarizer's window, or all without a bound; negative: all.
	MaxResult int

	Prompt string // the instruction to the model; empty means DefaultPrompt

	// Timeout bounds one call of a summarizer that calls a model, together with the call that
	// repeats it. 0: a minute; negative: no bound. If ctx has a deadline, all calls together
	// also end after three quarters of the remaining time: the rest is for a later strategy in
	// a Chain. A call that takes longer fails.
	Timeout time.Duration
}

// defaultTimeout is enough for a slow model to write a summary of some thousand tokens.
const defaultTimeout = time.Minute

// Name returns "summarize".
func (Summarize) Name() string { return "summarize" }

// maxSummary returns the default bound of a summary: an eighth of low, but at least 500
// tokens.
func maxSummary(low int) int { return max(low/8, 500) }

// leastSummary is the number of tokens below which no summary is requested: the answer
// would be refused or useless.
const leastSummary = 64

// leastExtract is the least bound, in tokens, of a summary that no model writes.
const leastExtract = 2 * leastSummary

// String names the summarizer, but does not include the prompt.
func (z Summarize) String() string { return fmt.Sprintf("summarize(with %T)", z.With) }

// Compact returns an edit that drops the oldest exchanges and puts a summary in their
// place, which it requests from the summarizer. It returns [ErrNoGain] if that would free
// too little, and g.NoModel if it is set and the summarizer calls a model. A summary that it
// does not accept is a [*RefusedError], and a window of the summarizer that is too small for
// the prompt a [*ValueError]. Other errors are those of the summarizer. The Effort of the edit
// is set even with an error.
func (z Summarize) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	return z.compact(ctx, s, g, (*writer).write)
}

// compact implements Compact. write is called for the summary.
func (z *Summarize) compact(ctx context.Context, s *Snapshot, g Goal, write func(*writer, context.Context) (Summary, error)) (e Edit, err error) {
	w := z.writer(s, &g)
	e.Effort = &w.work // also returned with every error
	defer catch(&err, "Options.Tokenizer")
	if g.NoModel != nil && callsModel(z.With) {
		return e, g.NoModel
	}
	cleared := g.unread(ctx, s)
	p := z.planDrop(&w, s, &g, cleared)
	if p == nil {
		p = planReading(&w, s, &g, cleared)
	}
	if p == nil {
		return e, ErrNoGain
	}
	w.collect(ctx, &g, p, cleared)
	summary, err := write(&w, ctx)
	if err != nil {
		return e, err
	}
	w.work.NotKept = p.notKept
	e.Drop, e.Summary = p.drop, &Summary{Text: summary.Text, Usage: summary.Usage, Model: summary.Model, Read: ranges.Of[Range](w.read)}
	e.Summary.Names = w.names(&summary, p.drop, min(mostNames, p.forNames+w.maxTokens-w.count(summary.Text)))
	e.Summary.before, err = w.before(ctx, &g, p.drop)
	return e, err
}

// writer returns a writer of a summary, but for what it summarises. Its maxTokens is that of
// the options.
func (z *Summarize) writer(s *Snapshot, g *Goal) writer {
	w := writer{
		with: z.With, prompt: z.Prompt, window: z.Window, windowName: "Summarize.Window", maxTokens: z.MaxTokens, focus: g.Focus,
		timeout: cmp.Or(z.Timeout, defaultTimeout), maxResult: z.MaxResult, inTurn: true,
		s: s, sent: g.Sent, sentTokens: g.SentTokens, count: g.count(s), redact: g.Redact,
	}
	target := g.target(s)
	if w.maxTokens <= 0 {
		w.maxTokens = max(cmp.Or(g.Low, int(target))/8, z.atLeast())
	}
	switch {
	case !callsModel(z.With):
		w.window = -1
	case w.window == 0:
		w.window, w.windowName = g.Window, "Limits.Window"
	}
	if w.window > 0 && (z.MaxTokens <= 0 || z.MaxTokens >= w.window) {
		w.maxTokens = min(w.maxTokens, max(w.window/8, prompt.LeastChunk))
	}
	w.maxTokens = min(w.maxTokens, max(clampInt(target/2), z.atLeast())) // so that the cut leaves room for more than the summary
	return w
}

// atLeast returns the least value of the default of MaxTokens.
func (z *Summarize) atLeast() int {
	if callsModel(z.With) {
		return maxSummary(0)
	}
	return leastExtract
}

// A summaryPlan is what a summary is to take the place of.
type summaryPlan struct {
	drop     []ID
	words    userWords
	notKept  int // of drop, how many the strategy was to keep
	forNames int // tokens for Summary.Names
}

// planDrop plans which exchanges leave, and sets w.maxTokens to what the summary of these, and
// of what was cleared, may have. It returns nil if there would be no gain.
func (z *Summarize) planDrop(w *writer, s *Snapshot, g *Goal, cleared []source) *summaryPlan {
	target, old, most := g.target(s), s.summary.tokens(), w.maxTokens
	material := s.raw() - s.floorWeight().total() - old
	worth := func(material int64) int { return min(most, max(clampInt(old+material/4), z.atLeast())) } // of a larger summary
	w.maxTokens = worth(material)
	keep := newest(s.list, z.KeepLast, z.KeepTurns)
	keeps := keep < len(s.list)
	if s.raw() <= target && !(keeps && g.isOwn()) {
		return nil
	}
	r, least := g.room(s), int64(min(w.maxTokens, leastSummary))
	fits := min(r.Most, s.raw()-1) // the largest size of the view after the edit
	if !keeps && !dropsAny(s, r, z.maxTail(false)) {
		return nil // everything left may stay, so a summary would only use room
	}
	r.Target, r.Most = min(target, fits), fits
	forNames := min(mostNames, w.maxTokens/4)
	c, notKept := z.planCut(s, r, w.maxTokens+forNames, keep), 0
	if limit := int64(g.Limit); keeps && limit > 0 && s.raw() > limit {
		fits = min(fits, limit)
		if c.room(fits) < least {
			r.Target, r.Most = fits, fits
			c = Summarize{}.planCut(s, r, w.maxTokens+forNames, len(s.list))
			i, _ := slices.BinarySearch(c.drop, s.list[keep].id)
			notKept = len(c.drop) - i
		}
	}
	if len(c.drop) == 0 || c.room(fits) < least {
		return nil
	}
	if len(cleared) > 0 { // the user's words come first: they have what is left
		left := fits
		if g.Limit > 0 {
			left = min(left, int64(g.Limit))
		}
		w.maxTokens = max(w.maxTokens, min(worth(material+tokensOf(cleared)), clampInt(c.room(left))-forNames))
	}
	return &summaryPlan{c.drop, c.words, notKept, w.share(c.room(fits), least, forNames)}
}

// planReading plans a summary of what was cleared, with which nothing else leaves. It sets
// w.maxTokens, and returns nil if there would be no gain.
func planReading(w *writer, s *Snapshot, g *Goal, cleared []source) *summaryPlan {
	if len(cleared) == 0 {
		return nil
	}
	old := s.summary.tokens()
	w.maxTokens = min(w.maxTokens, max(clampInt(old+tokensOf(cleared)/4), maxSummary(0)))
	fits := g.readFrom - int64(max(g.allFree, 1))
	if g.Limit > 0 {
		fits = min(fits, int64(g.Limit))
	}
	least := int64(min(w.maxTokens, leastSummary))
	room := fits - (s.raw() - old) - int64(s.SummaryTokens(""))
	if room < least {
		return nil
	}
	return &summaryPlan{forNames: w.share(room, least, min(mostNames, w.maxTokens/4))}
}

// share divides the room for a summary: it lowers w.maxTokens to what the text may have, but
// not below least, and returns how much of forNames the names may have.
func (w *writer) share(room, least int64, forNames int) int {
	forNames = max(min(forNames, clampInt(room-least)), 0)
	w.maxTokens = min(w.maxTokens, clampInt(room-int64(forNames)))
	return forNames
}

// unread returns the entries with results that were cleared before a summarizer has read them,
// as they were, if g.readFrom is set. Those of which nothing more can be read are not among them.
func (g *Goal) unread(ctx context.Context, s *Snapshot) (list []source) {
	if g.readFrom == 0 {
		return nil
	}
	for _, e := range s.list {
		if e.missing() == 0 || e.final || !hasCleared(&e.msg) || s.summary.hasRead(e.id) {
			continue
		}
		if read := g.original(ctx, s, e.id); int64(read.Tokens) > e.tokens {
			list = append(list, source{e.id, &read.Message, int64(read.Tokens)})
		}
	}
	return list
}

// collect sets what the summarizer reads: the entries to drop, and the results that were
// cleared, with their calls. A result that the present summary has read is shown as in the
// view.
func (w *writer) collect(ctx context.Context, g *Goal, p *summaryPlan, cleared []source) {
	w.words = p.words
	w.sources = make([]source, 0, len(p.drop)+2*len(cleared))
	msgs := make([]Message, len(p.drop))
	for i, id := range p.drop {
		e := w.s.find(id)
		if w.s.summary.hasRead(id) && !e.final {
			w.sources = append(w.sources, sourceOf(e))
			continue
		}
		read := g.original(ctx, w.s, id)
		msgs[i] = read.Message
		w.sources = append(w.sources, source{id, &msgs[i], int64(read.Tokens)})
		w.unread = addClamped(w.unread, read.Missing)
	}
	for _, src := range cleared {
		if hasID(p.drop, src.id) {
			continue
		}
		call := w.s.find(w.s.find(src.id).head)
		if !slices.ContainsFunc(w.sources, func(x source) bool { return x.id == call.id }) {
			w.sources = append(w.sources, sourceOf(call))
		}
		w.sources, w.read = append(w.sources, src), append(w.read, src.id)
	}
	sortByID(w.sources, func(s *source) ID { return s.id })
	w.collectPinned()
}

// before returns the Summary.before of an edit that drops entries: the present summary, or what
// was before it if this edit reads nothing that stays, with what Extract makes of the entries.
func (w *writer) before(ctx context.Context, g *Goal, drop []ID) (was *placedSummary, err error) {
	base := cmp.Or(w.s.summary, noSummary)
	if len(w.read) == 0 {
		base = base.sum.before
	}
	if base == nil || len(drop) == 0 {
		return nil, nil
	}
	x := writer{s: w.s.withoutSummary(), count: w.count, maxTokens: max(w.maxTokens/4, leastExtract)}
	for _, src := range w.sources { // they are redacted
		if !hasID(drop, src.id) {
			continue
		}
		if w.s.summary.hasRead(src.id) { // those before it have not
			m := g.original(ctx, w.s, src.id).Message
			if m, err = safely("Options.Redact", func() Message { return redacted(&m, w.redact) }); err != nil {
				return nil, err
			}
			src.msg = &m
		}
		x.sources = append(x.sources, src)
	}
	sum, err := x.extract(ctx)
	if err != nil {
		return nil, nil // then it is not known
	}
	return base.newest(mostBefore).extended(sum.Text), nil
}

// planCut plans a cut as cutTo does, but leaves room for a new summary of
// maxTokens instead of the present one.
func (z Summarize) planCut(s *Snapshot, r room, maxTokens, keep int) cut {
	r.Room = r.Less(int64(s.SummaryTokens("")) + int64(maxTokens) - s.summary.tokens())
	return cutTo(s, r, z.maxTail(keep < len(s.list)), keep)
}

// maxTail returns the maxTail argument of cutTo. keeps reports whether KeepLast or
// KeepTurns keeps any entry.
func (z Summarize) maxTail(keeps bool) int64 {
	if z.KeepTokens == 0 && keeps {
		return -1
	}
	return int64(z.KeepTokens)
}

// callsModel reports whether a summarizer may call a model, as all but Extract may.
func callsModel(with Summarizer) bool {
	switch with.(type) {
	case nil, Extract, *Extract:
		return false
	}
	return true
}

// A writer requests one summary from a summarizer, in as many calls as needed.
type writer struct {
	with       Summarizer
	prompt     string
	focus      string
	window     int           // 0 or less: no bound
	windowName string        // name of the option that set window
	maxTokens  int           // of the summary
	timeout    time.Duration // of each call; 0 or less: no bound
	maxResult  int           // maximum tokens of one result in a transcript; 0: by the window; negative: all
	words      userWords     // these stay
	previous   string        // the summary to update
	oldNames   string        // its Names
	next       []source      // the first message that stays after the sources; empty: none
	redact     func(Message) Message
	inTurn     bool      // others may follow: all calls end while there is time left until ctx's deadline
	until      time.Time // when they end; zero: no bound
	s          *Snapshot
	count      func(string) int

	sources    []source
	read       []ID      // the entries that stay: of the sources those with results cleared, and those of said; ascending
	system     []source  // they stay in the view in addition to the summary
	pinned     []source  // these also stay in the view
	said       []source  // messages of the user, which stay yet
	sent       *Snapshot // see Goal.Sent
	sentTokens int
	unread     int            // tokens cut out of results, here or earlier
	media      int            // tokens of the media in the sources, which only sent shows; 0: they are in unread
	notes      *extract.Notes // nil: the sources were not read yet

	work Effort
}

// A source is a message to summarise.
type source struct {
	id     ID
	msg    *Message
	tokens int64 // raw
}

// sourceOf returns an entry as it is in the view.
func sourceOf(e *entry) source { return source{e.id, &e.msg, e.tokens} }

// tokensOf returns the raw tokens of sources.
func tokensOf(list []source) int64 {
	return sums.Over(list, func(s source) int64 { return s.tokens })
}

// messagesOf returns copies of the messages of sources.
func messagesOf(list []source) []Message {
	msgs := make([]Message, len(list))
	for i := range list {
		msgs[i] = list[i].msg.clone()
	}
	return msgs
}

// names returns the Summary.Names to use after an edit that drops entries.
func (w *writer) names(summary *Summary, drop []ID, most int) string {
	if w.notes == nil {
		w.notes, _ = notesOf(w.sources)
	}
	return w.notes.Line(w.previous+"\n"+w.oldNames, summary.Text, namesLine, w.staying(drop), most, w.count)
}

// staying yields the texts that stay in the view, the newest messages first.
func (w *writer) staying(drop []ID) iter.Seq[string] {
	stay := slices.Clone(w.s.sys)
	for _, e := range slices.Backward(w.s.list) {
		if !hasID(drop, e.id) {
			stay = append(stay, e)
		}
	}
	return func(yield func(string) bool) {
		for _, e := range stay {
			for _, t := range e.msg.texts {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// collectPinned sets w.pinned and w.said: the messages that stay in front of the newest ones. A
// model reads what the user said while the answers to it leave, and once more when it leaves.
func (w *writer) collectPinned() {
	for i, e := range w.s.list {
		switch {
		case w.s.isPinned(e.head):
			w.pinned = append(w.pinned, sourceOf(e))
		case w.words.has(i) && callsModel(w.with):
			w.said, w.read = append(w.said, sourceOf(e)), append(w.read, e.id)
		}
	}
	slices.Sort(w.read)
}

// stays reports whether list[i] is pinned or in w.words.
func (w *writer) stays(i int) bool {
	return w.words.has(i) || w.s.isPinned(w.s.list[i].head)
}

// reusableSent returns a copy of the snapshot last sent, if it shows the current summary
// and all sources, and the window has room for an instruction and a summary after it.
// Otherwise it returns nil.
func (w *writer) reusableSent(instruction string) *Snapshot {
	if w.sent == nil || w.sent.summary != w.s.summary {
		return nil
	}
	if w.window > 0 && w.sentTokens+w.count(instruction)+w.maxTokens > w.window {
		return nil
	}
	for _, src := range w.sources {
		if e := w.sent.find(src.id); e == nil || !e.msg.sameAs(src.msg) {
			return nil
		}
	}
	own := *w.sent
	return &own
}

// write calls the summarizer, and returns an accepted summary with the usage of all
// calls.
func (w *writer) write(ctx context.Context) (Summary, error) {
	if !callsModel(w.with) {
		return w.extract(ctx)
	}
	if deadline, ok := ctx.Deadline(); ok && w.inTurn {
		w.until = deadline.Add(-time.Until(deadline) / 4)
	}
	for _, e := range w.s.sys {
		w.system = append(w.system, sourceOf(e))
	}
	w.next = w.firstAfter()
	if err := w.prepare(); err != nil {
		return Summary{}, err
	}
	p := w.newPrompt()
	sent := w.reusableSent(p.Task.After())
	chunks, err := w.chunks(p, sent != nil)
	if err != nil {
		return Summary{}, err
	}
	summary, err := w.writeFrom(ctx, p, chunks, sent)
	if sent != nil && isTooLong(err) {
		if chunks, err2 := w.chunks(p, false); err2 == nil && len(chunks) > 1 {
			summary, err = w.writeFrom(ctx, p, chunks, nil)
		}
	}
	if err != nil {
		return Summary{}, err
	}
	w.work.Unread = w.unread
	summary.Usage = w.work.Usage
	return summary, nil
}

// writeFrom calls the summarizer for each chunk. The only one may be asked for after sent, if
// that is not nil.
func (w *writer) writeFrom(ctx context.Context, p *prompt.Prompt, chunks []prompt.Chunk, sent *Snapshot) (summary Summary, err error) {
	previous := w.previous
	for _, chunk := range chunks {
		req := SummaryRequest{
			Prompt:      p.Around(previous, chunk.Text),
			Previous:    previous,
			Messages:    messagesOf(w.sources[chunk.From:chunk.To]),
			System:      messagesOf(w.system),
			Pinned:      messagesOf(slices.Concat(w.pinned, w.said)),
			Focus:       w.focus,
			MaxTokens:   w.maxTokens,
			Instruction: p.Task.After(),
			Count:       w.count,
		}
		if len(chunks) == 1 {
			req.Sent = sent
		}
		if req.Sent == nil {
			w.mediaUnread()
		}
		summary, err = w.summarize(ctx, req)
		if err != nil {
			return Summary{}, err
		}
		previous = summary.Text
	}
	return summary, nil
}

// extract is write for Extract, which reads the messages and needs neither a prompt nor
// a window.
func (w *writer) extract(ctx context.Context) (summary Summary, err error) {
	if err := w.prepare(); err != nil {
		return Summary{}, err
	}
	if ctx.Err() != nil {
		return Summary{}, causeOf(ctx)
	}
	defer catch(&err, "Summarizer")
	var unread int64
	w.notes, unread = notesOf(w.sources)
	summary.Text = w.notes.Summary(w.previous, w.maxTokens, w.count)
	w.unread = addClamped(w.unread, clampInt(unread))
	w.mediaUnread()
	w.work.Unread = w.unread
	summary.Text = strings.TrimSpace(text.Valid(summary.Text))
	return summary, summary.fault()
}

// prepare counts the media in the sources, sets the previous summary and redacts everything.
func (w *writer) prepare() error {
	counter := w.s.counter()
	for _, src := range w.sources {
		for media := range src.msg.allMedia {
			w.media = addClamped(w.media, clampInt(counter.parts([]Part{media})))
		}
	}
	if old := w.s.summary; old != nil {
		w.previous, w.oldNames = old.sum.Text, old.sum.Names
	}
	return w.redactAll()
}

// mediaUnread counts the media as unread: a prompt only names them.
func (w *writer) mediaUnread() { w.unread, w.media = addClamped(w.unread, w.media), 0 }

// redactAll changes what the summarizer sees as Options.Redact says.
func (w *writer) redactAll() (err error) {
	if w.redact == nil {
		return nil
	}
	defer catch(&err, "Options.Redact")
	redactList := func(list []source) {
		for i := range list {
			own := redacted(list[i].msg, w.redact)
			list[i].msg = &own
		}
	}
	for _, list := range [][]source{w.sources, w.system, w.pinned, w.said} {
		redactList(list)
	}
	for _, text := range []*string{&w.previous, &w.oldNames} {
		if *text != "" {
			m := User(*text)
			m = redacted(&m, w.redact)
			*text = m.Text()
		}
	}
	redactList(w.next)
	w.sent = nil
	return nil
}

// summarize calls the summarizer, and checks what it returns. A summary that is too long
// is shortened: by the model, once, and then at the end of a sentence.
func (w *writer) summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	summary, err := w.ask(ctx, req, true)
	n := w.count(summary.Text)
	switch {
	case err != nil || n <= w.maxTokens:
		return summary, err
	case n > mostTooLong*w.maxTokens:
		return summary, &RefusedError{Reason: fmt.Sprintf("the summary has %s tokens, but at most %s were asked for; set the output limit of its model to SummaryRequest.MaxTokens", grouped(n), grouped(w.maxTokens))}
	}
	req.Prompt = prompt.Shorter(w.promptKey(), summary.Text, w.maxTokens)
	req.Previous, req.Instruction, req.Sent = summary.Text, req.Prompt, nil
	if short, err := w.ask(ctx, req, false); err == nil && w.count(short.Text) < n {
		summary = short
	}
	summary.Text = text.Sentence(summary.Text, w.maxTokens, w.count)
	return summary, summary.fault()
}

// mostTooLong is how many times too long a summary may be that is shortened. A longer one
// is something else, such as the prompt.
const mostTooLong = 4

// ask calls the summarizer and returns a summary that is refused only if it is too long.
// If again is set and the call fails, ask calls it a second time if time is left.
func (w *writer) ask(ctx context.Context, req SummaryRequest, again bool) (Summary, error) {
	bounded, cancel := w.bound(ctx)
	defer cancel()
	summary, err := w.askOnce(ctx, bounded, req)
	if err == nil || !again || bounded.Err() != nil {
		return summary, err
	}
	if isFinal(err) {
		if req.Sent == nil {
			return summary, err
		}
		req.Sent = nil
		w.mediaUnread()
	}
	return w.askOnce(ctx, bounded, req)
}

// isFinal reports whether an error of askOnce says that the summarizer would fail again: the
// request was too long, or the summarizer itself refused the answer.
func isFinal(err error) bool {
	failed, ok := err.(*wordedError)
	if !ok {
		return false
	}
	_, refused := failed.Err.(*RefusedError) // not what it wraps: its methods may panic, or never end
	return refused || isTooLong(err)
}

// isTooLong reports whether an error of askOnce says that the request was too long.
func isTooLong(err error) bool {
	failed, ok := err.(*wordedError)
	return ok && IsOverflow(failed.Err)
}

// askOnce makes one call of the summarizer. bounded is ctx with the deadline of the call.
func (w *writer) askOnce(ctx, bounded context.Context, req SummaryRequest) (summary Summary, err error) {
	if ctx.Err() != nil {
		return summary, causeOf(ctx)
	}
	if summary, err = w.call(ctx, bounded, req); err != nil {
		return summary, err
	}
	if err := summary.fault(); err != nil {
		return summary, err
	}
	if err := summary.repeats(); err != nil {
		return summary, err
	}
	kind, remedy := answers.Kind(summary.Text), "if that happens again, use another model to summarise"
	if kind == "" && w.prompt == "" && answers.IsJSON(summary.Text) {
		kind, remedy = "JSON", "ask for it without a response format"
	}
	if kind != "" {
		return summary, &RefusedError{Reason: fmt.Sprintf("the model wrote %s instead of a summary: %q; %s", kind, abbreviate(summary.Text), remedy)}
	}
	summary.Text = answers.WithoutReasoning(summary.Text)
	return summary, nil
}

// call calls the summarizer, counts the call and its usage, and turns a panic into an
// error. It waits for the summarizer until bounded ends, and no longer.
func (w *writer) call(ctx, bounded context.Context, req SummaryRequest) (summary Summary, err error) {
	w.work.Calls++
	summary, err = await(bounded, "Summarizer", func() (Summary, error) { return w.with.Summarize(bounded, req) })
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = context.Cause(bounded)
	}
	if summary.Usage.fault() != nil {
		summary.Usage = Usage{}
	}
	w.work.Usage = w.work.Usage.plus(summary.Usage)
	if err != nil {
		return summary, worded("summarizer: "+withoutPrefix(err), err)
	}
	summary.Text = strings.TrimSpace(text.Valid(summary.Text))
	return summary, nil
}

// bound returns ctx with the deadline for a call of the summarizer.
func (w *writer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := time.Now().Add(w.timeout)
	switch {
	case w.timeout > 0 && (w.until.IsZero() || ends.Before(w.until)):
		return context.WithDeadlineCause(ctx, ends, fmt.Errorf("no answer within %v; raise Summarize.Timeout, or use a faster model: %w", w.timeout, context.DeadlineExceeded))
	case !w.until.IsZero():
		return context.WithDeadlineCause(ctx, w.until, fmt.Errorf("no answer within three quarters of the time until the deadline of ctx; give ctx more time, or use a faster model: %w", context.DeadlineExceeded))
	}
	return ctx, func() {}
}

// Handoff returns a summary of the whole view, without Covers, for an [Edit] of another
// agent's History, whose own summary it replaces. It does not have the pinned messages
// word for word: append and pin them there, and then the question, without which no
// answer is awaited. h does not change. Handoff does not wait for a running compaction.
//
// The summarizer with writes the summary; nil means [Extract]. The focus is what the
// summary should concentrate on, and may be empty. A model is shown at most an eighth of
// Limits.Window of a tool result. The summary has at most an eighth of Limits.Low, or 500
// tokens if that is more; a longer one is shortened.
//
// The error matches [ErrNoGain] if there is nothing to summarise. It is a [*RefusedError]
// for a summary that [Summarize] refuses, and a [*ValueError] if Limits.Window is too
// small for the prompt, which Extract does not need. Otherwise it is that of the
// summarizer, of ctx, or, for the zero History, [ErrClosed].
func (h *History) Handoff(ctx context.Context, with Summarizer, focus string) (_ Summary, err error) {
	defer catch(&err, "Options.Tokenizer")
	if h.ident == nil {
		return Summary{}, ErrClosed
	}
	if ctx == nil {
		ctx = context.Background()
	}
	var s, sent *Snapshot
	var tokens int
	h.locked(func() {
		s = h.snapshotLocked()
		sent, tokens = h.lastSent()
	})
	if len(s.list) == 0 && s.summary == nil {
		return Summary{}, worded("the conversation is empty, so there is nothing to summarise; append to it first", ErrNoGain)
	}
	w := writer{
		with: with, window: s.setting.Window, windowName: "Limits.Window", maxTokens: maxSummary(s.setting.Low), focus: focus,
		s: s, sent: sent, sentTokens: tokens, count: (&Goal{}).count(s), redact: h.opts.Redact,
	}
	originals := h.newOriginals(s)
	for _, e := range s.list {
		read, _ := originals.read(ctx, e.id)
		w.sources = append(w.sources, source{e.id, &read.Message, e.tokens})
	}
	summary, err := w.write(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = errorf("handoff stopped: %w", causeOf(ctx))
		}
		return Summary{}, err
	}
	summary.Covers = nil // the summarizer may have set it; the IDs of h mean nothing to another History
	if old := s.summary; old != nil {
		summary.Updates = min(old.sum.Updates, maxUpdates-1) + 1
	}
	return summary, nil
}
