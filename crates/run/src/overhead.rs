//! What loadline itself costs: the client's loop on the engine that does nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_target::clock::now_ns;
use loadline_target::{OpenRequest, TargetError, Work, open};

use crate::client_job::{self, Timing};
use crate::schedule::{Schedule, Shared};

/// Long enough for the figure to be steady to a few per cent.
const WINDOW_NS: u64 = 200_000_000;
const WARMUP_NS: u64 = 50_000_000;

/// Wall time of the client's loop per transaction of `work`, ns, with one job and an engine that
/// does nothing. The loop's own clock readings and histograms are in it.
pub(crate) fn client_ns_per_tx(work: &Work) -> Result<f64, TargetError> {
    let null = open(&OpenRequest::new("null:", std::env::temp_dir()))?;
    let mut session = null.client_session(work, 0)?;
    let mut stream = work.stream(0)?;
    let start_ns = now_ns();
    let open_ns = start_ns + WARMUP_NS;
    let schedule = Schedule { start_ns, open_ns, close_ns: open_ns + WINDOW_NS };
    let shared = Arc::new(Shared::new(1, Arc::new(AtomicBool::new(false))));
    let timing = Timing { start_ns, window_ns: WINDOW_NS };
    // There is one job and nothing to wait for.
    let _ = shared.window.set(schedule);
    let (program, flags) = (work.program.clone(), Arc::clone(&shared));
    let result = std::thread::scope(|scope| {
        let job = scope.spawn(|| client_job::run(0, session.as_mut(), &mut stream, &program, timing, &flags, None));
        client_job::sleep_until(schedule.close_ns, &shared);
        shared.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        job.join().ok()
    });
    let n = result.map_or(0, |r| r.transaction.count());
    if n == 0 {
        return Err(TargetError::Local(
            "the null engine completed no transaction: the machine is too busy to measure anything".into(),
        ));
    }
    Ok(schedule.window_ns() as f64 / n as f64)
}
