// Package cost tells what a conversation costs under a provider's prompt cache,
// by how its history is kept small: with convo, with other Go libraries, with
// simple rules, and at best.
//
// # The bill
//
// A conversation is replayed message by message, with a request before each
// assistant message. What a request begins with exactly as the one before is
// read from the cache, when it is long enough; the rest is written to it, or
// costs the plain price where the whole request is too short; the answer is
// output. A pause longer than the cache lives makes it empty. Prices, least
// length, time to live and pauses are free to set ([Prices], [Cache], [Clock]).
// Tool schemas are not billed: they are the same for everybody.
//
// Conversations are generated from a seed ([AgentRun], [React], [Chat]) or read
// from JSONL ([ReadMessages]); [Write] takes those in the folder that the
// environment variable [Transcripts] names. To replay your own:
//
//	go run ./cost/replay -file x.jsonl -limit 20000
//
// # The optimum
//
// It ranges over policies that know the whole conversation, and choose before
// each request where to cut, never further back than before, and how many tool
// results to clear, oldest first, never fewer. What is sent holds the system
// messages, the user messages of the turn that the cut is inside of, and all
// that follows the cut; the newest exchange and the newest user messages stay;
// no exchange is torn; no request is above the limit. convo's Truncate,
// ClearToolResults, SlidingWindow and chains of them are such policies, at any
// marks and whenever they run, so the optimum is a bound for them. It is not
// one for summaries, for holes in the middle, or for requests above the limit.
//
// Whoever retains less pays less, so costs are compared at equal retention: the
// optimum must send at least as many tokens, over all conversations of a row
// together, as the policy that it is compared with. That makes one price for
// retained tokens; for each price a dynamic programme over (cut, cleared) finds
// the cheapest plan, and the prices in turn give a lower bound by duality and a
// plan above it. Distances are to the lower bound, so they are upper bounds of
// the true ones. Tests compare the programme with all plans there are, on small
// conversations.
//
// The distance says whether a policy gets as much for its money as can be got.
// It does not say how much to retain: a policy that fills the window to the
// brim pays several times as much and may be near its own optimum.
//
// # What the defaults rest on
//
// Figures are for the first of the [Profiles], on 361 real conversations
// chained into 12 long ones (five sets) and 12 generated ones (four kinds),
// with limits of 8,000 to 100,000 tokens. The defaults are 0.8 to 6.5 % above
// the optimum on the nine, 1.0 to 8.0 % in half the window, 0.2 to 3.2 % in
// twice the window; less with the other profiles. In a chat of 400 turns within
// 20,000 tokens 97.3 % of each request is a prefix of the one before.
//
// Low water is half of High. No mark is cheapest: the lower it is, the less is
// retained and paid. What tells is what a token costs that is retained in one
// request more, where reading it costs 0.1. From 40 % to half of High it is
// 0.13 to 0.26 units; on to two thirds up to 0.28, three quarters up to 0.33,
// nine tenths up to 0.87: there the price is for rewriting. At three quarters the
// distance to the optimum is up to 11.6 %, at nine tenths up to 23 %.
//
// Tool results are cleared before anything is dropped. Without that, agent runs
// of 150 and 400 steps are 5.7 and 9.8 % above the optimum instead of 1.8 and
// 6.5; on the others it changes 0.6 points at most. To keep the results
// of 1, 3, 5 or 10 exchanges, or to clear whatever it frees, changes 1.5 points
// at most: that is left to what a model needs. When clearing frees 30 to 40 % of
// High, not to drop anything beside it is about 3 % cheaper at equal retention on
// 400 steps, 1 to 2 % on short turns with tools, and about 1 % dearer on two
// other sets: too little either way for another rule.
//
// A planner that sets Low by the measured growth per request does not beat fixed
// marks: at equal retention it is within 1 % of them but on one short set.
//
// To compact while the cache is cold does beat them. When a pause that is longer
// than the cache lives comes before every 25th request, a host that halves the
// way from Low to High for the first request after it (SetLimits, Prepare,
// SetLimits) pays 4 to 8 % less than with a fixed mark that retains as much.
// Before every 100th request it is 8 % at most, in a chat nothing, and without
// pauses nothing changes. Only the host knows how long its provider remembers,
// so it is no default.
//
// A summary whose request begins as the last one did costs 4 to 12 % less, over
// the whole conversation, than one with a request of its own.
package cost
