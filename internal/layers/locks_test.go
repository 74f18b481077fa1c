package layers_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lockExceptions are the functions that call a method whose name ends in Locked
// without the lock, each with its reason.
var lockExceptions = map[string]string{
	"newHistory":         "no other goroutine has the History yet",
	"History.settleLoad": "no other goroutine has the History yet",
	"reading.open":       "no other goroutine has the History yet",
	"History.needFor":    "acceptLocked calls its literals with the lock held",
	"attempt.apply":      "commitEdit calls acceptLocked with the lock held",
}

// Code that holds both locks has taken History.mu first. While a lock is held, functions
// that take it are not called, and neither is caller-supplied code: functions in fields
// of Options, and methods of interfaces that the caller can implement. A method whose
// name ends in Locked is only called with the lock held.
//
// The test reads each function from top to bottom. After a branch, a lock counts as held
// if it is held at the end of any path that continues. Naming a function counts as
// calling it. A function literal that is immediately called or deferred, or passed to
// another package, runs in place. One that is passed to locked, change or ifOpen runs with the lock
// held. Any other literal runs later, without a lock.
//
// It does not distinguish between histories, or between budgets. It does not see which
// function a variable or a field holds. It therefore misses calls by a literal that is
// stored and later called under a lock, and by methods that are called through an
// interface of this package; those methods are checked alone. Methods of interfaces of
// other packages, such as context.Context, do not count as caller-supplied, except those
// of slog.Logger.
func TestLocks_Order(t *testing.T) {
	faults, g, unused := loadPackage(t, "").lockFaults(lockExceptions)
	for _, fault := range faults {
		t.Error(fault)
	}
	assert.Empty(t, unused, "exceptions that nothing needs")
	var lockBudget, locked int
	for f, node := range g {
		if node.locks[budgetLock] {
			lockBudget++
		}
		if strings.HasSuffix(f.Name(), "Locked") {
			locked++
		}
	}
	require.Greater(t, lockBudget, 3)
	require.Greater(t, locked, 10)
}

// A panic leaves no mutex locked: each is unlocked by defer.
func TestLocks_Deferred(t *testing.T) {
	pkg := loadPackage(t, "")
	deferred := map[ast.Node]bool{}
	unlocks := 0
	for _, f := range pkg.ast {
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.DeferStmt); ok {
				deferred[d.Call] = true
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Unlock" {
				return true
			}
			unlocks++
			if !deferred[call] {
				t.Errorf("%s: Unlock without defer", pkg.fset.Position(call.Pos()))
			}
			return true
		})
	}
	require.Greater(t, unlocks, 10)
}

