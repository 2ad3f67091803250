//! The evidence: tests that are not valid, missing figures, errors, notes, waits and every check; and of figures that loadline did not measure,
//! imported and published ones, their source and what an audit found in them.

use loadline_model::column::column;
use loadline_model::disturbance::why_not_valid;
use loadline_model::format::counted;
use loadline_model::{Check, Column, Imported, Outcome, TestRecord};
use minijinja::{Value, context};

use super::{qualified, stop};
use crate::doc::{Block, Row, Section};
use crate::platform_run::PlatformRun;
use crate::spec::{SIMILAR, TableSpec};
use crate::templates::prose;
use crate::words::{are, distinct, grouped, tests_named, without_numbers};

const TOP_WAITS: usize = 5;

/// A test with the label of its platform.
type Of<'a> = (&'a str, &'a TestRecord);

/// Evidence of the `measured` ones of `sides`. What an imported or published run lacks has its reason too.
pub(crate) fn section(sides: &[PlatformRun<'_>], measured: &[PlatformRun<'_>], on_paper: bool) -> Section {
    let all: Vec<Of<'_>> = measured.iter().flat_map(|s| s.run.records.iter().map(|r| (s.label.as_str(), r))).collect();
    let several = measured.len() > 1;
    let mut blocks = not_valid(&all, several);
    blocks.extend(Block::under("Missing figures", table("missing figures", missing(sides))));
    blocks.extend(Block::under("Errors of transactions", table("errors", errors(&all, several))));
    blocks.extend(Block::under("Notes", Block::list(measured.iter().flat_map(|side| notes(side, several)))));
    let folded = |table| Block::details("Wait profile of the job sessions", vec![table]);
    blocks.extend(Block::under("Waits", table("wait profiles", waits(&all, several)).map(folded)));
    blocks.extend(checks(&all, several, on_paper));
    Section::evidence("evidence", "Evidence", blocks)
}

/// The table of `what`, if it has rows.
fn table(what: &str, rows: Vec<Value>) -> Option<Block> {
    Block::table(TableSpec::<&Value>::new("facts", &rows).columns(&format!("table of {what}"), Clone::clone).build())
}

/// A row about a test.
fn of_test((label, r): Of<'_>, several: bool, more: Value) -> Value {
    context! { several, label, test => r.test, workload => r.workload, jobs => r.jobs, ..more }
}

