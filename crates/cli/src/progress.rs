//! Shows what happens during a run or a probe, on standard error.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loadline_database::Loading;
use loadline_live::now::Now;
use loadline_live::screen;
use loadline_model::format::{duration_s, number};
use loadline_model::live::{LiveEvent, LiveLine};
use loadline_model::manifest::TableLoad;
use loadline_model::{Manifest, Plan, Severity};
use loadline_report::done_line;
use loadline_run::{Event, Listener};
use loadline_store::{StoredRun, clock_s};
use log::LevelFilter;

use crate::output;
use crate::secrets::harmless;

/// Text that changes in its place on a terminal. Nothing is shown without one, or on one that cannot move its cursor.
pub(crate) struct Changing(ProgressBar);

impl Changing {
    pub(crate) fn new() -> Changing {
        let bar = ProgressBar::new_spinner();
        if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Changing(bar)
    }

    pub(crate) fn set(&self, text: String) {
        self.0.set_message(harmless(&text));
    }

    pub(crate) fn line(&self, text: &str) {
        if self.0.is_hidden() { output::say(text) } else { self.0.println(harmless(text)) }
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// On a terminal, one table that changes; with `-v`, lines above it as well. Otherwise a line for each finished test.
pub(crate) struct Progress {
    changing: Changing,
    now: Now,
}

impl Progress {
    /// Progress of a run of `plan`; that in the folder `resume` goes on.
    pub(crate) fn new(plan: &Plan, resume: Option<&Path>) -> Progress {
        let manifest = Manifest { plan: plan.clone(), ..Manifest::default() };
        let mut now = Now { manifest: Some(manifest), ..Now::default() };
        now.add(resume.and_then(|run| StoredRun::open(run).ok()).map_or_else(Vec::new, |stored| stored.records));
        Progress { changing: Changing::new(), now }
    }

    pub(crate) fn finish(&self) {
        self.changing.clear();
    }

    /// A line that the report or the key figures have as well.
    fn detail(&self, text: &str) {
        if self.changing.0.is_hidden() || log::max_level() >= LevelFilter::Info {
            self.changing.line(text);
        }
    }

    fn apply(&mut self, event: LiveEvent) {
        self.now.apply(LiveLine { at_s: clock_s(), event });
    }
}

impl Listener for Progress {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Step(text) => self.apply(LiveEvent::Step { text }),
            Event::Doctor(findings) => {
                for f in findings.iter().filter(|f| f.severity != Severity::Ok) {
                    // What may spoil an hour of measuring is said before it.
                    self.changing.line(&format!("warning: {} = {}: {}", f.subject, f.value, f.advice));
                }
            }
            Event::Started(folder) => self.detail(&format!("results go to {}", folder.display())),
            Event::Skipped(of) => self.detail(&format!("skipped: {}: {}", of.code, of.reason)),
            Event::Warning(text) => self.changing.line(&format!("warning: {text}")),
            Event::Loading(now) => self.apply(LiveEvent::Step { text: loading(&now) }),
            Event::Loaded(table) => self.detail(&loaded(table)),
            Event::TestStarted(test) => self.apply(LiveEvent::Test(test)),
            Event::Progress(second) => {
                let told = self.now.seconds.back().filter(|last| last.test == second.test).and_then(|last| last.held);
                if let Some(held) = second.held.filter(|held| Some(*held) != told) {
                    self.detail(&format!("test {}: {held}", second.test));
                }
                self.apply(LiveEvent::Second(second));
            }
            Event::TestDone(record) => {
                self.detail(&done_line(record));
                self.now.add(vec![record.clone()]);
            }
        }
        if self.changing.0.is_hidden() {
            return;
        }
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let (width, height) = size.map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
        // The first row begins with two characters of the spinner.
        self.changing.set(screen::table(&self.now, clock_s(), width.saturating_sub(2), height));
    }
}

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
