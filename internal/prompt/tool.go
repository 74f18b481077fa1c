package prompt

// CompactTool describes the tool with which a model asks for a compaction.
const CompactTool = "Replaces the older messages of this conversation by a summary, which makes room. " +
	"Call it when a sub-task is done and its details are no longer needed. " +
	"Do not call it in the middle of a derivation, an edit or a search whose results you still need, nor after each step. " +
	"The newest messages stay. Say what you do next, so that you can go on from there."

// CompactSchema is the schema of its arguments.
const CompactSchema = `{"type":"object","properties":{` +
	`"next":{"type":"string","description":"What you do next, and what you need for it: names, paths and values, word for word. You will read it after the summary."}},` +
	`"required":["next"]}`
