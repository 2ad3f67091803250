//! `loadline audit`: checks a table of results by operational laws.

use std::fmt::Display;
use std::path::Path;

use loadline_analyze::audit::{
    Audit, AuditError, Claim, Finding, LAWS, Law, Mapping, Severity, audit, columns_of_laws, table,
};
use loadline_model::format::{counted, csv_line};
use loadline_model::{Check, CheckId, Column, Outcome, TestRecord};
use loadline_report::{AuditFinding, Format, clean};

use crate::args::{AuditArgs, ListArgs};
use crate::exit::{self, Failure};
use crate::target::run_folder;
use crate::{listing, output, source};

pub(crate) fn check(args: &AuditArgs) -> Result<u8, Failure> {
    if args.laws {
        return laws(&args.list);
    }
    let Some(file) = &args.file else {
        return Err(Failure::usage("name a file or a run to audit, or list the laws with --laws"));
    };
    let (text, name) = match source::text(file)? {
        Some(found) => found,
        None => read(file, &args.results)?,
    };
    let of_file = |what: &dyn Display| Failure::usage(format!("{}: {what}", file.display()));
    let of_options = |refusal: AuditError| Failure::usage(refusal.to_string());
    let tables = table::read(&text, &name).map_err(|e| of_file(&e))?;
    drop(text);
    let mapping = args.columns.as_deref().map_or(Ok(Mapping::default()), Mapping::parse).map_err(of_options)?;
    mapping.check(&tables).map_err(of_options)?;
    let claims: Result<Vec<Claim>, AuditError> = args.claim.iter().map(|c| Claim::parse(c)).collect();
    let found = audit(&tables, &mapping, &claims.map_err(of_options)?);
    match args.list.format {
        Format::Text => output::write(&args.list.output, text_of(&found).as_bytes()).map(|()| 0),
        _ => {
            let columns = "severity table row columns law printed recomputed deviation_pct message".split(' ');
            let (columns, numbers) = (columns.collect::<Vec<_>>(), ["row", "recomputed", "deviation_pct"]);
            listing::write_with(&args.list, &columns, found.findings.iter().map(row).collect(), &numbers)
        }
    }
    // Exit code 1 says that errors were found.
    .map_err(|e| Failure { code: exit::USAGE, ..e })?;
    match (found.unchecked.first(), found.refused.first()) {
        (Some(claim), _) => Err(of_options(claim.clone())),
        _ if found.count(Severity::Error) > 0 => Ok(exit::FAILED),
        (_, Some(shape)) => Err(of_file(shape)),
        _ if found.checked.is_empty() => Err(of_file(&"nothing was checked: no law covers its columns")),
        _ => Ok(0),
    }
}

/// Findings of an audit of the table `text`; those of one law are counted after the first.
pub(crate) fn findings(text: &str, name: &str) -> Result<Vec<AuditFinding>, Failure> {
    let tables = table::read(text, name).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let found = audit(&tables, &Mapping::default(), &[]).findings;
    let sentence = |all: &[Finding]| {
        let (f, count) = (&all[0], all.len());
        let more = if count > 1 { format!(" ({count} such findings; this is the first)") } else { String::new() };
        let said = format!("{} ({}): {}{more}", f.severity.name(), f.law, message(f));
        AuditFinding { is_error: f.severity == Severity::Error, said }
    };
    // Findings of one law and severity stand together.
    Ok(found.chunk_by(|a, b| (a.law, a.severity) == (b.law, b.severity)).map(sentence).collect())
}

/// Laws that do not hold for commits that do not wait.
const OF_WAITING_COMMITS: [&str; 4] =
    ["commits_per_redo_sync", "redo_sync_writes_per_s", "redo_syncs", "redo_writes_per_s"];
/// Of a run that loadline measured: calls that read and wrote data files. A law takes it for the I/O of the data that a test processed.
const OTHER_IN_RUNS: &str = "io_per_s";
const TEST_NUMBER: &str = "test";

/// The table of a run with what laws ask for, which is more than the tables of its report show.
pub(crate) fn table_of(tests: &[TestRecord]) -> String {
    let is_imported = tests.iter().any(|t| t.imported().is_some());
    // Other tries of a test have numbers too, and no rows: none of them is missing.
    let has_tries = tests.iter().any(|t| t.tries > 1);
    let is_asked = |column: &&Column| match column.id {
        OTHER_IN_RUNS => is_imported,
        TEST_NUMBER => !has_tries,
        _ => true,
    };
    let columns: Vec<&Column> = columns_of_laws().filter(is_asked).collect();
    let does_not_wait = |c: &Check| c.id == CheckId::CommitsPerSync && c.outcome == Outcome::NotMade;
    let row = |test: &TestRecord| {
        let left_out = if test.checks.iter().any(does_not_wait) { &OF_WAITING_COMMITS[..] } else { &[] };
        let cell = |c: &&Column| if left_out.contains(&c.id) { String::new() } else { c.plain(test) };
        csv_line(columns.iter().map(cell))
    };
    csv_line(columns.iter().map(|c| c.id)) + &tests.iter().map(row).collect::<String>()
}

/// The text of a file, or the table of a run, with its name.
fn read(file: &Path, results: &Path) -> Result<(String, String), Failure> {
    let path = run_folder(file, results);
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    if path.is_dir() {
        let (_, data) = source::load(&path)?;
        data.warnings.iter().for_each(|w| output::say(&format!("warning: {w}")));
        return Ok((table_of(&data.records), name));
    }
    Ok((source::text_of_file(&path)?, name))
}

