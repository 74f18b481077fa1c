// Command adk runs the measurements of bench with the sessions of adk-go.
package main

import "github.com/seed-c1b73e60/convo/bench/peer"

func main() { peer.Main(library) }

var library = peer.Peer{
	Modules: []string{"google.golang.org/adk/v2"},
	Cells: []peer.Cell{
		{Table: peer.TableAppend, Name: "adk-go AppendEvent", New: adkAppend},
		{Table: peer.TableRead, Name: "adk-go Get", New: adkRead},
		{Table: peer.TableRead, Name: "adk-go, a whole turn, model answers at once", New: adkTurn},
	},
	Notes: []peer.Note{
		{Table: peer.TableAppend, Text: "adk-go writes to two copies of a session (the caller's and the store's) under locks, and merges state. Its events were created beforehand."},
		{Table: peer.TableStep, Text: "adk-go v2.2.0 has no reduction."},
		{Table: peer.TableRead, Text: "adk-go's Get copies pointers to events that the store keeps using, and wins this row at 10 messages."},
		{Table: peer.TableRead, Text: "adk-go makes a request only inside a turn, which also appends two events, writes traces and starts an invocation."},
		{Table: peer.TablePairs, Text: "adk-go v2.2.0 has no reduction."},
	},
}