func TestLocks_OrderRefuses(t *testing.T) {
	common := map[string]string{"history.go": `package convo
		import ("sync"; "log/slog")
		type Tokenizer interface { Count() int }
		type part interface { weigh() int }
		type Options struct { Pin func() bool; Tokenizer Tokenizer; Logger *slog.Logger; Budget *Budget }
		type History struct { opts Options; mu sync.Mutex; part part; note func() }
		type Budget struct { mu sync.Mutex; note func() }
		func (h *History) Len() int { h.mu.Lock(); defer h.mu.Unlock(); return h.lenLocked() }
		func (h *History) lenLocked() int { return 1 }
		func (h *History) asks() bool { return h.opts.Pin() }
		func (b *Budget) Used() int { b.mu.Lock(); defer b.mu.Unlock(); return b.usedLocked() }
		func (b *Budget) usedLocked() int { return 1 }
		func (h *History) locked(f func()) { h.mu.Lock(); defer h.mu.Unlock(); f() }
		func call(f func()) { f() }`}
	// Each source is the body of a method of History.
	held := "h.mu.Lock(); defer h.mu.Unlock(); "
	pool := "b := h.opts.Budget; b.mu.Lock(); defer b.mu.Unlock(); "
	cases := []checkedSource{
		{"calls a locker", held + "h.Len()", "by which Len takes it"},
		{"calls a locker without the lock", "h.Len()", ""},
		{"calls a locker before", "h.Len(); " + held, ""},
		{"calls a locker afterwards", "h.mu.Lock(); h.mu.Unlock(); h.Len()", ""},
		{"calls one that calls a locker", held + "h.g() }; func (h *History) g() { h.Len()", "by which Len takes it"},
		{"takes the lock twice", held + "h.mu.Lock()", "takes History.mu, which it holds"},
		{"after a branch that unlocks", "h.mu.Lock(); if h.part == nil { h.mu.Unlock(); return }; h.Len(); h.mu.Unlock()", "by which Len takes it"},
		{"in a branch that has unlocked", "h.mu.Lock(); if h.part == nil { h.mu.Unlock(); h.Len(); return }; h.mu.Unlock()", ""},
		{"after a branch that locks", "if h.part == nil { h.mu.Lock() }; h.Len(); h.mu.Unlock()", "by which Len takes it"},
		{"in a case", "h.mu.Lock(); switch { case h.part == nil: h.Len() }; h.mu.Unlock()", "by which Len takes it"},
		{"in a loop", "h.mu.Lock(); for range 3 { h.Len() }; h.mu.Unlock()", "by which Len takes it"},
		{"method value", held + "f := h.Len; f()", "by which Len takes it"},
		{"method expression", held + "f := (*History).Len; f(h)", "by which Len takes it"},
		{"pointer to the mutex", "mu := &h.mu; mu.Lock(); defer mu.Unlock()", "uses History.mu other than by"},
		{"method value of the mutex", "f := h.mu.Unlock; h.mu.Lock(); defer f()", "uses History.mu other than by"},
		{"TryLock", "_ = h.mu.TryLock()", "uses History.mu other than by"},
		{"mutex in parentheses", "(h.mu).Lock(); h.Len(); (h.mu).Unlock()", "by which Len takes it"},
		{"literal called at once", held + "func() { h.Len() }()", "by which Len takes it"},
		{"literal that locks, called at once", held + "func() { h.mu.Lock() }()", "takes History.mu, which it holds"},
		{"deferred literal", held + "defer func() { h.Len() }()", "by which Len takes it"},
		{"deferred before the lock", "defer func() { h.Len() }(); " + held, ""},
		{"literal that unlocks, called at once", "h.mu.Lock(); func() { h.mu.Unlock() }(); h.Len()", ""},
		{"stored literal", held + "h.note = func() { h.Len() }", ""},
		{"literal on a goroutine", held + "go func() { h.Len() }()", ""},
		{"method on a goroutine", held + "go h.Len()", ""},
		{"literal for another package", held + "new(sync.Once).Do(func() { h.Len() })", "by which Len takes it"},
		{"literal that runs with the lock", "h.locked(func() { h.lenLocked() })", ""},
		{"literal that runs with the lock and takes it", "h.locked(func() { h.Len() })", "by which Len takes it"},
		{"literal that runs with the lock, which is held", held + "h.locked(func() {})", "by which locked takes it"},
		{"literal for AfterFunc", held + "time.AfterFunc(0, func() { h.Len() })", ""},
		{"method that expects the lock", held + "h.lenLocked()", ""},
		{"without the lock", "h.lenLocked()", "calls lenLocked, which expects History.mu"},
		{"after the lock", "h.mu.Lock(); h.mu.Unlock(); h.lenLocked()", "calls lenLocked, which expects History.mu"},
		{"on a goroutine", held + "go h.lenLocked()", "calls lenLocked, which expects History.mu"},
		{"in a stored literal", held + "h.note = func() { h.lenLocked() }", "calls lenLocked, which expects History.mu"},
		{"with the other lock", "h.opts.Budget.mu.Lock(); h.lenLocked(); h.opts.Budget.mu.Unlock()", "calls lenLocked, which expects History.mu"},
		{"by a method that expects it too", "}; func (h *History) gLocked() { h.lenLocked()", ""},
		{"a locker, by a method that expects the lock", "}; func (h *History) gLocked() { h.Len()", "by which Len takes it"},
		{"function of Options", held + "h.opts.Pin()", "calls Pin, which is the caller's code"},
		{"function of Options by a variable", held + "f := h.opts.Pin; f()", "calls Pin, which is the caller's code"},
		{"function of Options compared", held + "_ = h.opts.Pin != nil", ""},
		{"function of Options without the lock", "h.opts.Pin()", ""},
		{"function of Options by a method", held + "h.asks()", "by which asks calls the caller's code"},
		{"interface of Options", held + "h.opts.Tokenizer.Count()", "calls Count, which is the caller's code"},
		{"interface of Options by a variable", held + "c := h.opts.Tokenizer; c.Count()", "calls Count, which is the caller's code"},
		{"logger", held + "h.opts.Logger.Info(\"\")", "calls Info, which is the caller's code"},
		{"interface of the package", held + "h.part.weigh()", ""},
		{"the locks in order", held + "h.opts.Budget.Used()", ""},
		{"the locks in the other order", pool + "h.mu.Lock()", "holds Budget.mu and takes History.mu"},
		{"the other order by a method", pool + "h.Len()", "by which Len takes History.mu"},
		{"function value under Budget.mu", pool + "b.note()", "holds Budget.mu and calls a function value"},
		{"function value below Budget.mu", pool + "call(nil)", "by which call takes History.mu or calls a function value"},
		{"Budget.mu twice", pool + "b.Used()", "by which Used takes it"},
		{"method of Budget without the lock", held + "h.opts.Budget.usedLocked()", "calls usedLocked, which expects Budget.mu"},
	}
	for i := range cases {
		cases[i].source = "import (\"sync\"; \"time\")\nvar _, _ = sync.OnceFunc, time.Now\nfunc (h *History) f() { " + cases[i].source + " }"
	}
	checkSources(t, common, "x.go", cases, func(l *loaded) []string { faults, _, _ := l.lockFaults(nil); return faults })
}

