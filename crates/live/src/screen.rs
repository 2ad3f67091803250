//! A run on a terminal: a pure function from the run to a picture.

use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_model::format::{ABSENT, duration_s, number, whole};
use loadline_model::live::LiveSecond;
use loadline_model::{Column, TestRecord, Validity};
use loadline_report::{LiveRun, band_name, heat, test_name, validity};

use crate::now::Now;
use crate::picture::{Area, Ink, Picture};

/// Smallest terminal that takes the whole picture.
const LEAST: (usize, usize) = (80, 24);
/// Width of the names of the bands.
const BAND: usize = 9;
/// Shades of a share of the jobs, the least first.
const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];

/// Draws `now`, known by `name`, as it is at `clock_s` (s since 1970).
#[must_use]
pub fn draw(now: &Now, name: &str, clock_s: f64, width: usize, height: usize) -> Picture {
    let shown = now.shown(clock_s, width);
    let mut picture = Picture::new(width, height);
    let all = picture.area();
    if width < LEAST.0 || height < LEAST.1 {
        small(&shown, name, &mut picture);
        return picture;
    }
    // What a larger terminal has more goes to tests and heat map in equal parts.
    let (head, rest) = all.rows(3);
    let (middle, foot) = rest.rows(rest.height - 3);
    let (upper, lower) = middle.rows(middle.height.div_ceil(2));
    header(now, &shown, name, head, &mut picture);
    let (left, right) = upper.columns(share(width, 23, 40));
    tests(&shown, left, &mut picture);
    let (throughput, mean_time) = right.rows(right.height.div_ceil(2));
    let title = shown.newest(|s| s.tps).map_or(ABSENT.to_owned(), |tps| format!("{} tps", whole(tps)));
    line(&format!(" Throughput {title} "), &shown, |s| s.tps, Ink::Cyan, throughput, &mut picture);
    let title = shown.newest(|s| s.latency_ms).map_or(ABSENT.to_owned(), |ms| format!("{} ms", number(ms, 3)));
    line(&format!(" Mean time {title} "), &shown, |s| s.latency_ms, Ink::Yellow, mean_time, &mut picture);
    let (left, right) = lower.columns(share(width, 3, 5));
    heat_map(&shown, left, &mut picture);
    waits(shown.last(), right, &mut picture);
    figures(now, &shown, foot, &mut picture);
    picture
}

/// `part` of `all` of `width`, rounded.
fn share(width: usize, part: usize, all: usize) -> usize {
    (width * part + all / 2) / all
}

/// What fits a terminal that is too small for the picture.
fn small(shown: &LiveRun<'_>, name: &str, picture: &mut Picture) {
    let lines = [
        name.to_owned(),
        shown.state.clone(),
        shown.test.map_or_else(String::new, test_name),
        shown.newest(|s| s.tps).map_or_else(String::new, |tps| format!("{} tps", whole(tps))),
        validity(shown.records),
        format!("The picture needs {} × {} characters; q quits", LEAST.0, LEAST.1),
    ];
    let all = picture.area();
    for (row, text) in lines.iter().enumerate() {
        picture.put(all, row, 0, text, Ink::Plain);
    }
}

fn header(now: &Now, shown: &LiveRun<'_>, name: &str, area: Area, picture: &mut Picture) {
    let end = cut(picture, area, 0, 0, name, Ink::Bold);
    if let Some(platform) = now.platform() {
        cut(picture, area, 0, end + 2, &platform, Ink::Plain);
    }
    let left = shown.left_s.map_or_else(String::new, |s| {
        let about = if shown.test.is_some_and(|t| t.left_exact) { "" } else { "about " };
        format!(", {about}{} left", duration_s(s))
    });
    let ink = if now.problem.is_some() { Ink::Red } else { Ink::Green };
    cut(picture, area, 1, 0, &format!("{}{left}", shown.state), ink);
    let what = match (shown.test, shown.step) {
        (Some(test), None) => format!("{}{}", test_name(test), shown.last().map_or_else(String::new, bar)),
        (_, Some(step)) => step.to_owned(),
        (None, None) => String::new(),
    };
    cut(picture, area, 2, 0, &what, Ink::Plain);
}

/// `text` in at most so many characters: what is cut off is marked.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Writes `text` on a row as [`Picture::put`], [`shortened`].
fn cut(picture: &mut Picture, area: Area, row: usize, from: usize, text: &str, ink: Ink) -> usize {
    picture.put(area, row, from, &shortened(text, area.width.saturating_sub(from)), ink)
}

/// How far a test is.
fn bar(second: &LiveSecond) -> String {
    const CELLS: usize = 12;
    if second.total_s <= 0.0 {
        return String::new();
    }
    let share = (second.elapsed_s / second.total_s).clamp(0.0, 1.0);
    let full = (share * CELLS as f64).round() as usize;
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(CELLS - full));
    format!("  {bar} {:.0} of {:.0} s", second.elapsed_s.min(second.total_s), second.total_s)
}

/// The newest tests that are done, the one under way, and those to come.
fn tests(shown: &LiveRun<'_>, area: Area, picture: &mut Picture) {
    let inside = picture.frame(area, &format!(" Tests: {} done ", shown.records.len()));
    let head = format!("{:>4} {:<14}{:>5}{:>9}{:>9}", "test", "workload", "jobs", "tps", "ms");
    picture.put(inside, 0, 0, &head, Ink::Dim);
    let after = usize::from(shown.test.is_some()) + usize::from(!shown.to_come.is_empty());
    let fit = inside.height.saturating_sub(1 + after);
    let mut row = 1;
    for record in shown.records.iter().skip(shown.records.len().saturating_sub(fit)) {
        test_line(record, inside, row, picture);
        row += 1;
    }
    if let Some(test) = shown.test {
        let number = format!("▶{}", test.test);
        let text = format!("{number:>4} {:<14}{:>5}  …", shortened(&test.workload, 14), test.jobs);
        picture.put(inside, row, 0, &text, Ink::Bold);
        row += 1;
    }
    if !shown.to_come.is_empty() {
        cut(picture, inside, row, 0, &format!("to come: {}", shown.to_come.join(", ")), Ink::Plain);
    }
}

