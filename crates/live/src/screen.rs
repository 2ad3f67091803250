//! A run on a terminal: a pure function from the run to rows of text; and as lines of text, where there is no terminal to draw on.

use loadline_model::format::{ABSENT, number, whole};
use loadline_model::live::LiveSecond;
use loadline_report::{clean, done_line, live_table, live_text, test_name};
use unicode_width::UnicodeWidthChar as _;

use crate::now::{Now, Standing};

/// The rows of `now`, known by `name`, as it is at `clock_s` (s since 1970), on a terminal of this size.
pub fn draw(now: &Now, name: &str, clock_s: f64, width: usize, height: usize) -> Vec<String> {
    let platform = now.platform().unwrap_or_default();
    let text = live_text(&now.shown(clock_s), width);
    let head = clean(&format!("{name}  {platform}"));
    let mut rows: Vec<String> = [head.trim_end()].into_iter().chain(text.lines()).map(|row| cut(row, width)).collect();
    if rows.len() >= height {
        rows.retain(|row| !row.is_empty());
    }
    let more = rows.len().saturating_sub(height.saturating_sub(1));
    let more = if more == 0 { String::new() } else { format!("; {more} rows more on a higher terminal") };
    rows.resize(height.saturating_sub(1), String::new());
    rows.push(cut(&format!("q quits{more}"), width));
    rows.truncate(height);
    rows
}

/// The table of `now` as it is at `clock_s` (s since 1970), for a terminal of this size: a line for each workload.
pub fn table(now: &Now, clock_s: f64, width: usize, height: usize) -> String {
    let rows = live_table(&now.shown(clock_s), width, height);
    rows.lines().map(|row| cut(row, width)).collect::<Vec<_>>().join("\n")
}

/// `row` in at most so many cells.
fn cut(row: &str, width: usize) -> String {
    let mut end = 0;
    let fits = |c: &char| {
        end += c.width().unwrap_or(0);
        end <= width
    };
    row.chars().take_while(fits).collect()
}

/// Codes that make a terminal show `rows`, from its upper left corner on. Colour marks only what a cross marks as well.
pub fn escaped(rows: &[String], colours: bool) -> String {
    let row = |(n, row): (usize, &String)| match row {
        row if n == 0 => format!("\x1b[1m{row}\x1b[0m\x1b[K"),
        row if colours && row.contains('✗') => format!("\x1b[31m{row}\x1b[0m\x1b[K"),
        row => format!("{row}\x1b[K"),
    };
    let rows: Vec<String> = rows.iter().enumerate().map(row).collect();
    format!("\x1b[H{}\x1b[J", rows.join("\r\n"))
}

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
        let kind = Some(match &state {
            Standing::Silent { .. } => Standing::Silent { for_s: 0.0, is_written: false },
            other => other.clone(),
        });
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