// A lock is a set of the two mutexes.
type lock int

const (
	historyLock lock = 1 << iota
	budgetLock
)

func (k lock) String() string {
	return [...]string{"no lock", "History.mu", "Budget.mu", "History.mu and Budget.mu"}[k]
}

// A callNode describes what a function does according to its own text, without the
// literals that run later.
type callNode struct {
	calls map[*types.Func]bool // nil: a function value, or a method of an interface
	locks map[lock]bool
	user  bool // it calls caller-supplied code
}

type callGraph map[*types.Func]*callNode

// A lockCheck follows the locks through the functions of a package.
type lockCheck struct {
	*loaded
	mutexes map[types.Object]lock
	options map[types.Object]bool      // fields of Options that are functions
	inPlace map[*ast.FuncLit]bool      // literals that run in place
	direct  map[*ast.SelectorExpr]bool // selectors of a mutex whose Lock or Unlock is called
	graph   callGraph

	// Set in the second pass:
	report func(pos token.Pos, text string)

	// State of the current function:
	node   *callNode
	later  bool // inside a literal that runs later
	exempt bool // a method that expects the lock may be called without
}

// lockFaults returns the violations of the rules about locks, and the exceptions that
// were not needed.
func (l *loaded) lockFaults(exceptions map[string]string) (faults []string, g callGraph, unused map[string]string) {
	c := &lockCheck{
		loaded: l, mutexes: map[types.Object]lock{}, options: map[types.Object]bool{},
		inPlace: map[*ast.FuncLit]bool{}, direct: map[*ast.SelectorExpr]bool{}, graph: callGraph{},
	}
	for name, k := range map[string]lock{"History": historyLock, "Budget": budgetLock} {
		for field := range l.structOf(name).Fields() {
			if field.Name() == "mu" {
				c.mutexes[field] = k
			}
		}
	}
	for field := range l.structOf("Options").Fields() {
		if _, ok := field.Type().Underlying().(*types.Signature); ok {
			c.options[field] = true
		}
	}
	unused = maps.Clone(exceptions)
	for _, pass := range []bool{false, true} {
		for _, file := range l.ast {
			ast.Inspect(file, c.prepare)
			for _, d := range file.Decls {
				d, ok := d.(*ast.FuncDecl)
				if !ok || d.Body == nil {
					continue
				}
				f := l.info.Defs[d.Name].(*types.Func)
				c.report = nil
				if pass {
					name := f.Name()
					if recv := f.Signature().Recv(); recv != nil {
						name = receiverOf(recv) + "." + name
					}
					c.exempt = exceptions[name] != ""
					c.report = func(pos token.Pos, text string) {
						if c.exempt && strings.Contains(text, "expects") {
							delete(unused, name)
							return
						}
						faults = append(faults, fmt.Sprintf("%s: %s %s", l.fset.Position(pos), name, text))
					}
				}
				c.node = &callNode{calls: map[*types.Func]bool{}, locks: map[lock]bool{}}
				if !pass {
					c.graph[f] = c.node
				}
				c.walk(d.Body, expected(f))
			}
		}
	}
	return faults, c.graph, unused
}

