//! Factors between platforms, as computed by `loadline_analyze::compare`.

use loadline_analyze::compare::{ComparedAt, ComparisonRow};
use loadline_analyze::sweep::JOBS;
use loadline_analyze::{Comparison, Factor};
use loadline_model::Column;
use loadline_model::format::{ABSENT, counted};

use crate::columns::value;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{alike, grouped, heading_of, place, swept, swept_title};

const ONE_TEST: &str = "one test each: no interval";

/// Factors at each platform's peak, and their range over equal job counts.
pub(crate) fn summary(comparisons: &[Comparison]) -> Section {
    let mut blocks = Vec::new();
    for ((base, other), of_pair) in grouped(comparisons, |c| (&c.base, &c.other)) {
        let (refused, compared): (Vec<&Comparison>, Vec<&Comparison>) =
            of_pair.into_iter().partition(|c| c.refused.is_some());
        blocks.extend(Block::table(summary_table(base, other, &compared)));
        blocks.extend(not_compared(&refused));
    }
    let blocks = Block::explained(blocks, &prose("factors", ()));
    Section::new("factors", "Factors between platforms", blocks)
}

/// Each reason in one sentence, with the workloads it holds for.
fn not_compared(refused: &[&Comparison]) -> Vec<Block> {
    let reason = |c: &&&Comparison| match &c.lacks {
        Some(side) => format!("'{side}' has no test of them"),
        None => c.refused.clone().unwrap_or_default(),
    };
    let said = |(reason, of): (String, Vec<&&Comparison>)| {
        let codes: Vec<String> = of.into_iter().map(|c| title(c)).collect();
        Block::para(format!("Not compared: {} ({reason}).", codes.join(", ")))
    };
    grouped(refused, reason).into_iter().map(said).collect()
}

fn summary_table(base: &str, other: &str, comparisons: &[&Comparison]) -> Table {
    let notes = Notes::default();
    let head = [
        Head::text("Workload"),
        Head::text("Figure"),
        Head::number(&format!("{base} at its peak"), ""),
        Head::number(&format!("{other} at its peak"), ""),
        Head::number("Factor at peak", "×"),
        Head::number("Lowest at equal jobs", "×"),
        Head::number("Highest at equal jobs", "×"),
    ];
    let rows = comparisons.iter().flat_map(|comparison| summary_rows(comparison, &notes));
    let mut table = Table::new("key", head, rows);
    table.notes = notes.finish(&mut table.rows);
    Table { caption: format!("{other} against {base}"), sub: format!("base: {base}"), ..table }
}

fn summary_rows(c: &Comparison, notes: &Notes) -> Vec<Row> {
    let peak = c.peak();
    let place = |at: u32| if c.over == JOBS { at.to_string() } else { place(&c.over, at) };
    let row = |column: &'static Column| {
        let (at_peak, range) = (peak.and_then(|p| p.factor(column)), c.range(column));
        if at_peak.is_none() && range.is_none() {
            return None;
        }
        let [base, other, factor] = match at_peak {
            Some(f) => {
                let [base, other] = match peak.map(|p| p.at) {
                    Some(ComparedAt::Peak { base_jobs, other_jobs }) => {
                        [base_jobs, other_jobs].map(|jobs| format!(" at {}", place(jobs)))
                    }
                    _ => Default::default(),
                };
                let side = |at: String, figure: f64| Cell::from(value(column, figure) + &at);
                [side(base, f.base), side(other, f.other), factor_cell(f, notes)]
            }
            None => [ABSENT; 3].map(Cell::from),
        };
        let end = |(jobs, f): (u32, Factor)| {
            let cell = factor_cell(&f, notes);
            Cell { text: format!("{} at {}", cell.text, place(jobs)), ..cell }
        };
        let [low, high] = match range {
            Some((low, high)) => [end(low), end(high)],
            None => [ABSENT; 2].map(Cell::from),
        };
        Some(Row::new(["".into(), heading_of(column, c.about_the_log()).into(), base, other, factor, low, high]))
    };
    let mut rows: Vec<Row> = c.metrics.iter().filter_map(|metric| row(metric)).collect();
    let why = peak.and_then(|p| p.refused.clone());
    let several = rows.len() > 1;
    let Some(first) = rows.first_mut() else {
        let remark = match (why, refused_points(c).first()) {
            (Some(why), _) => format!("Not compared: {why}."),
            (None, Some((why, places))) => format!("Not compared at {places}: {why}."),
            (None, None) => "Not compared: no figure was measured on both platforms.".to_owned(),
        };
        let cells = std::iter::once(title(c)).chain((1..7).map(|_| ABSENT.to_owned()));
        return vec![Row { first: true, remark, ..Row::new(cells) }];
    };
    first.first = true;
    first.cells[0] = Cell::from(title(c)).marked(caveats(c).iter().map(|text| notes.mark(text, "")));
    let mut remarks: Vec<String> = Vec::new();
    remarks.extend(why.map(|why| format!("Peaks are not compared: {why}.")));
    for (reason, places) in refused_points(c) {
        remarks.push(format!("Not compared at {places}: {reason}."));
    }
    if !c.rows.iter().any(|r| matches!(r.at, ComparedAt::Jobs(_))) {
        remarks.push("No job count was measured on both platforms.".to_owned());
    }
    // With one row, the table itself names the workload.
    let named = several && !remarks.is_empty();
    if let Some(last) = rows.last_mut() {
        last.remark = format!("{}{}", if named { title(c) + ": " } else { String::new() }, remarks.join(" "));
    }
    rows
}

