// Command trpc runs the measurements of bench with the sessions and the tailoring
// of trpc-agent-go.
package main

import (
	"trpc.group/trpc-go/trpc-agent-go/model"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() { peer.Main(library) }

var library = peer.Peer{
	Modules: []string{"trpc.group/trpc-go/trpc-agent-go"},
	Cells: []peer.Cell{
		{Table: peer.TableAppend, Name: "trpc-agent-go AppendEvent", New: trpcAppend},
		{Table: peer.TableCheck, Name: "trpc-agent-go CheckTokenThreshold", New: trpcCheckSummary},
		{Table: peer.TableCheck, Name: "trpc-agent-go HeadOut under budget", New: trpcCheckTailoring},
		{Table: peer.TableStep, Name: "trpc-agent-go HeadOut", New: func(n int) peer.Case { return trpcStep(n, headOut(trpcCounter)) }},
		{Table: peer.TableStep, Name: "trpc-agent-go MiddleOut", New: func(n int) peer.Case { return trpcStep(n, middleOut(trpcCounter)) }},
		{Table: peer.TableTrim, Name: "trpc-agent-go HeadOut", New: func(n int) peer.Case { return trpcTrim(n, headOut(trpcCounter)) }},
		{Table: peer.TableTrim, Name: "trpc-agent-go MiddleOut", New: func(n int) peer.Case { return trpcTrim(n, middleOut(trpcCounter)) }},
		{Table: peer.TableRead, Name: "trpc-agent-go GetSession", New: trpcRead},
	},
	Talks: []peer.Keeper{
		tailored("trpc-agent-go HeadOut", headOut),
		tailored("trpc-agent-go MiddleOut", middleOut),
		tailored("trpc-agent-go TailOut", func(c model.TokenCounter) model.TailoringStrategy { return model.NewTailOutStrategy(c) }),
	},
	Costs: []peer.Keeper{
		tailored("trpc-agent-go HeadOut", headOut),
		tailored("trpc-agent-go MiddleOut", middleOut),
	},
	Notes: []peer.Note{
		{Table: peer.TableAppend, Text: "trpc-agent-go writes to two copies of a session (the caller's and the store's) under locks, and merges state. Its events were created beforehand."},
		{Table: peer.TableCheck, Text: "trpc-agent-go joins the texts of all events before it counts them. Its tailoring checks and copies even a request that fits."},
		{Table: peer.TableStep, Text: "trpc-agent-go stays at the limit and reduces in every turn. On average it keeps half as many messages again as convo."},
		{Table: peer.TableTrim, Text: "trpc-agent-go counts all messages each time. HeadOut is linear, and MiddleOut quadratic with a small constant. Neither reads what it drops; convo's default writes an extract of it, and its row Truncate alone does not."},
		{Table: peer.TableRead, Text: "trpc-agent-go's GetSession copies events."},
		{Table: peer.TablePairs, Text: "trpc-agent-go drops whole rounds that begin with a user message. It removes results with empty text but not their calls, even if the request is within the budget. If a single round exceeds the budget, it returns the request with an error."},
	},
}

func headOut(c model.TokenCounter) model.TailoringStrategy   { return model.NewHeadOutStrategy(c) }
func middleOut(c model.TokenCounter) model.TailoringStrategy { return model.NewMiddleOutStrategy(c) }