// expected returns the lock that a function expects to be held.
func expected(f *types.Func) lock {
	recv := f.Signature().Recv()
	switch {
	case recv == nil || !strings.HasSuffix(f.Name(), "Locked"):
		return 0
	case receiverOf(recv) == "Budget":
		return budgetLock
	}
	return historyLock
}

// runsLocked reports whether a function calls its argument with the lock held.
func runsLocked(f *types.Func) bool {
	recv := f.Signature().Recv()
	return recv != nil && receiverOf(recv) == "History" && slices.Contains([]string{"locked", "change", "ifOpen"}, f.Name())
}

// prepare finds the literals that run in place, and the uses of a mutex that walk
// understands.
func (c *lockCheck) prepare(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		if f, ok := ast.Unparen(n.Call.Fun).(*ast.FuncLit); ok {
			c.inPlace[f] = false
		}
	case *ast.CallExpr:
		if f, ok := ast.Unparen(n.Fun).(*ast.FuncLit); ok {
			if _, gone := c.inPlace[f]; !gone {
				c.inPlace[f] = true
			}
		}
		if f, ok := c.callee(n).(*types.Func); ok && f.Pkg() != c.pkg && f.Name() != "AfterFunc" {
			for _, arg := range n.Args {
				if f, ok := ast.Unparen(arg).(*ast.FuncLit); ok {
					c.inPlace[f] = true
				}
			}
		}
		if f, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && (f.Sel.Name == "Lock" || f.Sel.Name == "Unlock") {
			if x, ok := ast.Unparen(f.X).(*ast.SelectorExpr); ok {
				c.direct[x] = true
			}
		}
	}
	return true
}

// fault reports a fault, in the second pass.
func (c *lockCheck) fault(pos token.Pos, format string, args ...any) {
	if c.report != nil {
		c.report(pos, fmt.Sprintf(format, args...))
	}
}

