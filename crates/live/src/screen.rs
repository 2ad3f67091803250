//! A run on a terminal: a pure function from the run to a buffer.

use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_model::format::{ABSENT, duration_s, number, whole};
use loadline_model::live::LiveSecond;
use loadline_model::{Column, TestRecord};
use loadline_report::{LiveRun, band_name, clean, heat, test_name, validity};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Widget};

use crate::now::Now;

/// Smallest terminal that takes the whole picture.
pub const LEAST: (u16, u16) = (80, 24);
/// Room for the names of the bands.
const BAND: u16 = 9;
/// Shades of a share of the jobs, the least first.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// How it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// With colours.
    Colours,
    /// Without (`NO_COLOR`): nothing is shown by colour alone.
    Plain,
}

impl Look {
    fn style(self, colour: Color) -> Style {
        if self == Look::Colours { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Draws `now`, known by `name`, as it is at `clock_s` (s since 1970).
pub fn draw(now: &Now, name: &str, clock_s: f64, look: Look, area: Rect, buffer: &mut Buffer) {
    let shown = now.shown(clock_s, usize::from(area.width));
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return small(&shown, name, area, buffer);
    }
    // What a larger terminal has more goes to tests and heat map in equal parts.
    let rows = Layout::vertical([
        Constraint::Length(3),
        Constraint::Fill(9),
        Constraint::Fill(9),
        Constraint::Length(2),
        Constraint::Length(1),
    ]);
    let [head, upper, lower, figures, keys] = rows.areas(area);
    header(now, &shown, name, look, head, buffer);
    let [left, right] = Layout::horizontal([Constraint::Fill(23), Constraint::Fill(17)]).areas(upper);
    tests(&shown, look, left, buffer);
    let [upper, lower_line] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(right);
    let title = shown.newest(|s| s.tps).map_or(ABSENT.to_owned(), |tps| format!("{} tps", whole(tps)));
    line(&format!(" Throughput {title} "), &shown, |s| s.tps, look.style(Color::Cyan), upper, buffer);
    let title = shown.newest(|s| s.latency_ms).map_or(ABSENT.to_owned(), |ms| format!("{} ms", number(ms, 3)));
    let title = format!(" Mean time {title} ");
    line(&title, &shown, |s| s.latency_ms, look.style(Color::Yellow), lower_line, buffer);
    let [left, right] = Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(lower);
    heat_map(&shown, look, left, buffer);
    waits(shown.last(), look, right, buffer);
    Paragraph::new(vec![machine(&shown), checks(shown.records, look, figures.width)]).render(figures, buffer);
    let warning = now.warnings.last().map_or_else(String::new, |text| format!("   warning: {text}"));
    let keys_style = Style::new().add_modifier(Modifier::DIM);
    Paragraph::new(cut(&format!(" q quit{warning}"), usize::from(keys.width))).style(keys_style).render(keys, buffer);
}

fn framed(title: &str) -> Block<'static> {
    Block::bordered().title(clean(title))
}

/// What fits a terminal that is too small for the picture.
fn small(shown: &LiveRun<'_>, name: &str, area: Rect, buffer: &mut Buffer) {
    let lines = [
        clean(name),
        clean(&shown.state),
        shown.test.map_or_else(String::new, test_name),
        shown.newest(|s| s.tps).map_or_else(String::new, |tps| format!("{} tps", whole(tps))),
        validity(shown.records),
        format!("The picture needs {} × {} characters; q quits", LEAST.0, LEAST.1),
    ];
    Paragraph::new(lines.map(|l| Line::from(clean(&l))).to_vec()).render(area, buffer);
}

fn header(now: &Now, shown: &LiveRun<'_>, name: &str, look: Look, area: Rect, buffer: &mut Buffer) {
    let of = now.manifest.as_ref().map_or_else(String::new, |m| {
        let database = format!("{} {}", m.target.product, m.target.version);
        let database = database.trim();
        if m.plan.platform == database { format!("  {database}") } else { format!("  {}, {database}", m.plan.platform) }
    });
    let wide = usize::from(area.width);
    let name = cut(name, wide);
    let of = Span::raw(cut(&of, wide.saturating_sub(name.chars().count())));
    let title = Line::from(vec![Span::styled(name, Style::new().add_modifier(Modifier::BOLD)), of]);
    let left = shown.left_s.map_or_else(String::new, |s| {
        let about = if shown.test.is_some_and(|t| t.left_exact) { "" } else { "about " };
        format!(", {about}{} left", duration_s(s))
    });
    let state_style = if now.problem.is_some() { look.style(Color::Red) } else { look.style(Color::Green) };
    let state = Line::styled(cut(&format!("{}{left}", shown.state), wide), state_style);
    let what = match (shown.test, shown.step) {
        (Some(test), None) => {
            format!("{}{}", test_name(test), shown.last().map_or_else(String::new, bar))
        }
        (_, Some(step)) => step.to_owned(),
        (None, None) => String::new(),
    };
    Paragraph::new(vec![title, state, Line::from(cut(&what, wide))]).render(area, buffer);
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
fn tests(shown: &LiveRun<'_>, look: Look, area: Rect, buffer: &mut Buffer) {
    let block = framed(&format!(" Tests: {} done ", shown.records.len()));
    let inner = block.inner(area);
    block.render(area, buffer);
    let mut lines = vec![Line::styled(
        format!("{:>4} {:<14}{:>5}{:>9}{:>9}", "test", "workload", "jobs", "tps", "ms"),
        Style::new().add_modifier(Modifier::DIM),
    )];
    let after = usize::from(shown.test.is_some()) + usize::from(!shown.to_come.is_empty());
    let fit = usize::from(inner.height).saturating_sub(lines.len() + after);
    let skipped = shown.records.len().saturating_sub(fit);
    lines.extend(shown.records.iter().skip(skipped).map(|r| test_line(r, look)));
    if let Some(test) = shown.test {
        let text = format!("{:>4} {:<14}{:>5}  …", format!("▶{}", test.test), cut(&test.workload, 14), test.jobs);
        lines.push(Line::styled(text, Style::new().add_modifier(Modifier::BOLD)));
    }
    if !shown.to_come.is_empty() {
        let text = format!("to come: {}", shown.to_come.join(", "));
        lines.push(Line::from(cut(&text, usize::from(inner.width))));
    }
    Paragraph::new(lines).render(inner, buffer);
}

fn test_line(r: &TestRecord, look: Look) -> Line<'static> {
    let figure = |column: &Column, decimals: usize| {
        r.figure(column).map_or(ABSENT.to_owned(), |v| if decimals == 0 { whole(v) } else { number(v, decimals) })
    };
    let text = format!(
        "{:>4} {:<14}{:>5}{:>9}{:>9}",
        format!("{}{}", r.test, r.arm.map_or_else(String::new, |arm| arm.to_string())),
        cut(&r.workload, 14),
        r.jobs,
        figure(THROUGHPUT, 0),
        figure(LATENCY, 3)
    );
    if r.valid {
        return Line::from(text);
    }
    Line::from(vec![Span::raw(text), Span::styled(" ✗", look.style(Color::Red))])
}

/// `text` in at most so many characters: what is cut off is marked.
fn cut(text: &str, most: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A figure over the newest seconds as lines from 0 to their maximum, one for each test.
fn line(
    title: &str,
    shown: &LiveRun<'_>,
    of: fn(&LiveSecond) -> Option<f64>,
    style: Style,
    area: Rect,
    buffer: &mut Buffer,
) {
    let lines = shown.lines(of);
    let most = lines.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
    let title = clean(title);
    if lines.is_empty() {
        return Block::bordered().title(title).render(area, buffer);
    }
    let top = if most > 0.0 { most } else { 1.0 };
    let end = if most < 10.0 { number(top, 3) } else { whole(top) };
    let data =
        |points| Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(style).data(points);
    Chart::new(lines.iter().map(|points| data(points)).collect())
        .block(Block::bordered().title(title))
        .x_axis(Axis::default().bounds([0.0, shown.seconds.len().max(2) as f64 - 1.0]))
        .y_axis(Axis::default().bounds([0.0, top]).labels([Line::from("0"), Line::from(end)]))
        .render(area, buffer);
}

/// Jobs by the mean time of their transactions, a column per second.
fn heat_map(shown: &LiveRun<'_>, look: Look, area: Rect, buffer: &mut Buffer) {
    let block = framed(" Jobs by mean transaction time, each second ");
    let inner = block.inner(area);
    block.render(area, buffer);
    let room = usize::from(inner.width.saturating_sub(BAND));
    let skipped = shown.seconds.len().saturating_sub(room);
    let seconds = shown.seconds.get(skipped..).unwrap_or_default();
    let (ends, columns) = heat(seconds);
    if ends.is_empty() {
        let why = if shown.seconds.is_empty() {
            "no second of a test yet"
        } else {
            "by design only of closed loops, not of agents"
        };
        return Paragraph::new(why).render(inner, buffer);
    }
    // Neighbouring bands share a row where the terminal is too low.
    let per_row = ends.len().div_ceil(usize::from(inner.height).max(1)).max(1);
    let rows: Vec<&[f64]> = ends.chunks(per_row).collect();
    for (at, chunk) in rows.iter().enumerate() {
        let y = inner.bottom().saturating_sub(1 + at as u16);
        let name = chunk.last().copied().map_or_else(String::new, band_name);
        buffer.set_stringn(inner.x, y, format!("{name:>8}"), usize::from(BAND), Style::new());
        for (x, column) in columns.iter().enumerate() {
            let share: f64 = column.iter().skip(at * per_row).take(per_row).sum();
            if share > 0.0 {
                let shade = ((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1);
                let cell = SHADES.get(shade).copied().unwrap_or(' ').to_string();
                buffer.set_stringn(inner.x + BAND + x as u16, y, cell, 1, look.style(Color::Magenta));
            }
        }
    }
}

fn waits(last: Option<&LiveSecond>, look: Look, area: Rect, buffer: &mut Buffer) {
    let block = framed(" Top waits, sessions ");
    let inner = block.inner(area);
    block.render(area, buffer);
    let mut waits: Vec<(&String, f64)> = last.iter().flat_map(|s| s.waits.iter().map(|(w, n)| (w, *n))).collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let wide = usize::from(inner.width).saturating_sub(8);
    let line = |(event, n): &(&String, f64)| {
        Line::from(vec![
            Span::styled(format!("{:<wide$}", cut(event, wide)), look.style(Color::Blue)),
            Span::raw(format!("{:>7}", number(*n, 2))),
        ])
    };
    let lines: Vec<Line<'_>> = waits.iter().take(usize::from(inner.height)).map(line).collect();
    let none = if last.is_some() { "none sampled" } else { ABSENT };
    let lines = if lines.is_empty() { vec![Line::from(none)] } else { lines };
    Paragraph::new(lines).render(inner, buffer);
}

fn machine(shown: &LiveRun<'_>) -> Line<'static> {
    let pct = |of| shown.newest(of).map_or(ABSENT.to_owned(), |v| format!("{v:.0} %"));
    Line::from(format!(
        " CPU busy {}, iowait {}   log device busy {}, {} writes/s",
        pct(|s| s.cpu_busy_pct),
        pct(|s| s.cpu_iowait_pct),
        pct(|s| s.device_util_pct),
        shown.newest(|s| s.device_writes_per_s).map_or(ABSENT.to_owned(), |v| number(v, 0))
    ))
}

fn checks(records: &[TestRecord], look: Look, width: u16) -> Line<'static> {
    let all = records.iter().all(|r| r.validity() == Some(true));
    let style = look.style(if all { Color::Green } else { Color::Red });
    Line::styled(cut(&format!(" {}", validity(records)), usize::from(width)), style)
}
