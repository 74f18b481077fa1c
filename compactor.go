package convo

// A compactor knows when a compaction is due, which one runs, and what came of the last ones.
type compactor struct {
	compacting slot       // taken while a compaction runs
	trigger    Trigger    // of Options.Strategy; nil: it has none, or all are in counting
	counting   []counting // the Triggers of Options.Strategy, if all are of this kind
	byMedia    bool       // there is no Trigger, or the number of media is all that they look at
	direct     bool       // Options.Strategy returns when its ctx ends

	compacted   uint64     // the version that the last compaction made; noVersion: none
	ready       *readyEdit // see Options.CacheTTL; nil: none
	declined    uint64     // 1 more than the newest version for which a triggered compaction was declined; 0: none was
	declineTold uint64     // 1 more than the version at the last such decline; 0: none since the limits were set
	breaker     breaker    // for summarizers
	lastFocus   string     // focus of the compaction that made the last edit; empty: none
	current     *flight    // the compaction that started last; nil: it has ended
	background  *background
	warned      bool   // it was reported that nothing is compacted until a provider refuses a request
	heldSince   uint64 // version made by the newest Undo; 0: there was none, or an edit was applied since
	heldAt      int64  // appendedEver at that time
}
