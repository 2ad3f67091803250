//! Events of a run while it goes on: for whoever started it, and `live.jsonl` for `loadline watch` and `loadline serve`,
//! which read it from a process of their own.
//!
//! All that is written is known anyway when a second of a test is over, and is written by the thread that then shows the progress: one
//! write into the page cache, no sync. No job has a part in it.

use std::path::Path;

use loadline_database::Loading;
use loadline_load::{Reported, Request, Tick, TickAt, Warmup};
use loadline_model::live::{LiveEvent, LiveSecond, LiveTest};
use loadline_model::manifest::TableLoad;
use loadline_model::plan::SkippedWorkload;
use loadline_model::{Finding, JobLoad, TestRecord};
use loadline_store::LiveFile;

#[derive(Debug)]
pub enum Event<'a> {
    /// A step that may take a while: `opening the target`, `loading rows for 8 jobs`.
    Step(String),
    Doctor(&'a [Finding]),
    /// The run folder is made.
    Started(&'a Path),
    Skipped(&'a SkippedWorkload),
    Warning(String),
    Loading(Loading),
    Loaded(&'a TableLoad),
    TestStarted(LiveTest),
    /// Progress of a test, about once a second.
    Progress(LiveSecond),
    TestDone(&'a TestRecord),
}

/// Receives events. Called from the coordinating thread only.
pub trait Listener {
    fn on(&mut self, event: Event<'_>);
}

/// Waits of a second that are told: those with the most sessions.
const MOST_WAITS: usize = 8;
/// Shortest time over which a rate is told, ns, unless it is a whole window.
const LEAST_NS: u64 = 500_000_000;

/// A listener that also writes down what a watcher wants to know.
pub(crate) struct WatchedRun<'a> {
    listener: &'a mut dyn Listener,
    file: Option<LiveFile>,
    /// The newest line, which is not written twice: loading says where it is many times a second.
    last: Option<LiveEvent>,
    /// Where targets are, with passwords that no file may hold.
    urls: Vec<String>,
}

impl<'a> WatchedRun<'a> {
    pub(crate) fn new(listener: &'a mut dyn Listener, urls: Vec<String>) -> WatchedRun<'a> {
        WatchedRun { listener, file: None, last: None, urls }
    }
}

impl Listener for WatchedRun<'_> {
    fn on(&mut self, event: Event<'_>) {
        if let Event::Started(folder) = event {
            self.file = LiveFile::open(folder);
        }
        if let (Some(file), Some(line)) = (&mut self.file, line(&event, &self.urls))
            && self.last.as_ref() != Some(&line)
        {
            file.add(line.clone());
            self.last = Some(line);
        }
        self.listener.on(event);
    }
}

fn line(event: &Event<'_>, urls: &[String]) -> Option<LiveEvent> {
    let hidden = |text: &str| urls.iter().fold(text.to_owned(), |text, url| loadline_database::hide(&text, url));
    match event {
        Event::Step(text) => Some(LiveEvent::Step { text: hidden(text) }),
        Event::Loading(now) => Some(LiveEvent::Step { text: format!("loading {}", now.table) }),
        Event::Warning(text) => Some(LiveEvent::Warning { text: hidden(text) }),
        Event::Skipped(SkippedWorkload { code, reason }) => {
            Some(LiveEvent::Warning { text: hidden(&format!("skipped: {code}: {reason}")) })
        }
        Event::TestStarted(test) => Some(LiveEvent::Test(test.clone())),
        Event::Progress(second) => Some(LiveEvent::Second(second.clone())),
        Event::Started(_) | Event::Doctor(_) | Event::Loaded(_) | Event::TestDone(_) => None,
    }
}

/// Reports of a test's jobs before.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Where the time of the next rate begins.
    begin: Vec<Reported>,
}

impl Pace {
    /// The second that ends with `tick`.
    pub(crate) fn second(&mut self, test: u32, request: &Request, tick: &Tick) -> LiveSecond {
        let Request { warmup, duration_s, load, jobs, .. } = request;
        let (Warmup::Seconds(warmup_s) | Warmup::UntilSteady { most_s: warmup_s, .. }) = warmup;
        let closed = *load == JobLoad::default();
        let start = Reported { completed: 0, at_ns: tick.start_ns };
        self.begin.resize(tick.jobs.len(), start);
        let tps = self.rate(tick);
        let (rates, sampled) = (&tick.second.rates, &tick.second.waits);
        let mean = |(event, n): (&String, &u64)| (event.clone(), *n as f64 / f64::from(sampled.samples.max(1)));
        let mut waits: Vec<(String, f64)> = sampled.sessions.iter().map(mean).collect();
        waits.sort_by(|a, b| b.1.total_cmp(&a.1));
        waits.truncate(MOST_WAITS);
        LiveSecond {
            test,
            elapsed_s: tick.elapsed_s,
            total_s: warmup_s + duration_s,
            held: None,
            tps,
            latency_ms: tps.filter(|tps| closed && *tps > 0.0).map(|tps| f64::from(*jobs) / tps * 1e3),
            cpu_busy_pct: rates.cpu.map(|cpu| cpu.busy_pct),
            cpu_iowait_pct: rates.cpu.map(|cpu| cpu.iowait_pct),
            device_util_pct: rates.disk.map(|disk| disk.util_pct),
            device_writes_per_s: rates.disk.map(|disk| disk.writes_per_s),
            waits: waits.into_iter().collect(),
        }
    }

    /// Transactions per second: of each job, what it completed between two of its reports, by the time between these. `None` until
    /// all have reported long enough; the time of a rate begins at the window start and ends at the window end.
    fn rate(&mut self, tick: &Tick) -> Option<f64> {
        let least_ns = match tick.when {
            // Jobs that end do no work.
            TickAt::Ending => return None,
            TickAt::WindowEnd => 1,
            _ => LEAST_NS,
        };
        let of = |(begin, now): (&Reported, &Reported)| {
            let ns = now.at_ns.checked_sub(begin.at_ns).filter(|ns| *ns >= least_ns)?;
            Some(now.completed.saturating_sub(begin.completed) as f64 / ns as f64 * 1e9)
        };
        let rate: Option<f64> = self.begin.iter().zip(&tick.jobs).map(of).sum();
        if rate.is_some() || tick.when == TickAt::WindowStart {
            self.begin.clone_from(&tick.jobs);
        }
        rate
    }
}

#[cfg(test)]
mod tests {
    use loadline_collect::Second;

    use super::*;

    #[test]
    fn no_password_is_written() {
        let urls = ["postgres://ann:s3cret@db/x".to_owned()];
        let quoted = format!("cannot reach {}", urls[0]);
        for event in [Event::Warning(quoted.clone()), Event::Step(quoted)] {
            let written = format!("{:?}", line(&event, &urls));
            assert!(!written.contains("s3cret") && written.contains("cannot reach"), "{written}");
        }
    }

    /// A tick at so many seconds, of jobs that had completed so many transactions after so many.
    fn tick(at_s: f64, when: TickAt, jobs: &[(u64, f64)]) -> Tick {
        let report = |(completed, at_s): &(u64, f64)| Reported { completed: *completed, at_ns: (at_s * 1e9) as u64 };
        Tick { elapsed_s: at_s, when, jobs: jobs.iter().map(report).collect(), start_ns: 0, second: Second::default() }
    }

    #[test]
    fn a_rate_is_what_was_reported_by_the_time_between_the_reports() {
        use TickAt::{Second, WindowEnd, WindowStart};
        // Two jobs of 100 and 200 transactions a second, which report when they come to it.
        let job = |rate: u64, at_s: f64| ((at_s * rate as f64).round() as u64, at_s);
        let jobs = |a_s: f64, b_s: f64| [job(100, a_s), job(200, b_s)];
        let mut pace = Pace { begin: vec![Reported::default(); 2] };
        let mut rate = |at_s: f64, when: TickAt, a_s: f64, b_s: f64| {
            pace.rate(&tick(at_s, when, &jobs(a_s, b_s))).map(|tps| (tps * 1e3).round() / 1e3)
        };
        assert_eq!(rate(0.3, WindowStart, 0.3, 0.31), None, "the warm-up was too short for a rate");
        assert_eq!(rate(1.0, Second, 0.3, 1.0), None, "one has not reported since");
        assert_eq!(rate(1.35, Second, 1.3, 1.35), Some(300.0));
        assert_eq!(rate(2.35, Second, 2.3, 2.1), Some(300.0));
        assert_eq!(rate(2.4, Second, 2.3, 2.1), None, "nothing new");
        assert_eq!(rate(2.6, WindowEnd, 2.6, 2.6), Some(300.0), "what is left of the window");
        // A window of any length has a rate; without transactions it is 0.
        let mut pace = Pace { begin: vec![Reported::default()] };
        assert_eq!(pace.rate(&tick(0.1, TickAt::WindowStart, &[(50, 0.1)])), None);
        assert_eq!(pace.rate(&tick(0.2, TickAt::WindowEnd, &[(50, 0.2)])), Some(0.0), "a stall");
        assert_eq!(pace.rate(&tick(3.0, TickAt::Ending, &[(90, 3.0)])), None);
    }
}