// walk follows a statement or an expression that begins with some locks held. It returns
// the locks held at its end, and whether the node ends the path, so that the code after
// it is not reached.
func (c *lockCheck) walk(n ast.Node, held lock) (after lock, ends bool) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return c.walkAll(n.List, held)
	case *ast.ReturnStmt:
		return c.walkParts(n, held), true
	case *ast.BranchStmt:
		return held, n.Tok != token.FALLTHROUGH
	case *ast.LabeledStmt:
		return c.walk(n.Stmt, held)
	case *ast.IfStmt:
		if n.Init != nil {
			held, _ = c.walk(n.Init, held)
		}
		held, _ = c.walk(n.Cond, held)
		then, thenEnds := c.walk(n.Body, held)
		other, otherEnds := held, false
		if n.Else != nil {
			other, otherEnds = c.walk(n.Else, held)
		}
		switch {
		case thenEnds && otherEnds:
			return held, true
		case thenEnds:
			return other, false
		case otherEnds:
			return then, false
		}
		return then | other, false
	case *ast.ForStmt, *ast.RangeStmt:
		return held | c.walkParts(n, held), false
	case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		after := held
		ast.Inspect(n, func(m ast.Node) bool {
			switch m := m.(type) {
			case *ast.CaseClause:
				for _, e := range m.List {
					c.walk(e, held)
				}
				if end, ends := c.walkAll(m.Body, held); !ends {
					after |= end
				}
				return false
			case *ast.CommClause:
				if m.Comm != nil {
					c.walk(m.Comm, held)
				}
				if end, ends := c.walkAll(m.Body, held); !ends {
					after |= end
				}
				return false
			case ast.Expr:
				c.walk(m, held)
				return false
			}
			return true
		})
		return after, false
	case *ast.GoStmt:
		for _, arg := range n.Call.Args {
			c.walk(arg, held)
		}
		later := c.later
		c.later = true
		c.walk(n.Call.Fun, 0)
		c.later = later
		return held, false
	case *ast.DeferStmt:
		c.walk(n.Call, held) // in place; Unlock is deferred
		return held, false
	case *ast.FuncLit:
		if c.inPlace[n] {
			after, _ := c.walk(n.Body, held)
			return after, false
		}
		later := c.later
		c.later = true
		c.walk(n.Body, 0)
		c.later = later
		return held, false
	case *ast.CallExpr:
		return c.walkCall(n, held), false
	case *ast.BinaryExpr:
		if sel, ok := n.X.(*ast.SelectorExpr); ok && c.options[c.info.Uses[sel.Sel]] {
			return held, false // compared with nil
		}
	case *ast.SelectorExpr:
		if k := c.mutexes[c.info.Uses[n.Sel]]; k != 0 && !c.direct[n] {
			c.fault(n.Pos(), "uses %v other than by calling its Lock and Unlock", k)
		}
		held = c.walkParts(n, held)
		c.use(n.Sel, held)
		return held, false
	case *ast.Ident:
		c.use(n, held)
		return held, false
	}
	return c.walkParts(n, held), false
}

func (c *lockCheck) walkAll(list []ast.Stmt, held lock) (after lock, ends bool) {
	for _, n := range list {
		var end bool
		if held, end = c.walk(n, held); end {
			ends = true
		}
	}
	return held, ends
}

// walkParts walks the nodes directly below n, in order.
func (c *lockCheck) walkParts(n ast.Node, held lock) lock {
	ast.Inspect(n, func(m ast.Node) bool {
		if m == n {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				held, _ = c.walk(sel.X, held)
				return false
			}
			return true
		}
		if m != nil {
			held, _ = c.walk(m, held)
		}
		return false
	})
	return held
}

// walkCall follows a call.
func (c *lockCheck) walkCall(n *ast.CallExpr, held lock) lock {
	if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
		if x, ok := ast.Unparen(sel.X).(*ast.SelectorExpr); ok {
			if k := c.mutexes[c.info.Uses[x.Sel]]; k != 0 {
				held, _ = c.walk(x, held)
				return c.lock(n, k, sel.Sel.Name, held)
			}
		}
	}
	if f := c.callee(n); f != nil && f.Pkg() != c.pkg && f.Name() == "AfterFunc" {
		later := c.later
		c.later = true
		c.walkParts(n, 0)
		c.later = later
		return held
	}
	f, _ := c.callee(n).(*types.Func)
	for _, arg := range n.Args {
		if lit, ok := ast.Unparen(arg).(*ast.FuncLit); ok && f != nil && runsLocked(f) {
			c.walk(lit.Body, held|historyLock)
			continue
		}
		held, _ = c.walk(arg, held)
	}
	switch obj := c.callee(n).(type) {
	case *types.Func, *types.Builtin, *types.TypeName:
	default:
		if tv := c.info.Types[n.Fun]; obj == nil && tv.IsType() {
			break // a conversion
		}
		if _, ok := ast.Unparen(n.Fun).(*ast.FuncLit); !ok {
			c.call(nil, n.Pos(), held)
		}
	}
	held, _ = c.walk(n.Fun, held)
	return held
}