/// Reasons for missing factors at points that both platforms measured, each with its points: `4, 8 jobs`.
fn refused_points(c: &Comparison) -> Vec<(&str, String)> {
    let refused = c.rows.iter().filter_map(|row| match row.at {
        ComparedAt::Jobs(at) => Some((row.refused.as_deref()?, at)),
        ComparedAt::Peak { .. } => None,
    });
    let words = |places: Vec<u32>| {
        let (last, before) = places.split_last().map_or((0, &[][..]), |(last, before)| (*last, before));
        let before: String = before.iter().map(|at| format!("{at}, ")).collect();
        before + &place(&c.over, last)
    };
    alike(refused).into_iter().map(|(reason, places)| (reason, words(places))).collect()
}

/// The workload, and the swept parameter if not jobs.
pub(super) fn title(c: &Comparison) -> String {
    if c.over == JOBS { c.workload.clone() } else { format!("{} over {}", c.workload, swept(&c.over)) }
}

/// Caveats of all points, those that differ only in numbers once; that of the peak if no point has one like it.
fn caveats(c: &Comparison) -> Vec<String> {
    let at_jobs = c.rows.iter().filter(|r| matches!(r.at, ComparedAt::Jobs(_))).filter_map(|r| r.caveat.as_deref());
    let peak = c.peak().and_then(|p| p.caveat.as_deref());
    let all = alike(at_jobs.map(|caveat| (caveat, Some(caveat))).chain(peak.map(|caveat| (caveat, None))));
    let words = |(caveat, points): (&str, Vec<Option<&str>>)| match points
        .into_iter()
        .flatten()
        .filter(|other| *other != caveat)
        .count()
    {
        0 => caveat.to_owned(),
        n => format!("{caveat} (similar at {})", counted(n, "more point")),
    };
    all.into_iter().map(words).collect()
}

/// `4.95` with a note why there is no interval, or `4.95 [4.80, 5.10]`.
pub(crate) fn factor_cell(f: &Factor, notes: &Notes) -> Cell {
    let text = format!("{:.2}", f.factor.value);
    if let Some(i) = f.factor.interval {
        return format!("{text} [{:.2}, {:.2}]", i.low, i.high).into();
    }
    let reason = match (f.n_other, f.n_base) {
        (1, 1) => ONE_TEST.to_owned(),
        _ if f.metric.id.ends_with("_max") => "a maximum has no interval".to_owned(),
        (other, base) => format!("{other} against {base} tests: no interval"),
    };
    Cell::from(text).marked([notes.mark(&reason, "")])
}

/// Every factor at every job count that both platforms measured.
pub(crate) fn in_full(comparisons: &[Comparison]) -> Section {
    let tables = comparisons.iter().filter_map(|c| Block::table(full_table(c))).collect();
    Section::evidence("factors-in-full", "Factors at equal job counts", tables)
}

fn full_table(c: &Comparison) -> Table {
    let notes = Notes::default();
    let place = |at: ComparedAt| match at {
        ComparedAt::Jobs(jobs) => jobs.to_string(),
        ComparedAt::Peak { base_jobs, other_jobs } => format!("peak: {other_jobs} against {base_jobs}"),
    };
    let caveat = |row: &ComparisonRow| row.caveat.as_ref().map(|caveat| notes.mark(caveat, ""));
    let mut table = TableSpec::<&ComparisonRow>::new("figures", &c.rows)
        .text(&swept_title(&c.over), |row| Cell::from(place(row.at)).marked(caveat(row)));
    for column in c.metrics.iter().copied() {
        let title = heading_of(column, c.about_the_log());
        let cell = |row: &ComparisonRow| match row.factor(column) {
            Some(f) => factor_cell(f, &notes),
            None if row.refused.is_some() => ABSENT.into(),
            None => Cell::absent(
                notes.mark("not measured on both platforms, or zero on one", &heading_of(column, c.about_the_log())),
            ),
        };
        let head = Head::number(&title, "×").tip(column.meaning);
        table = table.column(head, cell).when(c.rows.iter().any(|r| r.factor(column).is_some()));
    }
    let remark = |row: &ComparisonRow| row.refused.as_ref().map(|r| format!("Not compared: {r}.")).unwrap_or_default();
    table
        .lines(|row| Row { remark: remark(row), ..Row::default() })
        .caption(title(c))
        .sub(format!("{} against {}", c.other, c.base))
        .notes(&notes)
        .build()
}
