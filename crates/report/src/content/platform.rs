//! The manifests of all platforms side by side, the facts that tables of published studies state, settings that differ, the commands to repeat
//! the runs, and the sources of figures.

use loadline_model::facts::{self, FACTS};
use loadline_model::format::ABSENT;
use loadline_model::manifest::{Manifest, TableLoad};
use loadline_model::{Column, Finding, Severity};
use minijinja::context;

use super::stop;
use crate::RunData;
use crate::doc::{Block, Head, Row, Section, Table};
use crate::listing::Listing;
use crate::platform_run::{PlatformRun, sides};
use crate::spec::TableSpec;
use crate::templates::{parts, prose, stored};
use crate::words::{columns_of_files, cut, distinct};

pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let of = |what: &str| collect(sides, |m| facts_of(what, m));
    let facts = [
        ("Run and plan", of("plan")),
        ("Database", of("database")),
        ("Settings", all_settings(sides)),
        ("Machine", of("machine")),
        ("Storage", of("storage")),
        ("Storage probe before the run", of("probe")),
        ("Cost of loadline itself", of("cost")),
        ("Calibration: redo per transaction", of("calibration")),
    ];
    let facts = facts.into_iter().map(|(title, rows)| Block::under(title, Block::table(side_by_side(sides, &rows))));
    let rest = [loads(sides), doctor(sides), target_notes(sides)];
    Section::evidence("platforms", "Platforms", facts.chain(rest).flatten().collect())
}

/// Names and values of what a manifest says of the plan, the machine and so on.
pub(crate) fn facts_of(what: &str, m: &Manifest) -> Vec<[String; 2]> {
    let p = &m.plan;
    let (window, load, seeds) = (p.duration_s.to_string(), p.load.words(), p.seeds());
    parts(&format!("facts of the {what}"), context! { m => stored(m), warmup => p.warmup(), window, load, seeds })
}

fn doctor(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let mut findings: Vec<(&str, &Finding)> = Vec::new();
    for side in sides {
        let mut own: Vec<&Finding> = side.run.manifest.doctor.iter().collect();
        own.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings.extend(own.into_iter().map(|finding| (side.label.as_str(), finding)));
    }
    let row = |(label, of): (&str, &Finding)| context! { label, severity => of.severity.word(), of };
    let table = TableSpec::<(&str, &Finding)>::new("facts", findings)
        .columns("table of findings", row)
        .lines(|(_, finding)| Row { invalid: finding.severity >= Severity::Refused, ..Row::default() });
    Block::under("Doctor findings before the run", Block::table(table.build()))
}

fn target_notes(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let of = |side: &PlatformRun<'_>| if sides.len() > 1 { format!("{}: ", side.label) } else { String::new() };
    let notes = sides.iter().flat_map(|side| side.run.manifest.target.notes.iter().map(move |note| (side, note)));
    let items = notes.map(|(side, note)| format!("{}{}.", of(side), stop(note)));
    Block::under("About the target", Block::list(items))
}