fn test_line(r: &TestRecord, area: Area, row: usize, picture: &mut Picture) {
    let figure = |column: &Column, decimals: usize| {
        r.figure(column).map_or(ABSENT.to_owned(), |v| if decimals == 0 { whole(v) } else { number(v, decimals) })
    };
    let number = format!("{}{}", r.test, r.arm.map_or_else(String::new, |arm| arm.to_string()));
    let (tps, ms) = (figure(THROUGHPUT, 0), figure(LATENCY, 3));
    let text = format!("{number:>4} {:<14}{:>5}{tps:>9}{ms:>9}", shortened(&r.workload, 14), r.jobs);
    let end = picture.put(area, row, 0, &text, Ink::Plain);
    if !r.valid {
        picture.put(area, row, end, " ✗", Ink::Red);
    }
}

/// A figure over the newest seconds as lines from 0 to their maximum, one for each test.
fn line(
    title: &str,
    shown: &LiveRun<'_>,
    of: fn(&LiveSecond) -> Option<f64>,
    ink: Ink,
    area: Area,
    picture: &mut Picture,
) {
    let inside = picture.frame(area, title);
    let mut lines = shown.lines(of);
    if lines.is_empty() {
        return;
    }
    let most = lines.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let end = if most < 10.0 { number(top, 3) } else { whole(top) };
    let (axis, chart) = inside.columns(end.chars().count() + 1);
    picture.put(axis, 0, 0, &end, Ink::Plain);
    picture.put(axis, axis.height.saturating_sub(1), 0, "0", Ink::Plain);
    for row in 0..axis.height {
        picture.put(axis, row, axis.width.saturating_sub(1), "│", Ink::Plain);
    }
    let last = shown.seconds.len().max(2) as f64 - 1.0;
    lines.iter_mut().flatten().for_each(|point| *point = (point.0 / last, point.1 / top));
    picture.lines(chart, &lines, ink);
}

/// Jobs by the mean time of their transactions, a column per second.
fn heat_map(shown: &LiveRun<'_>, area: Area, picture: &mut Picture) {
    let inside = picture.frame(area, " Jobs by mean transaction time, each second ");
    let skipped = shown.seconds.len().saturating_sub(inside.width.saturating_sub(BAND));
    let (ends, columns) = heat(shown.seconds.get(skipped..).unwrap_or_default());
    if ends.is_empty() {
        let none = shown.seconds.is_empty();
        let why = if none { "no second of a test yet" } else { "by design only of closed loops, not of agents" };
        picture.put(inside, 0, 0, why, Ink::Plain);
        return;
    }
    // Neighbouring bands share a row where the terminal is too low.
    let per_row = ends.len().div_ceil(inside.height.max(1));
    for (at, chunk) in ends.chunks(per_row).enumerate() {
        let row = inside.height.saturating_sub(1 + at);
        let name = chunk.last().copied().map_or_else(String::new, band_name);
        picture.put(inside, row, 0, &format!("{name:>8}"), Ink::Plain);
        for (x, column) in columns.iter().enumerate() {
            let share: f64 = column.iter().skip(at * per_row).take(per_row).sum();
            if share > 0.0 {
                let shade = ((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1);
                picture.put(inside, row, BAND + x, SHADES[shade], Ink::Magenta);
            }
        }
    }
}

fn waits(last: Option<&LiveSecond>, area: Area, picture: &mut Picture) {
    let inside = picture.frame(area, " Top waits, sessions ");
    let Some(last) = last.filter(|last| !last.waits.is_empty()) else {
        picture.put(inside, 0, 0, if last.is_some() { "none sampled" } else { ABSENT }, Ink::Plain);
        return;
    };
    let mut waits: Vec<(&String, &f64)> = last.waits.iter().collect();
    waits.sort_by(|a, b| b.1.total_cmp(a.1));
    let (names, sessions) = inside.columns(inside.width.saturating_sub(8));
    for (row, (event, n)) in waits.into_iter().enumerate() {
        cut(picture, names, row, 0, event, Ink::Blue);
        picture.put(sessions, row, 0, &format!("{:>7}", number(*n, 2)), Ink::Plain);
    }
}

/// Machine, checks and the newest warning.
fn figures(now: &Now, shown: &LiveRun<'_>, area: Area, picture: &mut Picture) {
    let pct = |of| shown.newest(of).map_or(ABSENT.to_owned(), |v| format!("{v:.0} %"));
    let machine = format!(
        " CPU busy {}, iowait {}   log device busy {}, {} writes/s",
        pct(|s| s.cpu_busy_pct),
        pct(|s| s.cpu_iowait_pct),
        pct(|s| s.device_util_pct),
        shown.newest(|s| s.device_writes_per_s).map_or(ABSENT.to_owned(), |v| number(v, 0))
    );
    picture.put(area, 0, 0, &machine, Ink::Plain);
    let all_valid = shown.records.iter().all(|r| r.validity() == Some(Validity::Valid));
    let ink = if all_valid { Ink::Green } else { Ink::Red };
    cut(picture, area, 1, 0, &format!(" {}", validity(shown.records)), ink);
    let warning = now.warnings.last().map_or_else(String::new, |text| format!("   warning: {text}"));
    cut(picture, area, 2, 0, &format!(" q quit{warning}"), Ink::Dim);
}