fn not_valid(all: &[Of<'_>], several: bool) -> Vec<Block> {
    let table = TableSpec::<Of<'_>>::new("facts", all.iter().copied().filter(|(_, r)| !r.valid))
        .columns("table of tests that are not valid", |of| {
            let (validity, why) = (of.1.validity().map(|of| of.name()), why_not_valid(of.1));
            of_test(of, several, context! { validity, why })
        })
        .lines(|(_, r)| Row { invalid: !r.is_usable(), ..Row::default() });
    Block::under("Tests that are not valid", Block::table(table.build()))
}

fn missing(sides: &[PlatformRun<'_>]) -> Vec<Value> {
    let mut rows = Vec::new();
    for side in sides {
        let absent = side.run.records.iter().flat_map(|r| r.absent.iter().map(move |(id, why)| (id, why, r.test)));
        for (reason, of) in grouped(absent, |(_, why, _)| *why) {
            let title = |id: &String| column(id).map_or_else(|| id.clone(), Column::heading);
            let columns = distinct(of.iter().map(|(id, ..)| title(id)));
            let tests = distinct(of.iter().map(|(.., test)| *test));
            let all = tests.len() == side.run.records.len();
            rows.push(context! { label => side.label, columns, tests, all, reason });
        }
    }
    rows
}

fn errors(all: &[Of<'_>], several: bool) -> Vec<Value> {
    let rows = all
        .iter()
        .flat_map(|of| of.1.error_texts.iter().map(move |(text, n)| of_test(*of, several, context! { text, n })));
    rows.collect()
}

/// Notes and forced refusals of `records`: texts that differ only in numbers once, with their tests.
fn noted(records: &[TestRecord]) -> impl Iterator<Item = String> {
    let of_test = |r: &TestRecord| {
        let texts = r.notes.iter().map(ToString::to_string).chain(Option::from(r.forced.clone()));
        texts.map(|text| (text, r.test)).collect::<Vec<_>>()
    };
    let said = |(_, of): (String, Vec<(String, u32)>)| {
        let (texts, tests): (Vec<String>, Vec<u32>) = of.into_iter().unzip();
        let first = texts.first()?;
        let others = if texts.iter().all(|text| text == first) { "" } else { SIMILAR };
        Some(format!("{}: {}{others}.", tests_named(&tests), stop(first)))
    };
    grouped(records.iter().flat_map(of_test), |(text, _)| without_numbers(text)).into_iter().filter_map(said)
}

fn notes(side: &PlatformRun<'_>, several: bool) -> impl Iterator<Item = String> {
    let of = if several { format!("{}, ", side.label) } else { String::new() };
    let records = &side.run.records;
    noted(records).chain(qualified::noticed(records)).map(move |text| format!("{of}{text}"))
}

fn waits(all: &[Of<'_>], several: bool) -> Vec<Value> {
    let profile = |r: &TestRecord| {
        let mut events: Vec<(&str, u64)> = r.waits.sessions.iter().map(|(event, n)| (event.as_str(), *n)).collect();
        events.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let rest =
            events.split_off(events.len().min(TOP_WAITS)).into_iter().map(|(_, n)| n).fold(0, u64::saturating_add);
        events.extend((rest > 0).then_some(("others", rest)));
        let mean = |(event, n): (&str, u64)| format!("{event} {:.2}", n as f64 / f64::from(r.waits.samples));
        events.into_iter().map(mean).collect::<Vec<String>>()
    };
    let sampled = all.iter().filter(|(_, r)| r.waits.samples > 0);
    let row = |of: &Of<'_>| of_test(*of, several, context! { samples => of.1.waits.samples, profile => profile(of.1) });
    sampled.map(row).collect()
}

fn outcome(check: &Check) -> &'static str {
    match check.outcome {
        Outcome::Passed => "passed",
        Outcome::Noted => "noted",
        Outcome::Failed if check.id.is_of_disturbance() => "DISTURBED",
        Outcome::Failed => "FAILED",
        Outcome::NotMade => "not possible",
    }
}

/// All checks; on paper those that were noted or failed, as the others fill a page for each test.
fn checks(all: &[Of<'_>], several: bool, on_paper: bool) -> Vec<Block> {
    let made: Vec<(&str, &TestRecord, &Check)> =
        all.iter().flat_map(|(label, r)| r.checks.iter().map(move |c| (*label, *r, c))).collect();
    let ended = ["passed", "noted", "DISTURBED", "FAILED", "not possible"];
    let n = |word: &str| made.iter().filter(|(.., c)| outcome(c) == word).count();
    let counts = ended.map(|word| format!("{} {}", n(word), word.to_lowercase()));
    let summary = format!("{}: {}", counted(made.len(), "check"), counts.join(", "));
    let is_refusing = |c: &Check| c.outcome == Outcome::Failed && !c.id.is_of_disturbance();
    let told = |o: Outcome| !on_paper || matches!(o, Outcome::Noted | Outcome::Failed);
    let test = |(label, r, _): (&str, &TestRecord, &Check)| {
        let of = if several { format!(" of {label}") } else { String::new() };
        format!("Test {}{of}: {}, {}", r.test, r.workload, counted(r.jobs as usize, "job"))
    };
    let table = TableSpec::new("facts", made.iter().copied().filter(|(.., c)| told(c.outcome)))
        .titles(test)
        .text("Check", |(.., c)| c.id.to_string())
        .text("Outcome", |(.., c)| outcome(c))
        .text("Value seen and value allowed", |(.., c)| &c.detail)
        .lines(|(.., c)| Row { invalid: is_refusing(c), ..Row::default() });
    let more = on_paper.then(|| Block::para("On paper only checks that were noted or failed; --format html has all."));
    let blocks = Block::table(table.build()).into_iter().chain(more).collect();
    Block::under("Checks", (!made.is_empty()).then(|| Block::details(summary, blocks)))
}

/// The tests of all sides that are imported, in a sentence; `None` without any.
pub(super) fn verdict_elsewhere(sides: &[PlatformRun<'_>]) -> Option<String> {
    let records = || sides.iter().flat_map(|side| &side.run.records).filter_map(|r| r.imported());
    let tools = distinct(records().map(Imported::tool_and_version));
    let tests = records().count();
    let said = format!("{} {} imported from {}", counted(tests, "test"), are(tests), tools.join(" and "));
    (tests > 0).then(|| format!("{said}: not checked by loadline."))
}

pub(super) fn imported(sides: &[PlatformRun<'_>]) -> Section {
    let mut blocks = Vec::new();
    for side in sides.iter().filter(|side| side.run.published.as_ref().is_some_and(|p| p.imported)) {
        blocks.extend(source(side, true));
        blocks.push(Block::List { items: files(side).into_iter().chain(noted(&side.run.records)).collect() });
    }
    let blocks = Block::explained(blocks, &prose("imported", ()));
    Section::new("imported", "Imported, not checked", blocks)
}

/// The section on published platforms; empty without any. A brief one does not list what audits found.
pub(super) fn published(sides: &[PlatformRun<'_>], brief: bool) -> Section {
    let published = sides.iter().filter(|side| side.run.published.as_ref().is_some_and(|p| !p.imported));
    let blocks = published.flat_map(|side| source(side, !brief)).collect();
    let blocks = Block::explained(blocks, &prose("published", ()));
    Section::new("published", "Published, not measured", blocks)
}

/// Where the figures of `side` come from, and what an audit of their table found: how much, and if `listed`, what.
fn source(side: &PlatformRun<'_>, listed: bool) -> Vec<Block> {
    let Some(published) = &side.run.published else { return Vec::new() };
    let label = &side.label;
    let errors = published.findings.iter().filter(|f| f.is_error).count();
    let (found, tests, source) = (published.findings.len(), side.run.records.len(), &published.source);
    let mut blocks = vec![Block::para(prose("source", context! { label, tests, source, found, errors }))];
    if listed && !published.findings.is_empty() {
        let list = Block::List { items: published.findings.iter().map(|f| f.said.clone()).collect() };
        blocks.push(Block::details(format!("The audit of {label}"), vec![list]));
    }
    blocks
}

fn files(side: &PlatformRun<'_>) -> Vec<String> {
    let files = side.run.records.iter().filter_map(|r| r.imported()).flat_map(|i| &i.files);
    distinct(files.map(|file| format!("file {}, {} bytes, SHA-256 {}", file.name, file.bytes, file.sha256)))
}