fn loads(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let loads = sides.iter().flat_map(|side| side.run.manifest.data_set.iter().map(move |t| (side.label.as_str(), t)));
    let row = |(label, of): (&str, &TableLoad)| {
        context! { several => sides.len() > 1, label, of, rows_per_s => of.rows_per_s(), mib_per_s => of.mib_per_s() }
    };
    let table = TableSpec::new("facts", loads).columns("table of the data set", row);
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

fn shell(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

/// All columns of the runs' tables with their meaning, and their sources by kind of target.
pub(crate) fn glossary(sides: &[PlatformRun<'_>]) -> Section {
    let columns = columns_of_files(sides.iter().flat_map(|s| &s.run.records));
    let mut table = TableSpec::<&Column>::new("facts", columns)
        .text("Column", Column::heading)
        .text("Id", |c| c.id)
        .text("Meaning", |c| c.meaning);
    for kind in distinct(sides.iter().map(|side| side.run.manifest.target.kind.as_str())) {
        table = table.column(Head::text(&format!("Source on {kind}")), |c| c.source(kind).unwrap_or_default());
    }
    let details = Block::details("All columns with meaning and source", vec![Block::Table(table.build())]);
    Section::evidence("columns", "Sources of the figures", vec![details])
}

const DIFFERS: &str = "≠ ";
/// Most settings, and characters of a value, in the short table; the full one has them all.
const FEW: usize = 30;
const SHORT: usize = 40;

/// Whether a value names the folder of a private server: another one for each.
pub(crate) fn of_private_server(value: &str) -> bool {
    ["loadline-pg-", "loadline-mariadb-", "loadline-mysql-"].iter().any(|prefix| value.contains(prefix))
}

fn all_settings(sides: &[PlatformRun<'_>]) -> Facts {
    let (mut first, same) = split(sides);
    first.iter_mut().for_each(|(name, _)| name.insert_str(0, DIFFERS));
    first.into_iter().chain(same).collect()
}

/// The settings that differ, where the figures are compared.
pub(crate) fn settings(sides: &[PlatformRun<'_>]) -> Section {
    let (mut differing, _) = split(sides);
    let more = differing.len().saturating_sub(FEW);
    differing.truncate(FEW);
    differing.iter_mut().flat_map(|(_, values)| values).for_each(|value| *value = cut(value, SHORT));
    let left_out = format!("And {more} more: see the settings of the platforms in the HTML report.");
    let left_out = (more > 0).then(|| Block::para(left_out));
    let blocks = Block::table(side_by_side(sides, &differing)).into_iter().chain(left_out).collect();
    Section::new("settings", "Settings that differ", blocks)
}

/// The settings that differ between platforms, and the others. One that a platform lacks differs if all are of one product:
/// others have settings of their own.
fn split(sides: &[PlatformRun<'_>]) -> (Facts, Facts) {
    let target = |s: &PlatformRun<'_>| s.run.manifest.target.product.clone();
    let one_product = sides.windows(2).all(|pair| target(&pair[0]) == target(&pair[1]));
    let all = collect(sides, |m| m.target.settings.clone().into_iter().map(<[String; 2]>::from).collect());
    all.into_iter().partition(|(_, values)| {
        let mut known = values.iter().filter(|v| one_product || *v != ABSENT);
        let first = known.next();
        known.any(|v| Some(v) != first) && !values.iter().all(|v| of_private_server(v))
    })
}

/// Names, each with its value on every platform.
type Facts = Vec<(String, Vec<String>)>;

/// Rows of all manifests by name, in the order in which names first appear.
fn collect(sides: &[PlatformRun<'_>], of: impl Fn(&Manifest) -> Vec<[String; 2]>) -> Facts {
    let each: Vec<Vec<[String; 2]>> = sides.iter().map(|side| of(&side.run.manifest)).collect();
    let value = |facts: &Vec<[String; 2]>, name: &String| {
        facts.iter().find(|[n, _]| n == name).map_or(ABSENT.to_owned(), |[_, v]| v.clone())
    };
    let names = distinct(each.iter().flatten().map(|[name, _]| name));
    names.into_iter().map(|name| (name.clone(), each.iter().map(|facts| value(facts, name)).collect())).collect()
}

fn side_by_side(sides: &[PlatformRun<'_>], rows: &[(String, Vec<String>)]) -> Table {
    let mut table = TableSpec::<&(String, Vec<String>)>::new("facts manifest", rows).text("", |(name, _)| name);
    for (at, side) in sides.iter().enumerate() {
        table = table.text(&side.label, |(_, values)| &values[at]);
    }
    table.build()
}

/// The section, if a fact of any platform is stated: what the machines show is said of the platforms in any case.
pub(crate) fn facts_section(runs: &[RunData]) -> Section {
    let sides = sides(runs);
    let mut rows = collect(&sides, |m| facts::facts(m).iter().map(|of| [of.title.to_owned(), of.words()]).collect());
    rows.sort_by_key(|(title, _)| FACTS.iter().position(|name| name.title == title));
    if sides.iter().all(|side| facts::facts(&side.run.manifest).iter().all(|fact| fact.stated.is_none())) {
        rows.clear();
    }
    let blocks = Block::table(side_by_side(&sides, &rows)).into_iter().collect();
    Section::new("facts", "Facts of the platforms", Block::explained(blocks, &prose("stated-facts", ())))
}

pub(crate) fn facts_listing(runs: &[RunData]) -> Listing {
    let of_side = |side: PlatformRun<'_>| {
        let facts = facts::facts(&side.run.manifest);
        facts.into_iter().map(move |of| context! { label => side.label, of })
    };
    Listing::new("facts", sides(runs).into_iter().flat_map(of_side))
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
