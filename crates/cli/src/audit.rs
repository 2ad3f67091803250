//! `loadline audit`: checks a table of results by operational laws.

use std::path::Path;

use loadline_analyze::audit::{
    Audit, Claim, Expected, Finding, LAWS, Mapping, Options, Severity, audit, columns_of_laws, table,
};
use loadline_model::column::{REDO_BYTES_PER_TX, REDO_KIB_PER_TX};
use loadline_model::format::counted;
use loadline_report::{Format, RunData, clean, render};
use loadline_workload::CATALOGUE;

use crate::args::{AuditArgs, ListArgs, ListFormat};
use crate::exit::{self, Failure};
use crate::listing::Listing;
use crate::target::run_folder;
use crate::{output, source, stored};

pub(crate) fn check(args: &AuditArgs) -> Result<u8, Failure> {
    if args.laws {
        laws(&args.list)?;
        return Ok(0);
    }
    let Some(file) = &args.file else {
        return Err(Failure::usage("name a file or a run to audit, or list the laws with --laws"));
    };
    let (text, name) = match source::text(file)? {
        Some(found) => found,
        None => read(file, &args.results)?,
    };
    let shown = file.display();
    let tables = table::read(&text, &name).map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
    drop(text);
    let usage = |e: &dyn std::fmt::Display| Failure::usage(e.to_string());
    let mapping = args.columns.as_deref().map_or(Ok(Mapping::default()), Mapping::parse).map_err(|e| usage(&e))?;
    mapping.check(&tables).map_err(|e| Failure::usage(format!("--columns: {e}")))?;
    let claims = args.claim.iter().map(|c| Claim::parse(c)).collect::<Result<Vec<_>, _>>();
    let claims = claims.map_err(|e| Failure::usage(format!("--claim {e}")))?;
    let found = audit(&tables, &Options { mapping, claims, expected: expected() });
    match args.list.format {
        ListFormat::Text => output::write(&args.list.output, text_of(&found).as_bytes()),
        _ => listing(&found.findings).write_with(&args.list, &["row", "recomputed", "deviation_pct"]),
    }
    // Exit code 1 says that errors were found.
    .map_err(|e| Failure { code: exit::USAGE, ..e })?;
    if found.checked.is_empty() {
        return Err(Failure::usage(format!("{shown}: nothing was checked: no law covers its columns")));
    }
    if !found.unchecked.is_empty() {
        return Err(Failure::usage(format!("--claim {}", found.unchecked.join("; "))));
    }
    Ok(if found.count(Severity::Error) > 0 { exit::FAILED } else { 0 })
}

/// What an audit of the table `text` finds, a sentence each; those of one law are counted after the first.
pub(crate) fn findings(text: &str, name: &str) -> Result<Vec<String>, Failure> {
    let tables = table::read(text, name).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let found = audit(&tables, &Options { expected: expected(), ..Options::default() }).findings;
    let mut laws: Vec<(&Finding, usize)> = Vec::new();
    for finding in &found {
        match laws.iter_mut().find(|(first, _)| (first.law, first.severity) == (finding.law, finding.severity)) {
            Some((_, count)) => *count += 1,
            None => laws.push((finding, 1)),
        }
    }
    let sentence = |(f, count): (&Finding, usize)| {
        let test = if f.test.is_empty() { String::new() } else { format!("{}: ", f.test) };
        let more = if count > 1 { format!(" ({count} such findings; this is the first)") } else { String::new() };
        format!("{} ({}): {test}{}{more}", f.severity.name(), f.law, f.message)
    };
    Ok(laws.into_iter().map(sentence).collect())
}

/// The table of a run with what laws ask for, which is more than its own tables show.
pub(crate) fn table_of(data: &RunData) -> Result<String, Failure> {
    let columns = Some(columns_of_laws().into_iter().map(str::to_owned).collect());
    let options = loadline_report::Options { columns, ..Default::default() };
    let csv = render(std::slice::from_ref(data), Format::Csv, &options).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(String::from_utf8_lossy(&csv).into_owned())
}

/// The text of a file, or the table of a run, with its name.
fn read(file: &Path, results: &Path) -> Result<(String, String), Failure> {
    let path = run_folder(file, results);
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    if path.is_dir() {
        let (_, data) = stored::load(&path)?;
        data.warnings.iter().for_each(|w| output::say(&format!("warning: {w}")));
        return Ok((table_of(&data)?, name));
    }
    Ok((source::text_of_file(&path)?, name))
}

/// What the workloads of the catalogue are defined by.
fn expected() -> Vec<Expected> {
    let sizes = CATALOGUE.iter().filter_map(|w| Some((w.code, w.redo?)));
    let of = |(code, redo): (&str, loadline_workload::RedoSize)| {
        let range = |column: &'static str, size: f64| Expected {
            workload: code.to_owned(),
            column,
            low: redo.min / size,
            high: redo.max / size,
        };
        [range(REDO_KIB_PER_TX.id, 1024.0), range(REDO_BYTES_PER_TX.id, 1.0)]
    };
    sizes.flat_map(of).collect()
}

