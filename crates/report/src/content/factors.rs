//! Factors between platforms, as computed by `loadline_analyze::compare`.

use loadline_analyze::compare::{ComparedAt, ComparisonRow};
use loadline_analyze::sweep::JOBS;
use loadline_analyze::{Comparison, Factor};
use loadline_model::Column;
use loadline_model::format::{ABSENT, counted};
use minijinja::context;

use crate::doc::{Block, Cell, Head, Row, Section, Table};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{alike, grouped, heading_of, place, places, swept, swept_title, value};

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

/// A figure of a workload, whether it is its first, and what is remarked below it; no figure if none is known of both platforms.
type Line<'a> = (&'a Comparison, Option<&'static Column>, bool, String);

fn summary_table(base: &str, other: &str, comparisons: &[&Comparison]) -> Table {
    let lines: Vec<Line<'_>> = comparisons.iter().flat_map(|comparison| lines(comparison)).collect();
    let place = |c: &Comparison, at: u32| if c.over == JOBS { at.to_string() } else { place(&c.over, at) };
    let side = |line: &Line<'_>, which: usize| {
        let (ComparedAt::Peak { base_jobs, other_jobs }, f) = at_peak(line)? else { return None };
        let at = place(line.0, [base_jobs, other_jobs][which]);
        Some(format!("{} at {at}", value(line.1?, [f.base, f.other][which])))
    };
    let end = |(c, column, ..): &Line<'_>, which: usize| {
        let Some((low, high)) = column.and_then(|column| c.range(column)) else { return ABSENT.into() };
        let (jobs, f) = [low, high][which];
        let cell = factor_cell(&f);
        Cell { text: format!("{} at {}", cell.text, place(c, jobs)), ..cell }
    };
    let workload = |(c, column, is_first, _): &Line<'_>| match column {
        Some(_) if *is_first => Cell::from(title(c)).noted(caveats(c), ""),
        Some(_) => Cell::default(),
        None => title(c).into(),
    };
    TableSpec::<&Line<'_>>::new("key", &lines)
        .text("Workload", workload)
        .text("Figure", |(c, column, ..)| column.map(|column| heading_of(column, c.about_the_log())))
        .number(&format!("{base} at its peak"), "", |line| side(line, 0))
        .number(&format!("{other} at its peak"), "", |line| side(line, 1))
        .number("Factor at peak", "×", |line| at_peak(line).map_or_else(|| ABSENT.into(), |(_, f)| factor_cell(f)))
        .number("Lowest at equal jobs", "×", |line| end(line, 0))
        .number("Highest at equal jobs", "×", |line| end(line, 1))
        .lines(|(.., first, remark)| Row { first: *first, remark: remark.clone(), ..Row::default() })
        .caption(format!("{other} against {base}"))
        .sub(format!("base: {base}"))
        .build()
}

fn at_peak<'a>((c, column, ..): &Line<'a>) -> Option<(ComparedAt, &'a Factor)> {
    let peak = c.peak()?;
    Some((peak.at, peak.factor((*column)?)?))
}

fn lines(c: &Comparison) -> Vec<Line<'_>> {
    let peak = c.peak();
    let is_known = |column: &&Column| c.range(column).is_some() || peak.is_some_and(|p| p.factor(column).is_some());
    let known: Vec<&'static Column> = c.metrics.iter().copied().filter(|column| is_known(column)).collect();
    let context = context! {
        known => !known.is_empty(), why => peak.and_then(|p| p.refused.as_ref()), refused => refused_points(c),
        at_jobs => c.rows.iter().any(|r| matches!(r.at, ComparedAt::Jobs(_))),
    };
    let said = prose("remark-of-factors", context);
    let Some(last) = known.len().checked_sub(1) else { return vec![(c, None, true, said)] };
    // With one row, the table itself names the workload.
    let name = if last > 0 && !said.is_empty() { title(c) + ": " } else { String::new() };
    let remark = |at: usize| if at == last { format!("{name}{said}") } else { String::new() };
    known.iter().enumerate().map(|(at, column)| (c, Some(*column), at == 0, remark(at))).collect()
}

/// Reasons for missing factors at points that both platforms measured, each with its points: `4, 8 jobs`.
fn refused_points(c: &Comparison) -> Vec<(&str, String)> {
    let refused = c.rows.iter().filter_map(|row| match row.at {
        ComparedAt::Jobs(at) => Some((row.refused.as_deref()?, at)),
        ComparedAt::Peak { .. } => None,
    });
    alike(refused).into_iter().map(|(reason, at)| (reason, places(&c.over, &at))).collect()
}

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
pub(crate) fn factor_cell(f: &Factor) -> Cell {
    let text = format!("{:.2}", f.factor.value);
    if let Some(i) = f.factor.interval {
        return format!("{text} [{:.2}, {:.2}]", i.low, i.high).into();
    }
    let reason = match (f.n_other, f.n_base) {
        (1, 1) => ONE_TEST.to_owned(),
        _ if f.metric.id.ends_with("_max") => "a maximum has no interval".to_owned(),
        (other, base) => format!("{other} against {base} tests: no interval"),
    };
    Cell::from(text).noted([reason], "")
}

pub(crate) fn in_full(comparisons: &[Comparison]) -> Section {
    let tables = comparisons.iter().filter_map(|c| Block::table(full_table(c))).collect();
    Section::evidence("factors-in-full", "Factors at equal job counts", tables)
}

fn full_table(c: &Comparison) -> Table {
    let place = |at: ComparedAt| match at {
        ComparedAt::Jobs(jobs) => jobs.to_string(),
        ComparedAt::Peak { base_jobs, other_jobs } => format!("peak: {other_jobs} against {base_jobs}"),
    };
    let mut table = TableSpec::<&ComparisonRow>::new("figures", &c.rows)
        .text(&swept_title(&c.over), |row| Cell::from(place(row.at)).noted(&row.caveat, ""));
    for column in c.metrics.iter().copied() {
        let title = heading_of(column, c.about_the_log());
        let cell = |row: &ComparisonRow| match row.factor(column) {
            Some(f) => factor_cell(f),
            None if row.refused.is_some() => ABSENT.into(),
            None => Cell::absent("not measured on both platforms, or zero on one", &title),
        };
        let head = Head::number(&title, "×").tip(column.meaning);
        table = table.column(head, cell).when(c.rows.iter().any(|r| r.factor(column).is_some()));
    }
    let remark = |row: &ComparisonRow| row.refused.as_ref().map(|r| format!("Not compared: {r}.")).unwrap_or_default();
    table
        .lines(|row| Row { remark: remark(row), ..Row::default() })
        .caption(title(c))
        .sub(format!("{} against {}", c.other, c.base))
        .build()
}
