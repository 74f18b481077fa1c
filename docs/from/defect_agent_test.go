package from_test

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A turn loop with three marks: old results are cleared, a summary is written in
// the background, and at the highest mark the turn waits for it. A turn that fails
// is taken back.
func Example_defectAgent() {
	ctx := context.Background()
	h := must(convo.New(&convo.Options{ // let history: Arc<dyn History> = Arc::new(VecHistory::new());
		// let window = 2_000;
		// let soft = window * 70 / 100;
		Limits: convo.Ratios(2_000, 0.70, 0.85), // let hard = window * 85 / 100;
		Strategy: convo.Chain(
			convo.When(func(s convo.Status) bool { return s.Upper >= s.Window*60/100 }, convo.ClearToolResults{KeepLast: 3}), // let micro = window * 60 / 100;
			convo.Summarize{With: convo.SummarizerFunc(summarize)},
			convo.Truncate{},
		),
		Background:   true,
		OnCompaction: func(r convo.Report) { fmt.Println(r.Reason, r.Strategy, r.Outcome) }, // let on_done = |report| println!("{report:?}");
	}))
	for i := range 24 { // for i in 0..24 {
		turn := h.Snapshot()                                                   // let committed = history.len();
		must(h.Append(convo.User(fmt.Sprint("List the files of folder ", i)))) // history.append(user(format!("List the files of folder {i}")));
		for done := false; !done; {                                            // loop {
			// if history.token_estimate() >= Some(micro) {
			// history.replace(clear_old_results(history.snapshot(), 3));
			// }
			// if history.token_estimate() >= Some(soft) {
			// slot.try_spawn(history.clone(), ctx.clone(), soft, on_done);
			// }
			// if history.token_estimate() >= Some(hard) {
			// slot.await_in_flight().await;
			// compact::run_sync(&*history, &ctx, hard).await;
			// }
			// let request = sanitize(history.snapshot());
			reply, err := h.Do(ctx, model) // let response = provider.complete(request).await;
			// history.record_input_tokens(response.usage.input);
			// history.append(response.message);
			if err != nil { // if response.is_err() {
				check(h.Rollback(turn)) // history.truncate(committed);
				break                   // break;
			} // }
			for _, call := range reply.OpenCalls() { // for call in calls {
				must(h.Append(convo.Result(call, run(call)))) // history.append(run(call).await);
			} // }
			done = len(reply.OpenCalls()) == 0 // if calls.is_empty() {
			// break;
			// }
		} // }
		must(h.Wait(ctx))
	} // }
	fmt.Println(h.Status())            // println!("{:?}", session.context_status().await);
	report := must(h.Compact(ctx, "")) // let report = session.compact_now().await?;
	fmt.Println(report.Outcome)
	// Output:
	// trigger chain applied
	// trigger chain declined
	// trigger chain applied
	// trigger chain declined
	// soft chain applied
	// 1,068 of 1,750 tokens (61 %): 47 entries in 14 turns; compacts above 1,700
	// manual chain applied
	// applied
}
