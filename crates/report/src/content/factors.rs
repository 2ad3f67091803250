//! Factors between platforms, as computed by `loadline_analyze::compare`.

use loadline_analyze::compare::ComparedAt;
use loadline_analyze::sweep::JOBS;
use loadline_analyze::{Comparison, Factor};
use loadline_model::Column;
use loadline_model::format::{ABSENT, counted};

use crate::columns::value;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};
use crate::words::{heading_of, place, swept, swept_title, without_numbers};

const ONE_TEST: &str = "one test each: no interval";

/// Factors at each platform's peak, and their range over equal job counts.
pub(crate) fn summary(comparisons: &[Comparison]) -> Section {
    let mut blocks = Vec::new();
    for (base, other) in pairs(comparisons) {
        let of_pair = || comparisons.iter().filter(|c| c.base == base && c.other == other);
        let (refused, compared): (Vec<&Comparison>, Vec<&Comparison>) = of_pair().partition(|c| c.refused.is_some());
        if !compared.is_empty() {
            blocks.push(Block::Table(summary_table(&base, &other, compared.into_iter())));
        }
        blocks.extend(not_compared(&refused));
    }
    if !blocks.is_empty() {
        blocks.push(Block::para(
            "'260 at 4' is a figure at 4 jobs. A factor says how many times better the other platform is than the base: above 1 the \
             other one is better, for figures where more is better (throughput, redo) as well as where less is (times). In \
             brackets: the 95 % confidence interval (log ratio, delta method), if both platforms have repetitions. Unequal \
             work is not compared.",
        ));
    }
    Section::of("factors", "Factors between platforms", blocks)
}

/// Each reason in one sentence, with the workloads it holds for.
fn not_compared(refused: &[&Comparison]) -> Vec<Block> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for c in refused {
        let reason = match (&c.lacks, &c.refused) {
            (Some(side), _) => format!("'{side}' has no test of them"),
            (None, reason) => reason.clone().unwrap_or_default(),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, codes)) => codes.push(title(c)),
            None => reasons.push((reason, vec![title(c)])),
        }
    }
    let said = |(reason, codes): (String, Vec<String>)| format!("Not compared: {} ({reason}).", codes.join(", "));
    reasons.into_iter().map(|reason| Block::para(said(reason))).collect()
}

fn pairs(comparisons: &[Comparison]) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for c in comparisons {
        let pair = (c.base.clone(), c.other.clone());
        if !out.contains(&pair) {
            out.push(pair);
        }
    }
    out
}

fn summary_table<'a>(base: &str, other: &str, comparisons: impl Iterator<Item = &'a Comparison>) -> Table {
    let mut notes = Notes::default();
    let mut rows = Vec::new();
    for comparison in comparisons {
        rows.extend(summary_rows(comparison, &mut notes));
    }
    Table {
        caption: format!("{other} against {base}"),
        sub: format!("base: {base}"),
        class: "key",
        head: vec![
            Head::text("Workload"),
            Head::text("Figure"),
            Head::number(&format!("{base} at its peak"), ""),
            Head::number(&format!("{other} at its peak"), ""),
            Head::number("Factor at peak", "×"),
            Head::number("Lowest at equal jobs", "×"),
            Head::number("Highest at equal jobs", "×"),
        ],
        rows,
        notes: notes.finish(),
    }
}

