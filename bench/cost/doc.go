// Package cost simulates what a conversation costs with a provider's prompt cache,
// depending on how it is kept within a limit. It compares convo, other Go
// libraries, simple rules, and the optimum.
//
// # The bill
//
// A conversation is replayed message by message, with a request before each
// assistant message. The part of a request that repeats the beginning of the
// request before is read from the cache, if it is long enough. The rest is
// written to the cache, or costs the uncached price if the whole request is too
// short. The answer is output. After a pause longer than its time to live the
// cache is empty. Prices, the shortest cached length, the time to live and pauses
// can be set ([Prices], [Cache], [Clock]). Tool definitions are not billed, since
// they are the same for every policy.
//
// Conversations are generated ([AgentRun], [React], [Chat]) or read from JSONL
// ([ReadMessages]). [Write] also replays those in the directory that the
// environment variable [Transcripts] names. The subcommand "convo replay" replays your own
// with and without convo, by the same arithmetic: TestCommand compares the two.
//
// # The optimum
//
// The optimum is the lowest cost of any policy in the following class. A policy
// of the class may know the whole conversation. Before each request it chooses
// where to cut, at the same place as before or later, and how many tool results
// to clear, oldest first, as many as before or more. The request then holds the
// system messages, the user messages of the turn in which the cut falls, and
// everything after the cut. The newest exchange and the newest user messages
// always stay, an exchange stays or goes as a whole, and no request is above the
// limit. Policies in the class cannot cost less than the optimum. Summaries, gaps in
// the middle, and requests above the limit are outside the class, and so is convo,
// which keeps the user's words in front of a cut and clears the large results of the
// newest exchanges before small messages.
//
// A policy that retains less also pays less, so costs are compared at equal
// retention: over all conversations of a row together, the optimum must send at
// least as many tokens as the policy that it is compared with. This constraint
// becomes a reward for each retained token (a Lagrange multiplier). For a given
// reward, dynamic programming over (cut, cleared) finds the best plan. Varying
// the reward gives a lower bound of the optimum, by duality, and a plan whose
// cost is an upper bound. The tables compare with the lower bound, so the true
// distance from the optimum is at most the one shown. Tests compare the dynamic
// programming with a search through all plans, on small conversations.
//
// The distance says how well a policy spends its money for what it retains. It
// does not say how much to retain. A policy that always fills the window pays
// several times as much, and may still be near the optimum for that retention.
//
// # The reasons for the defaults
//
// The figures are for the first of the [Profiles] and nine sets of conversations:
// five sets of real ones, 361 in all, chained into 12 long ones, and four sets of
// generated ones, 12 in all. Limits are from 8,000 to 100,000 tokens. The defaults
// cost 0.6 to 6.0 % more than the optimum on the nine sets, 0.8 to 8.1 % more with
// half the limit, and 0.3 to 4.1 % more with twice the limit. With the other
// profiles it is less. In a chat of 400 turns within 20,000 tokens, 97.3 % of the
// requests' tokens repeat the beginning of the request before.
//
// Low is half of High. No value of Low is the cheapest, because a lower one
// retains less and costs less. The question is what it costs to retain one more
// token in one more request, when reading it from the cache costs 0.1 units.
// Raising Low from 40 % to 50 % of High costs 0.13 to 0.26 units for each token
// gained, from there to two thirds up to 0.28, to three quarters up to 0.33, and
// to nine tenths up to 0.87, because the cache is written so often. With Low at
// three quarters the cost is up to 11.6 % above the optimum, and at nine tenths up
// to 23 %.
//
// Tool results are cleared before anything is dropped. Without clearing, agent
// runs of 150 and 400 steps cost 5.7 and 9.8 % more than the optimum, instead of
// 1.4 and 4.9 %. On the other sets the difference is at most 0.6 percentage
// points. Keeping the results of 1, 3, 5 or 10 exchanges, or clearing however
// little it frees, changes the cost by at most 1.5 points, so this choice can be
// left to what the model needs. If clearing frees 30 to 40 % of High and nothing is
// dropped besides, then at equal retention 400 steps cost about 3 % less, short
// turns with tools 1 to 2 % less, and two other sets about 1 % more. That is too
// little to justify another rule.
//
// Setting Low from the measured growth per request is no better than a fixed Low:
// at equal retention the costs are within 1 % of each other, except on one short
// set.
//
// Compacting while the cache is empty is better. Suppose that a pause longer than
// the cache's time to live comes before every 25th request. A History that is told
// of the time to live compacts above Limits.Soft after each pause. With Soft
// halfway between Low and High, it pays 13 % less in a chat, and 5 and 9 % less with
// tools, than without: 1 to 11 % above the optimum in place of 11 to 17 %
// (TestWhenCold). Without pauses nothing changes.
//
// If the request for a summary begins with the last request of the conversation,
// the whole conversation costs 4 to 12 % less than if it is a separate request.
package cost
