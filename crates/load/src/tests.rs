//! A whole test of jobs on the null engine.

use std::path::PathBuf;

use loadline_database::{OpenRequest, Work, open};
use loadline_model::JobLoad;
use loadline_model::snapshot::counter;

use super::*;
use crate::warmup::LEAD_NS;
use crate::watch::HOLD_NS;

/// When the jobs were about to start, and when it was looked whether the window may, ns.
#[derive(Default)]
struct Looks {
    began_ns: u64,
    looks_ns: Vec<u64>,
}

impl TestHooks for Looks {
    fn start(&mut self, _: &Request, _: &Arc<Shared>) -> Result<(), TargetError> {
        self.began_ns = now_ns();
        Ok(())
    }

    fn holds(&self) -> bool {
        true
    }

    fn may_open(&mut self) -> bool {
        self.looks_ns.push(now_ns());
        self.looks_ns.len() > 2
    }
}

#[test]
fn a_window_starts_when_it_may_and_its_counters_have_the_jobs_counts() {
    let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new("null:", PathBuf::new())).unwrap());
    let on_null = Request::new(&target, &Arc::new(Work::from_catalogue("LGWR-LAT1", &[]).unwrap()), 2);
    let request = Request { warmup: Warmup::Seconds(0.5), duration_s: 0.3, ..on_null };
    let (mut looks, mut ticks) = (Looks::default(), Vec::new());
    let (wall, clock_ns) = (SystemTime::now(), now_ns());
    let measured = run_test(&request, &mut looks, |tick| ticks.push(tick.when)).unwrap();
    let (window, looks_ns) = (&measured.schedule, &looks.looks_ns);
    assert!(window.start_ns >= looks.began_ns + START_DELAY.as_nanos() as u64, "{window:?}");
    assert!(looks_ns[0] + LEAD_NS + HOLD_NS >= window.start_ns + 500_000_000, "{looks_ns:?} {window:?}");
    assert!(looks_ns.windows(2).all(|pair| pair[1] >= pair[0] + HOLD_NS), "{looks_ns:?}");
    assert!(window.open_ns >= looks_ns[2] + LEAD_NS, "{looks_ns:?} {window:?}");
    // Two clocks are read one after the other.
    let opens_at = wall + Duration::from_nanos(window.open_ns - clock_ns);
    assert!(measured.opened_at + Duration::from_millis(150) >= opens_at, "{:?} {opens_at:?}", measured.opened_at);
    assert_eq!(ticks.iter().filter(|at| [TickAt::WindowStart, TickAt::WindowEnd].contains(at)).count(), 2);
    let [open, close] = [&measured.readings.after_start, &measured.readings.after_end].map(|edge| {
        let counters = &edge.snapshot.as_ref().unwrap().counters;
        [counters[counter::JOBS_BEFORE], counters[counter::JOBS_AFTER]]
    });
    let total = measured.jobs.iter().map(|job| job.total).sum::<u64>() as f64;
    assert!(
        open[0] <= open[1] && open[1] < close[1] && close[0] <= close[1] && close[1] <= total,
        "{open:?} {close:?}"
    );
    let sessions_are_read = |reconnect_every| {
        let load = JobLoad { reconnect_every, ..JobLoad::default() };
        let (request, tasks) = (Request { load, ..request.clone() }, || Tasks::own(vec![1]));
        sampler_config(&request, window, tasks(), Some(tasks())).sessions.is_some()
    };
    assert_eq!([sessions_are_read(None), sessions_are_read(Some(5))], [true, false], "those of the first sessions end");
    request.interrupted.store(true, Ordering::Relaxed);
    assert!(matches!(run_test(&request, &mut (), |_| ()), Err(TestError::Interrupted)));
}
