//! Shows what happens during a run, on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use loadline_database::Loading;
use loadline_model::Severity;
use loadline_model::format::{ABSENT, duration_s, number};
use loadline_model::live::{LiveSecond, LiveTest};
use loadline_model::manifest::TableLoad;
use loadline_report::done_line;
use loadline_run::{Event, Listener};

/// On a terminal, one line that changes; otherwise a line for each finished test.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar }
    }

    /// Clears the changing line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.bar.is_hidden() { crate::output::say(text) } else { self.bar.println(text) }
    }

    fn title(p: &LiveTest) -> String {
        let s = if p.jobs == 1 { "" } else { "s" };
        format!("test {:>2}  {:<14}  {:>4} job{s}{}", p.test, p.workload, p.jobs, p.part())
    }

    fn left(p: &LiveTest, elapsed_s: f64) -> String {
        let about = if p.left_exact { "" } else { "about " };
        format!("{about}{} left", duration_s((p.left_s - elapsed_s).max(0.0)))
    }
}

impl Listener for Progress {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Step(text) => self.bar.set_message(text),
            Event::Doctor(findings) => {
                for f in findings.iter().filter(|f| f.severity != Severity::Ok) {
                    self.line(&format!("warning: {} = {}: {}", f.subject, f.value, f.advice));
                }
            }
            Event::Started { folder } => self.line(&format!("results go to {}", folder.display())),
            Event::Skipped { code, reason } => self.line(&format!("skipped: {code}: {reason}")),
            Event::Warning(text) => self.line(&format!("warning: {text}")),
            Event::Loading(now) => self.bar.set_message(loading(&now)),
            Event::Loaded(table) => self.line(&loaded(table)),
            Event::TestStarted(p) => self.bar.set_message(format!("{}  {}", Self::title(&p), Self::left(&p, 0.0))),
            Event::Progress { position, second } => {
                let LiveSecond { elapsed_s, total_s, tps, .. } = second;
                let latency = second.latency_ms.map_or(String::new(), |l| format!("  {l:>8.3} ms"));
                self.bar.set_message(format!(
                    "{}  {:>9} tps{latency}  {elapsed_s:.0} of {total_s:.0} s, {}",
                    Self::title(&position),
                    tps.map_or_else(|| ABSENT.to_owned(), |tps| number(tps, 0)),
                    Self::left(&position, elapsed_s)
                ));
            }
            Event::TestDone(record) => self.line(&done_line(record)),
        }
    }
}

/// Progress of loading a table.
fn loading(now: &Loading) -> String {
    let (share, mib) = (now.rows as f64 / now.of.max(1) as f64, now.bytes as f64 / (1024.0 * 1024.0));
    let left = if share >= 1.0 {
        "keys, indexes and statistics".to_owned()
    } else if share > 0.0 {
        format!("about {} left", duration_s(now.seconds / share - now.seconds))
    } else {
        "…".to_owned()
    };
    format!(
        "loading {}: {} of {} rows, {:.1} MiB/s, {left}",
        now.table,
        number(now.rows as f64, 0),
        number(now.of as f64, 0),
        mib / now.seconds.max(1e-9)
    )
}

/// How a table was loaded, in one line.
fn loaded(t: &TableLoad) -> String {
    let s = if t.loaders == 1 { "" } else { "s" };
    let went_on = if t.rows_loaded < t.rows { format!(" of {}", number(t.rows as f64, 0)) } else { String::new() };
    format!(
        "loaded {}: {}{went_on} rows in {:.1} s by {} session{s} ({}): {} rows/s, {:.1} MiB/s; keys and statistics {:.1} s",
        t.table,
        number(t.rows_loaded as f64, 0),
        t.load_s,
        t.loaders,
        t.path,
        number(t.rows_per_s(), 0),
        t.mib_per_s(),
        t.finish_s
    )
}