fn summary_rows(c: &Comparison, notes: &mut Notes) -> Vec<Row> {
    let peak = c.peak();
    let place = |at: u32| if c.over == JOBS { at.to_string() } else { place(&c.over, at) };
    let mut rows: Vec<Row> = c
        .metrics
        .iter()
        .filter_map(|m| {
            let column = m.column;
            let at_peak = peak.and_then(|p| p.factor(column));
            let range = c.range(column);
            if at_peak.is_none() && range.is_none() {
                return None;
            }
            let absent = || Cell::from(ABSENT);
            let peak_cells = match at_peak {
                Some(f) => {
                    let at = peak.map(|p| p.at);
                    let (base_jobs, other_jobs) = match at {
                        Some(ComparedAt::Peak { base_jobs, other_jobs }) => {
                            (format!(" at {}", place(base_jobs)), format!(" at {}", place(other_jobs)))
                        }
                        _ => (String::new(), String::new()),
                    };
                    let (base, other) = (value(column, f.base), value(column, f.other));
                    [Cell::from(base + &base_jobs), Cell::from(other + &other_jobs), factor_cell(f, notes)]
                }
                None => [absent(), absent(), absent()],
            };
            let mut end = |end: Option<(u32, Factor)>| {
                end.map_or_else(absent, |(jobs, f)| {
                    let cell = factor_cell(&f, notes);
                    Cell { text: format!("{} at {}", cell.text, place(jobs)), mark: cell.mark }
                })
            };
            let ends = [end(range.map(|r| r.0)), end(range.map(|r| r.1))];
            let lead = [Cell::from(""), Cell::from(heading_of(column, c.about_the_log()))];
            Some(Row::of(lead.into_iter().chain(peak_cells).chain(ends)))
        })
        .collect();
    if let Some(first) = rows.first_mut() {
        first.first = true;
        if let Some(cell) = first.cells.first_mut() {
            let marks: Vec<String> = caveats(c).iter().map(|text| notes.mark(text, "")).collect();
            *cell = Cell { text: title(c), mark: marks.join(" ") };
        }
    }
    let why = peak.and_then(|p| p.refused.clone());
    if rows.is_empty() {
        let per_jobs = c.rows.iter().find_map(|r| r.refused.clone());
        let reason = why.or(per_jobs).unwrap_or_else(|| "no figure was measured on both platforms".to_owned());
        return vec![refused_row(&title(c), 7, &reason)];
    }
    let mut remarks: Vec<String> = Vec::new();
    if let Some(why) = why {
        remarks.push(format!("Peaks are not compared: {why}."));
    }
    for (reason, places) in refused_points(c) {
        // Its number is that of the first of them.
        let at = reason.rsplit_once(" at ").map_or(reason, |(what, _)| what);
        let reason = if places.contains(", ") && reason.contains("no valid test at ") { at } else { reason };
        remarks.push(format!("Not compared at {places}: {reason}."));
    }
    if !c.rows.iter().any(|r| matches!(r.at, ComparedAt::Jobs(_))) {
        remarks.push("No job count was measured on both platforms.".to_owned());
    }
    // With one row, the table itself names the workload.
    let named = rows.len() > 1 && !remarks.is_empty();
    if let Some(last) = rows.last_mut() {
        last.remark = format!("{}{}", if named { title(c) + ": " } else { String::new() }, remarks.join(" "));
    }
    rows
}

/// Reasons for missing factors at points that both platforms measured, each with its points: `4, 8 jobs`.
fn refused_points(c: &Comparison) -> Vec<(&str, String)> {
    let mut all: Vec<(&str, Vec<u32>)> = Vec::new();
    for row in &c.rows {
        let (ComparedAt::Jobs(at), Some(reason)) = (row.at, row.refused.as_deref()) else { continue };
        match all.iter_mut().find(|(known, _)| without_numbers(known) == without_numbers(reason)) {
            Some((_, places)) => places.push(at),
            None => all.push((reason, vec![at])),
        }
    }
    let words = |places: Vec<u32>| {
        let (last, before) = places.split_last().map_or((0, &[][..]), |(last, before)| (*last, before));
        let before: String = before.iter().map(|at| format!("{at}, ")).collect();
        before + &place(&c.over, last)
    };
    all.into_iter().map(|(reason, places)| (reason, words(places))).collect()
}

/// The workload, and the swept parameter if not jobs.
fn title(c: &Comparison) -> String {
    if c.over == JOBS { c.workload.clone() } else { format!("{} over {}", c.workload, swept(&c.over)) }
}

