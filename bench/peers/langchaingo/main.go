// Command langchaingo runs the measurements of bench with the memory of
// langchaingo.
package main

import (
	"io"
	"log"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func main() {
	log.SetOutput(io.Discard) // langchaingo logs a warning at every count
	peer.Main(library)
}

var library = peer.Peer{
	Modules: []string{"github.com/tmc/langchaingo"},
	Cells: []peer.Cell{
		{Table: peer.TableAppend, Name: "langchaingo AddUserMessage/AddAIMessage", New: langchainAppend},
		{Table: peer.TableCheck, Name: "langchaingo SaveContext", New: langchainCheck},
		{Table: peer.TableStep, Name: "langchaingo SaveContext", New: langchainStep},
		{Table: peer.TableTrim, Name: "langchaingo SaveContext", New: langchainTrim, QuickMax: 100},
		{Table: peer.TableRead, Name: "langchaingo Messages", New: langchainRead},
		{Table: peer.TableRead, Name: "langchaingo LoadMemoryVariables", New: langchainPrompt},
	},
	Talks: []peer.Keeper{{Name: "langchaingo token buffer", New: newTalkKeeper}},
	Costs: []peer.Keeper{{Name: "langchaingo ConversationTokenBuffer", NoTools: true, New: newBufferKeeper}},
	Notes: []peer.Note{
		{Table: peer.TableAppend, Text: "langchaingo wins this row, because it only appends to a slice. The work that it saves here is done at every check."},
		{Table: peer.TableCheck, Text: "langchaingo checks only inside SaveContext, which also appends two messages."},
		{Table: peer.TableStep, Text: "langchaingo stays at the limit and reduces in every turn. On average it keeps half as many messages again as convo."},
		{Table: peer.TableTrim, Text: "langchaingo counts all remaining messages again after each message that it drops, which is quadratic."},
		{Table: peer.TableRead, Text: "langchaingo's Messages wins this row, because it returns its own slice. A later trim overwrites that slice while the reader still uses it."},
		{Table: peer.TablePairs, Text: "langchaingo's SaveContext takes an input and an output. Here tool rounds are added with ChatMessageHistory.AddMessage, and the token buffer reduces at the next SaveContext. Most agents with langchaingo keep tool rounds out of the memory, and then there is no pair to break. It does not count tool calls and reduces only at the end of a turn, so requests inside a turn may exceed the budget."},
	},
}
