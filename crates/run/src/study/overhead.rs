//! loadline's own overhead: the client's loop on the null engine, which does nothing.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use loadline_database::{OpenRequest, Work, open};
use loadline_load::Held;
use loadline_load::between::Session;
use loadline_load::client_job::{self, Client, Timing};
use loadline_load::schedule::{Schedule, Shared};
use loadline_load::{ScriptJob, Tally};
use loadline_storage::now_ns;

/// Long enough for a figure accurate to a few per cent.
const WINDOW_NS: u64 = 200_000_000;
const WARMUP_NS: u64 = 50_000_000;

/// Wall time of the client's loop per transaction of `work`, ns, with one job on the null engine. Includes clock
/// readings and histograms. Ends after the current transaction when `interrupted` is set.
///
/// # Errors
/// Why there is no figure.
pub(crate) fn client_ns_per_tx(work: &Work, interrupted: &Arc<AtomicBool>) -> Result<f64, String> {
    in_window(work, interrupted, WARMUP_NS, WINDOW_NS)
}

fn in_window(work: &Work, interrupted: &Arc<AtomicBool>, warmup_ns: u64, window_ns: u64) -> Result<f64, String> {
    let null = open(&OpenRequest::new("null:", std::env::temp_dir())).map_err(|e| e.to_string())?;
    let mut session = null.client_session(work, 0).map_err(|e| e.to_string())?;
    let mut stream = work.stream(0).map_err(|e| e.to_string())?;
    let start_ns = now_ns();
    let open_ns = start_ns + warmup_ns;
    let schedule = Schedule { start_ns, open_ns, close_ns: open_ns + window_ns };
    let shared = Arc::new(Shared::new(1, Arc::clone(interrupted)));
    let timing = Timing { start_ns, window_ns };
    // One job: nothing to wait for.
    let _ = shared.window.set(schedule);
    let (program, flags) = (work.program.clone(), Arc::clone(&shared));
    let result = std::thread::scope(|scope| {
        let job = scope.spawn(|| {
            let tally = Mutex::new(Tally::new(timing.window_ns, false));
            let session = Session::Fixed(session.as_mut());
            let script = ScriptJob::of(work, 0, 1);
            let client =
                Client { job: 0, session, stream: &mut stream, program: &program, script, pace: None, think: None };
            client_job::run(client, timing, &flags, Held::new(&tally, true))
        });
        client_job::sleep_until(schedule.close_ns, &shared);
        shared.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        job.join().ok()
    });
    let n = result.map_or(0, |r| r.completed);
    if n == 0 {
        let ms = (warmup_ns + window_ns) / 1_000_000;
        return Err(format!("no transaction completed within {ms} ms"));
    }
    Ok(schedule.window_ns() as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    use loadline_workload::read_file;

    use super::*;

    #[test]
    fn a_long_transaction_has_a_reason_and_can_be_interrupted() {
        let long = "code = \"OVERHEAD-LONG\"\nsummary = \"changes a lot\"\nprogram = [{ bind = \"n\", to = \"sequence\" }, \
                    { repeat = 1000, steps = [{ repeat = \"times\", steps = [{ execute = \"change\" }] }] }]\n\
                    [[parameter]]\nname = \"times\"\ndefault = 4000\nmin = 1\nmax = 4000\nmeaning = \"changes\"\n\
                    [[table]]\nname = \"t\"\nrows = 10\ncolumn = [{ name = \"id\", type = \"int\", fill = \"key\" }]\n\
                    [[statement]]\nname = \"change\"\nsql = \"UPDATE {t} SET id = :n\"\neffect = { change = 10 }\n";
        let workload = read_file("long.toml", long).unwrap();
        let work = |times: i64| Work::with(Arc::clone(&workload), &[("times", times)]).unwrap();
        let interrupted = Arc::new(AtomicBool::new(false));
        let short = client_ns_per_tx(&work(1), &interrupted).unwrap();
        assert!(short > 0.0);
        // Four million changes take longer than a millisecond on any machine.
        let reason = in_window(&work(4000), &interrupted, 500_000, 500_000).unwrap_err();
        assert!(reason.contains("within 1 ms"), "{reason}");
        interrupted.store(true, Ordering::Relaxed);
        let began = Instant::now();
        assert!(in_window(&work(1), &interrupted, WARMUP_NS, 300 * WINDOW_NS).is_err());
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