fn caveats(c: &Comparison) -> Vec<String> {
    // Caveats that differ only in numbers appear once.
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for caveat in c.rows.iter().filter(|r| matches!(r.at, ComparedAt::Jobs(_))).filter_map(|r| r.caveat.as_deref()) {
        match all.iter_mut().find(|(known, _)| without_numbers(known) == without_numbers(caveat)) {
            Some((known, others)) if *known != caveat => others.push(caveat),
            Some(_) => {}
            None => all.push((caveat, Vec::new())),
        }
    }
    let peak = c.peak().and_then(|p| p.caveat.as_deref());
    if let Some(caveat) = peak.filter(|p| all.iter().all(|(known, _)| without_numbers(known) != without_numbers(p))) {
        all.push((caveat, Vec::new()));
    }
    let words = |(caveat, others): (&str, Vec<&str>)| match others.len() {
        0 => caveat.to_owned(),
        n => format!("{caveat} (similar at {})", counted(n, "more point")),
    };
    all.into_iter().map(words).collect()
}

fn refused_row(label: &str, width: usize, reason: &str) -> Row {
    let mut cells: Vec<Cell> = vec![label.into()];
    cells.extend((1..width).map(|_| Cell::from(ABSENT)));
    Row { cells, first: true, remark: format!("Not compared: {reason}."), ..Row::default() }
}

/// `4.95` with a note why there is no interval, or `4.95 [4.80, 5.10]`.
fn factor_cell(f: &Factor, notes: &mut Notes) -> Cell {
    let text = format!("{:.2}", f.factor.value);
    match f.factor.interval {
        Some(i) => format!("{text} [{:.2}, {:.2}]", i.low, i.high).into(),
        None if f.n_base == 1 && f.n_other == 1 => Cell { text, mark: notes.mark(ONE_TEST, "") },
        None => {
            let reason = if f.metric.column.id.ends_with("_max") {
                "a maximum has no interval".to_owned()
            } else {
                format!("{} against {} tests: no interval", f.n_other, f.n_base)
            };
            Cell { text, mark: notes.mark(&reason, "") }
        }
    }
}

/// Every factor at every job count that both platforms measured.
pub(crate) fn in_full(comparisons: &[Comparison]) -> Section {
    let tables: Vec<Block> =
        comparisons.iter().filter(|c| !c.rows.is_empty()).map(|c| Block::Table(full_table(c))).collect();
    Section { in_text: false, ..Section::of("factors-in-full", "Factors at equal job counts", tables) }
}

fn full_table(c: &Comparison) -> Table {
    let columns: Vec<&'static Column> =
        c.metrics.iter().map(|m| m.column).filter(|column| c.rows.iter().any(|r| r.factor(column).is_some())).collect();
    let mut notes = Notes::default();
    let rows = c
        .rows
        .iter()
        .map(|row| {
            let place = match row.at {
                ComparedAt::Jobs(jobs) => jobs.to_string(),
                ComparedAt::Peak { base_jobs, other_jobs } => format!("peak: {other_jobs} against {base_jobs}"),
            };
            let mark = row.caveat.as_ref().map_or(String::new(), |caveat| notes.mark(caveat, ""));
            let mut cells = vec![Cell { text: place, mark }];
            cells.extend(columns.iter().map(|column| match row.factor(column) {
                Some(f) => factor_cell(f, &mut notes),
                None if row.refused.is_some() => ABSENT.into(),
                None => {
                    let reason = "not measured on both platforms, or zero on one";
                    Cell { text: ABSENT.to_owned(), mark: notes.mark(reason, &heading_of(column, c.about_the_log())) }
                }
            }));
            let remark = row.refused.as_ref().map(|r| format!("Not compared: {r}.")).unwrap_or_default();
            Row { cells, remark, ..Row::default() }
        })
        .collect();
    let head = std::iter::once(Head::text(&swept_title(&c.over)))
        .chain(columns.iter().map(|column| Head {
            title: heading_of(column, c.about_the_log()),
            unit: "×".to_owned(),
            numeric: true,
            tip: column.meaning.to_owned(),
        }))
        .collect();
    Table {
        caption: title(c),
        sub: format!("{} against {}", c.other, c.base),
        class: "figures",
        head,
        rows,
        notes: notes.finish(),
    }
}
