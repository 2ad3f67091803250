//! The manifests of all platforms side by side, the commands to repeat the runs, and where the figures of each column come from.

use loadline_model::format::{bytes, number};
use loadline_model::manifest::{Manifest, TableLoad};
use loadline_model::{Column, Finding, Severity};
use minijinja::context;

use super::settings::{self, collect, side_by_side};
use super::stop;
use crate::columns;
use crate::doc::{Block, Head, Row, Section};
use crate::platform_run::PlatformRun;
use crate::spec::TableSpec;
use crate::templates::{facts, prose};
use crate::words::distinct;

pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let of = |what: &str| collect(sides, |m| facts_of(what, m));
    let facts = [
        ("Run and plan", of("plan")),
        ("Database", of("database")),
        ("Settings", settings::all(sides)),
        ("Machine", of("machine")),
        ("Storage", of("storage")),
        ("Storage probe before the run", of("probe")),
        ("Cost of loadline itself", of("cost")),
        ("Calibration: redo per transaction", of("calibration")),
    ];
    let facts = facts.into_iter().map(|(title, rows)| Block::under(title, Block::table(side_by_side(sides, rows))));
    let rest = [loads(sides), doctor(sides), target_notes(sides)];
    Section::evidence("platforms", "Platforms", facts.chain(rest).flatten().collect())
}

/// Names and values of what a manifest says of the plan, the machine and so on.
pub(crate) fn facts_of(what: &str, m: &Manifest) -> Vec<(String, String)> {
    let (p, name) = (&m.plan, format!("facts of the {what}"));
    facts(
        &name,
        context! { m, warmup => p.warmup(), window => p.duration_s.to_string(), load => p.load.words(), seeds => p.seeds() },
    )
}

fn doctor(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let mut findings: Vec<(&str, &Finding)> = Vec::new();
    for side in sides {
        let mut own: Vec<&Finding> = side.run.manifest.doctor.iter().collect();
        own.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings.extend(own.into_iter().map(|finding| (side.label.as_str(), finding)));
    }
    let severity = |severity: Severity| match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Refused => "REFUSED",
        Severity::Impossible => "IMPOSSIBLE",
    };
    let table = TableSpec::<(&str, &Finding)>::of("facts", findings)
        .text("Platform", |(label, _)| label)
        .once()
        .text("Severity", |(_, finding)| severity(finding.severity))
        .text("Subject", |(_, finding)| &finding.subject)
        .text("Value", |(_, finding)| &finding.value)
        .text("Advice", |(_, finding)| &finding.advice)
        .lines(|(_, finding)| Row { invalid: finding.severity >= Severity::Refused, ..Row::default() });
    Block::under("Doctor findings before the run", Block::table(table.build()))
}

fn target_notes(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let of = |side: &PlatformRun<'_>| if sides.len() > 1 { format!("{}: ", side.label) } else { String::new() };
    let notes = sides.iter().flat_map(|side| side.run.manifest.target.notes.iter().map(move |note| (side, note)));
    let items = notes.map(|(side, note)| format!("{}{}.", of(side), stop(note)));
    Block::under("About the target", Block::list(items))
}

/// The tables that the runs loaded; empty if none did.
fn loads(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let loads = sides.iter().flat_map(|side| side.run.manifest.data_set.iter().map(move |t| (side.label.as_str(), t)));
    let table = TableSpec::<(&str, &TableLoad)>::of("facts", loads)
        .text("Platform", |(label, _)| label)
        .once()
        .when(sides.len() > 1)
        .text("Table", |(_, t)| &t.table)
        .number("Rows", "", |(_, t)| number(t.rows as f64, 0))
        .number("Loaded", "rows", |(_, t)| number(t.rows_loaded as f64, 0))
        .number("Values", "", |(_, t)| bytes(t.bytes_loaded as f64))
        .number("Load", "s", |(_, t)| number(t.load_s, 2))
        .number("Finish", "s", |(_, t)| number(t.finish_s, 2))
        .number("Rate", "rows/s", |(_, t)| number(t.rows_per_s(), 0))
        .number("Rate", "MiB/s", |(_, t)| number(t.mib_per_s(), 1))
        .number("Sessions", "", |(_, t)| t.loaders.to_string())
        .text("Method", |(_, t)| &t.path)
        .text("Fingerprint", |(_, t)| format!("{} (version {})", t.fingerprint, t.version))
        .tips("tips of the data set");
    Block::under("Data set", Block::table(table.build()))
}

pub(crate) fn again(sides: &[PlatformRun<'_>]) -> Section {
    let mut blocks = Vec::new();
    for side in sides {
        let command = &side.run.manifest.command;
        if command.is_empty() {
            continue;
        }
        if sides.len() > 1 {
            blocks.push(Block::heading(side.label.clone()));
        }
        blocks.push(Block::Code { text: command.iter().map(|a| shell(a)).collect::<Vec<_>>().join(" ") });
    }
    if !blocks.is_empty() {
        let seeds: Vec<String> = sides.iter().map(|s| s.run.manifest.plan.seeds()).collect();
        blocks.push(Block::para(prose("again", context! { seeds })));
    }
    Section::evidence("again", "Run it again", blocks)
}

/// `argument`, quoted for a shell if needed.
fn shell(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

/// All columns of the runs' tables with their meaning, and their sources by kind of target.
pub(crate) fn glossary(sides: &[PlatformRun<'_>]) -> Section {
    let columns = columns::of_files(sides.iter().flat_map(|s| &s.run.records));
    let mut table = TableSpec::<&Column>::of("facts", columns)
        .text("Column", Column::heading)
        .text("Id", |c| c.id)
        .text("Meaning", |c| c.meaning);
    for kind in distinct(sides.iter().map(|side| side.run.manifest.target.kind.as_str())) {
        table = table.column(Head::text(&format!("Source on {kind}")), |c| c.source(kind).unwrap_or_default());
    }
    let details = Block::details("All columns with meaning and source", vec![Block::Table(table.build())]);
    Section::evidence("columns", "Sources of the figures", vec![details])
}

#[cfg(test)]
mod tests {
    use super::shell;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(shell("postgres://u@h/db"), "postgres://u@h/db");
        assert_eq!(shell("postgres://u@/db?host=/tmp&port=5"), "'postgres://u@/db?host=/tmp&port=5'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(shell(""), "''");
    }
}