/// The contract's table.
fn listing(findings: &[Finding]) -> Listing {
    let row = |f: &Finding| {
        let test = if f.test.is_empty() { String::new() } else { format!("{}: ", f.test) };
        vec![
            f.severity.name().to_owned(),
            f.table.clone(),
            f.row.map_or_else(String::new, |r| r.to_string()),
            f.columns.join(" "),
            f.law.to_owned(),
            f.printed.clone(),
            f.recomputed.clone(),
            f.deviation_pct.map_or_else(String::new, |d| format!("{d:.2}")),
            format!("{test}{}", f.message),
        ]
    };
    Listing {
        columns: "severity table row columns law printed recomputed deviation_pct message".split(' ').collect(),
        rows: findings.iter().map(row).collect(),
    }
}

/// Rows of one law and severity that are shown one by one.
const SHOWN: usize = 5;

/// Findings for people: by severity, those of one law together.
fn text_of(audit: &Audit) -> String {
    let mut out = String::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let all: Vec<&Finding> = audit.findings.iter().filter(|f| f.severity == severity).collect();
        if all.is_empty() {
            continue;
        }
        out.push_str(&format!("{}\n", heading(severity, all.len())));
        let mut rest = all.as_slice();
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|f| f.law == first.law && f.table == first.table).count();
            let (group, after) = rest.split_at(same);
            rest = after;
            let table = if audit.tables > 1 { format!("{}: ", first.table) } else { String::new() };
            let shown = if group.len() > SHOWN && are_small(group) { 1 } else { SHOWN };
            let text = |f: &&Finding| format!("  {}\n", clean(&format!("{table}{}", line(f))));
            out.extend(group.iter().take(shown).map(text));
            if let Some(more) = group.len().checked_sub(shown).filter(|n| *n > 0) {
                let (low, high) = range(group);
                out.push_str(&format!("  {table}… {more} more of {}{low}{high} (all with --format csv)\n", first.law));
            }
        }
        out.push('\n');
    }
    let count = |severity, name: &str| counted(audit.count(severity), name);
    out.push_str(&format!(
        "{}, {}, {} in {} rows of {}; {} of {} laws could be checked\n",
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
        count(Severity::Info, "info"),
        audit.rows,
        counted(audit.tables, "table"),
        audit.checked.len(),
        LAWS.len()
    ));
    out
}

fn heading(severity: Severity, count: usize) -> String {
    let what = match severity {
        Severity::Error => "Errors: the printed figures cannot all be right",
        Severity::Warning => "Warnings: right only under an assumption",
        Severity::Info => "Infos: what was inferred",
    };
    format!("{what} ({count})")
}

fn line(f: &Finding) -> String {
    let row = f.row.map_or_else(String::new, |r| {
        let test = if f.test.is_empty() { String::new() } else { format!(" ({})", f.test) };
        format!("row {r}{test}: ")
    });
    let figures = match (f.printed.is_empty(), f.recomputed.is_empty()) {
        (false, false) => format!(" [{} printed, {} recomputed{}]", f.printed, f.recomputed, deviation(f)),
        (false, true) => format!(" [{} printed]", f.printed),
        _ => String::new(),
    };
    format!("{}: {row}{}{figures}", f.law, f.message)
}

fn deviation(f: &Finding) -> String {
    f.deviation_pct.map_or_else(String::new, |d| format!(", {d:+.1} %"))
}

/// Whether all deviations of a group are so small that they are likely to have one cause.
fn are_small(group: &[&Finding]) -> bool {
    group.iter().all(|f| f.deviation_pct.is_some_and(|d| d.abs() <= 1.0))
}

/// The deviations of a group.
fn range(group: &[&Finding]) -> (String, String) {
    let all = || group.iter().filter_map(|f| f.deviation_pct);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return (String::new(), String::new());
    }
    (format!(", {low:+.1}"), format!(" to {high:+.1} %"))
}

/// `--laws`.
fn laws(list: &ListArgs) -> Result<(), Failure> {
    let needs = |law: &loadline_analyze::audit::Law| {
        let sets: Vec<String> = law.sets().map(|set| set.join(", ")).collect();
        if sets.is_empty() { "any column".to_owned() } else { sets.join("; or ") }
    };
    let row = |law: &&loadline_analyze::audit::Law| {
        [law.id, law.name, law.formula]
            .map(str::to_owned)
            .into_iter()
            .chain([needs(law)])
            .chain([law.tolerance, law.meaning].map(str::to_owned))
            .collect()
    };
    Listing {
        columns: vec!["law", "name", "formula", "columns", "tolerance", "meaning"],
        rows: LAWS.iter().map(row).collect(),
    }
    .write(list)
}