// lock follows a call of a method of a mutex.
func (c *lockCheck) lock(n *ast.CallExpr, k lock, method string, held lock) lock {
	switch method {
	case "Lock":
		if !c.later {
			c.node.locks[k] = true
		}
		switch {
		case held&k != 0:
			c.fault(n.Pos(), "takes %v, which it holds", k)
		case held&budgetLock != 0:
			c.fault(n.Pos(), "holds Budget.mu and takes %v", k)
		}
		return held | k
	case "Unlock":
		return held &^ k
	}
	return held // walk has reported it
}

// use follows a name. The name of a function counts as a call.
func (c *lockCheck) use(id *ast.Ident, held lock) {
	obj := origin(c.info.Uses[id])
	if c.options[obj] {
		c.userCode(id, held)
	}
	f, ok := obj.(*types.Func)
	if !ok {
		return
	}
	if recv := f.Signature().Recv(); recv != nil {
		if f.Pkg() != nil && f.Pkg().Path() == "log/slog" && receiverOf(recv) == "Logger" {
			c.userCode(id, held)
		}
		if types.IsInterface(recv.Type()) {
			if f.Pkg() == c.pkg && isOfCaller(recv.Type()) {
				c.userCode(id, held)
			}
			c.expects(f, id, held)
			c.call(nil, id.Pos(), held)
			return
		}
	}
	c.expects(f, id, held)
	c.call(f, id.Pos(), held)
}

// isOfCaller reports whether the caller can implement an interface.
func isOfCaller(t types.Type) bool {
	n, ok := t.(*types.Named)
	if !ok || !n.Obj().Exported() {
		return false
	}
	for m := range n.Underlying().(*types.Interface).Methods() {
		if !m.Exported() {
			return false
		}
	}
	return true
}

func (c *lockCheck) userCode(id *ast.Ident, held lock) {
	c.node.user = c.node.user || !c.later
	if held != 0 {
		c.fault(id.Pos(), "calls %s, which is the caller's code, with %v held", id.Name, held)
	}
}

// expects checks that the lock that f expects is held.
func (c *lockCheck) expects(f *types.Func, id *ast.Ident, held lock) {
	if k := expected(f); f.Pkg() == c.pkg && held&k != k {
		c.fault(id.Pos(), "calls %s, which expects %v to be held", f.Name(), k)
	}
}

// call follows a call of f, or of an unknown function if f is nil.
func (c *lockCheck) call(f *types.Func, pos token.Pos, held lock) {
	if !c.later {
		c.node.calls[f] = true
	}
	if held == 0 || c.report == nil {
		return
	}
	if f == nil {
		if held&budgetLock != 0 {
			c.fault(pos, "holds Budget.mu and calls a function value")
		}
		return
	}
	for _, callee := range slices.SortedFunc(maps.Keys(c.graph.reach(f)), func(a, b *types.Func) int { return strings.Compare(a.FullName(), b.FullName()) }) {
		node := c.graph[callee]
		switch {
		case node.locks[held&historyLock], node.locks[held&budgetLock]:
			c.fault(pos, "holds %v and calls %s, by which %s takes it", held, f.Name(), callee.Name())
		case held&budgetLock != 0 && (node.locks[historyLock] || node.calls[nil]):
			c.fault(pos, "holds Budget.mu and calls %s, by which %s takes History.mu or calls a function value", f.Name(), callee.Name())
		case node.user:
			c.fault(pos, "holds %v and calls %s, by which %s calls the caller's code", held, f.Name(), callee.Name())
		default:
			continue
		}
		return // one fault is enough
	}
}

// reach returns the functions of the package that f calls directly or indirectly,
// including f. Calls in function literals that run later are left out.
func (g callGraph) reach(f *types.Func) map[*types.Func]bool {
	seen := map[*types.Func]bool{}
	var visit func(*types.Func)
	visit = func(f *types.Func) {
		node := g[f]
		if node == nil || seen[f] {
			return
		}
		seen[f] = true
		for callee := range node.calls {
			visit(callee)
		}
	}
	visit(f)
	return seen
}

func (l *loaded) structOf(name string) *types.Struct {
	return l.pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct)
}
