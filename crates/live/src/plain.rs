//! A run as lines of text, where there is no terminal to draw on.

use loadline_model::format::{ABSENT, number, whole};
use loadline_model::live::LiveSecond;
use loadline_report::{clean, done_line, test_name};

use crate::now::{Now, Standing};

#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Number of the newest window that was said.
    newest: u32,
    state: Option<Standing>,
    test: Option<u32>,
    step: String,
    /// Test and second of the newest line.
    second: (u32, f64),
}

impl Said {
    /// Lines about what is new in `now` at `clock_s` (s since 1970).
    pub(crate) fn lines(&mut self, now: &Now, clock_s: f64) -> Vec<String> {
        let mut out = Vec::new();
        // The time of a silence grows: said once.
        let state = now.state(clock_s);
        let kind = Some(state.clone().without_time());
        let ended = kind != self.state && !now.is_open();
        if kind != self.state && !ended {
            out.push(state.to_string());
        }
        let windows = || now.records.iter().chain(&now.other_tries);
        let newest = windows().map(|r| r.test).max().unwrap_or(0);
        if newest < self.newest {
            self.newest = 0;
        }
        // The last second of a test comes before its line and before the next test.
        let second = now.seconds.back().filter(|s| (s.test, s.elapsed_s) != self.second);
        let (of_this, of_next) = match second {
            Some(s) if self.test == Some(s.test) => (Some(s), None),
            other => (None, other),
        };
        out.extend(of_this.map(second_line));
        let mut done: Vec<_> = windows().filter(|r| r.test > self.newest).collect();
        done.sort_by_key(|r| r.test);
        out.extend(done.into_iter().map(done_line));
        self.newest = newest;
        if let Some(test) = now.test().filter(|test| self.test != Some(test.test)) {
            self.test = Some(test.test);
            out.push(test_name(test));
        }
        if let Some(step) = now.step.as_ref().filter(|step| now.is_open() && **step != self.step) {
            self.step.clone_from(step);
            out.push(step.clone());
        }
        out.extend(of_next.filter(|s| now.is_open() && self.test == Some(s.test)).map(second_line));
        self.second = second.map_or(self.second, |s| (s.test, s.elapsed_s));
        if ended {
            out.push(state.to_string());
        }
        self.state = kind;
        out.iter().map(|line| clean(line)).collect()
    }
}

fn second_line(s: &LiveSecond) -> String {
    let latency = s.latency_ms.map_or_else(String::new, |ms| format!("  {} ms", number(ms, 3)));
    let cpu = s.cpu_busy_pct.map_or_else(String::new, |pct| format!("  CPU {pct:.0} %"));
    let tps = s.tps.map_or(ABSENT.to_owned(), whole);
    let held = s.held.map_or_else(String::new, |held| format!("  {held}"));
    format!("{:>5.0} of {:.0} s  {tps} tps{latency}{cpu}{held}", s.elapsed_s, s.total_s)
}