/// Which test it is, and what was found.
fn message(f: &Finding) -> String {
    if f.test.is_empty() { f.reason.to_string() } else { format!("{}: {}", f.test, f.reason) }
}

fn row(f: &Finding) -> Vec<String> {
    vec![
        f.severity.name().to_owned(),
        f.table.clone(),
        f.row.map_or_else(String::new, |r| r.to_string()),
        f.columns.join(" "),
        f.law.to_owned(),
        f.printed.clone(),
        f.recomputed.clone(),
        f.deviation_pct.map_or_else(String::new, |d| format!("{d:.2}")),
        message(f),
    ]
}

/// Rows of one law and severity that are shown one by one.
const SHOWN: usize = 5;
const HEADINGS: [(Severity, &str); 3] = [
    (Severity::Error, "Errors: the printed figures cannot all be right"),
    (Severity::Warning, "Warnings: right only under an assumption"),
    (Severity::Info, "Infos: what was inferred"),
];

/// Findings for people: by severity, those of one law together.
fn text_of(audit: &Audit) -> String {
    let mut out = String::new();
    for (severity, heading) in HEADINGS.into_iter().filter(|(severity, _)| audit.count(*severity) > 0) {
        let all: Vec<&Finding> = audit.findings.iter().filter(|f| f.severity == severity).collect();
        out += &format!("{heading} ({})\n", all.len());
        for group in all.chunk_by(|a, b| a.law == b.law && a.table == b.table) {
            let table = if audit.tables > 1 { format!("{}: ", group[0].table) } else { String::new() };
            // What is said of a table as a whole comes first, and in full.
            let shown = SHOWN + group.iter().take_while(|f| f.row.is_none()).count();
            out.extend(group.iter().take(shown).map(|f| format!("  {}\n", clean(&format!("{table}{}", line(f))))));
            if let Some(more @ 1..) = group.len().checked_sub(shown) {
                out += &format!("  {table}… {more} more of {} (all with --format csv)\n", group[0].law);
            }
        }
        out.push('\n');
    }
    let counts = HEADINGS.map(|(severity, _)| counted(audit.count(severity), severity.name())).join(", ");
    let (rows, tables, checked) = (audit.rows, counted(audit.tables, "table"), audit.checked.len());
    out + &format!("{counts} in {rows} rows of {tables}; {checked} of {} laws could be checked\n", LAWS.len())
}

fn line(f: &Finding) -> String {
    let row = match (f.row, f.test.as_str()) {
        (Some(row), "") => format!("row {row}: "),
        (Some(row), test) => format!("row {row} ({test}): "),
        (None, "") => String::new(),
        (None, series) => format!("{series}: "),
    };
    let cells = [(&f.printed, "printed"), (&f.recomputed, "recomputed")];
    let cells = cells.into_iter().filter(|(cell, _)| !cell.is_empty()).map(|(cell, what)| format!("{cell} {what}"));
    let figures = cells.chain(f.deviation_pct.map(|d| format!("{d:+.1} %"))).collect::<Vec<_>>().join(", ");
    let figures = if figures.is_empty() { figures } else { format!(" [{figures}]") };
    format!("{}: {row}{}{figures}", f.law, f.reason)
}

fn laws(list: &ListArgs) -> Result<u8, Failure> {
    let row = |law: &Law| {
        let columns = |(least, of): (usize, Vec<&str>)| match of.len() {
            0 => "any column".to_owned(),
            all if least == all => of.join(", "),
            _ => format!("{least} of {}", of.join(", ")),
        };
        let columns = law.needed().map(columns).collect::<Vec<_>>().join("; or ");
        let formulas = law.formulas.join("; ").replace(['?', '!', '~'], "");
        [law.id.as_str(), &law.name, &formulas, &columns, law.severity.name(), &law.meaning].map(str::to_owned).to_vec()
    };
    listing::write(list, &["law", "name", "formula", "columns", "at worst", "meaning"], LAWS.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tries_of_a_test_are_not_missing() {
        let missing = |tries: u32| {
            let test = |(number, jobs): (u32, u32)| {
                let figures = [("commit_throughput_tps".to_owned(), f64::from(jobs) * 100.0)].into();
                TestRecord { test: number, jobs, tries, figures, ..TestRecord::blank("LGWR-LAT1") }
            };
            let tests = [(1, 1), (2, 2), (3, 4), (5, 8), (6, 16), (7, 32)].map(test);
            let tables = table::read(&table_of(&tests), "run").unwrap();
            audit(&tables, &Mapping::default(), &[]).findings.iter().filter(|f| f.law == "test-numbers").count()
        };
        assert_eq!([missing(1), missing(2)], [1, 0]);
    }

    #[test]
    fn laws_of_commits_that_wait_are_not_asked_of_others() {
        let test = |outcome| {
            let mut test = TestRecord::blank("LGWR-THR");
            test.checks = vec![Check::new(CheckId::CommitsPerSync, outcome, "")];
            test.figures
                .extend([("commits_per_redo_sync".to_owned(), 9.5), ("commit_throughput_tps".to_owned(), 100.0)]);
            test
        };
        let tests = [test(Outcome::NotMade), test(Outcome::Passed)];
        let tables = table::read(&table_of(&tests), "run").unwrap();
        let found = audit(&tables, &Mapping::default(), &[]).findings;
        let rows = found.iter().filter(|f| f.law == "group-commit").map(|f| f.row.map(|row| row.to_string()));
        assert_eq!(rows.collect::<Vec<_>>(), [Some("2".to_owned())]);
    }
}
