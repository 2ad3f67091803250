//! What a run says of itself while it goes on, in `live.jsonl`: for `loadline watch` and `loadline serve`, which read it from
//! a process of their own.
//!
//! All of it is known anyway when a second of a test is over, and is written by the thread that then shows the progress: one
//! write into the page cache, no sync. No job has a part in it.

use loadline_model::live::{LiveEvent, LiveSecond, band};
use loadline_model::{Driver, JobLoad};
use loadline_store::LiveFile;
use loadline_window::{Place, Request, Tick, Warmup};

use crate::event::{Event, Listener};

/// Waits of a second that are told: those with the most sessions.
const MOST_WAITS: usize = 8;
/// More jobs are not looked at one by one.
const MOST_JOBS: usize = 4096;

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
        if let Event::Started { folder } = event {
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
        Event::Skipped { code, reason } => {
            Some(LiveEvent::Warning { text: hidden(&format!("skipped: {code}: {reason}")) })
        }
        Event::TestStarted(test) => Some(LiveEvent::Test(test.clone())),
        Event::Progress { second, .. } => Some(LiveEvent::Second(second.clone())),
        Event::Started { .. } | Event::Doctor(_) | Event::Loaded(_) | Event::TestDone(_) => None,
    }
}

/// What a test had done at the last second.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    elapsed_s: f64,
    completed: u64,
    /// Transactions of each job, and the second in which it last completed one.
    jobs: Vec<(u64, f64)>,
}

impl Pace {
    /// The second that ends with `tick`.
    pub(crate) fn second(&mut self, test: u32, request: &Request, tick: &Tick<'_>) -> LiveSecond {
        let Request { warmup, duration_s, load, jobs, .. } = request;
        let (Warmup::Seconds(warmup_s) | Warmup::UntilSteady { most_s: warmup_s, .. }) = warmup;
        let closed = *load == JobLoad::default();
        let counts: Vec<u64> = match &tick.jobs.progress {
            all if all.len() <= MOST_JOBS => all.iter().map(|job| job.get()).collect(),
            _ => Vec::new(),
        };
        let completed = if counts.is_empty() { tick.jobs.completed() } else { counts.iter().sum() };
        let seconds = tick.elapsed_s - self.elapsed_s;
        let tps = if seconds > 0.0 { completed.saturating_sub(self.completed) as f64 / seconds } else { 0.0 };
        // Jobs inside the database tell once a second or so, and agents the sum of theirs: neither is the pace of a job.
        let each = request.driver == Driver::Client && matches!(request.place, Place::Here);
        let jobs_by_ms = if closed && each { self.by_band(&counts, tick.elapsed_s) } else { Vec::new() };
        (self.elapsed_s, self.completed) = (tick.elapsed_s, completed);
        let mut waits: Vec<(&String, f64)> = tick
            .second
            .waits
            .sessions
            .keys()
            .filter_map(|event| Some((event, tick.second.waits.mean_sessions(&[event])?)))
            .collect();
        waits.sort_by(|a, b| b.1.total_cmp(&a.1));
        LiveSecond {
            test,
            elapsed_s: tick.elapsed_s,
            total_s: warmup_s + duration_s,
            tps,
            latency_ms: (closed && tps > 0.0).then(|| f64::from(*jobs) / tps * 1e3),
            jobs_by_ms,
            cpu_busy_pct: tick.second.cpu.map(|cpu| cpu.busy_pct),
            cpu_iowait_pct: tick.second.cpu.map(|cpu| cpu.iowait_pct),
            device_util_pct: tick.second.disk.map(|disk| disk.util_pct),
            device_writes_per_s: tick.second.disk.map(|disk| disk.writes_per_s),
            waits: waits.into_iter().take(MOST_WAITS).map(|(event, n)| (event.clone(), n)).collect(),
        }
    }

    /// Jobs by the mean time of their transactions since the last second in which they completed any.
    fn by_band(&mut self, counts: &[u64], now_s: f64) -> Vec<(f64, u32)> {
        self.jobs.resize(counts.len(), (0, 0.0));
        let mut found: Vec<(f64, u32)> = Vec::new();
        for (count, (before, since_s)) in counts.iter().zip(&mut self.jobs) {
            let done = count.saturating_sub(*before);
            // Without any: at least as long as it has been without. The one that ends a stall took all of it.
            let end = band((now_s - *since_s) / done.max(1) as f64 * 1e3);
            if done > 0 {
                (*before, *since_s) = (*count, now_s);
            }
            match found.iter_mut().find(|(known, _)| *known == end) {
                Some((_, n)) => *n += 1,
                None => found.push((end, 1)),
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn each_job_is_in_the_band_of_its_own_transactions() {
        let mut pace = Pace::default();
        // A thousand a second, ten a second, none.
        assert_eq!(pace.by_band(&[1000, 10, 0], 1.0), [(1.0, 1), (100.0, 1), (1000.0, 1)]);
        assert_eq!(pace.by_band(&[2000, 10, 0], 2.0), [(1.0, 1), (1000.0, 1), (2000.0, 1)], "as long as without");
        assert_eq!(
            pace.by_band(&[2100, 30, 1], 3.0),
            [(10.0, 1), (100.0, 1), (5000.0, 1)],
            "20 in 2 s, and the one that ends 3 s of stall"
        );
    }
}
