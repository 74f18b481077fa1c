// Command eino runs the measurements of bench with the middlewares of eino.
package main

import "github.com/seed-c1b73e60/convo/bench/peer"

func main() { peer.Main(library) }

var library = peer.Peer{
	Modules: []string{"github.com/cloudwego/eino"},
	Cells: []peer.Cell{
		{Table: peer.TableAppend, Name: "eino (the caller's slice)", New: einoAppend},
		{Table: peer.TableCheck, Name: "eino summarization, no usage", New: func(n int) peer.Case { return einoCheck(n, false) }},
		{Table: peer.TableCheck, Name: "eino summarization, usage on the last answer", New: func(n int) peer.Case { return einoCheck(n, true) }},
		{Table: peer.TableCheck, Name: "eino clearing", New: einoCheckClearing},
		{Table: peer.TableStep, Name: "eino summarization", New: func(n int) peer.Case { return einoStep(n, false) }},
		{Table: peer.TableStep, Name: "eino summarization, keeps the summary alone", New: func(n int) peer.Case { return einoStep(n, true) }},
		{Table: peer.TableTrim, Name: "eino summarization", New: func(n int) peer.Case { return einoTrim(n, false) }},
		{Table: peer.TableTrim, Name: "eino summarization, keeps the summary alone", New: func(n int) peer.Case { return einoTrim(n, true) }},
	},
	Talks: []peer.Keeper{
		{Name: "eino summarization", New: newSummaryKeeper},
		{Name: "eino clearing", New: newClearKeeper},
	},
	Costs: []peer.Keeper{
		{Name: "eino summarization", New: func(job peer.Job) (peer.Keep, error) { return newCostKeeper(job, false) }},
		{Name: "eino reduction, then summarization", New: func(job peer.Job) (peer.Keep, error) { return newCostKeeper(job, true) }},
	},
	Notes: []peer.Note{
		{Table: peer.TableAppend, Text: "eino wins this row, because it appends to a slice of the caller. The work that it saves here is done at every check."},
		{Table: peer.TableCheck, Text: "eino's clearing wins at 10 messages, where it is a loop over a short list without a lock. Clearing, and summarization without usage, count everything each time. With the provider's usage on the last answer, eino counts only what follows that answer, so its time does not grow either. It takes no lock, and its list belongs to one goroutine."},
		{Table: peer.TableStep, Text: "eino keeps a summary, and by default the newest 30,000 tokens of user messages in its text. It reduces seldom, because it keeps little. No row includes the time of a summarising model."},
		{Table: peer.TableTrim, Text: "eino cannot trim. It counts, copies, and replaces everything with one message: a summary, and by default the newest 30,000 tokens of user messages. The model's time is left out, and nothing else reads what leaves."},
		{Table: peer.TableRead, Text: "eino has no container to read from."},
		{Table: peer.TablePairs, Text: "eino replaces everything with a summary, or the text of results with a placeholder, so there is no pair to break. The newest message is then in the summary too, even if it is the question or a result. Clearing alone does not bring a request under the limit."},
	},
}
