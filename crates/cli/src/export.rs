//! `loadline export`: a run for other programs.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_exchange::Form;
use loadline_exchange::table::{TABLES, Table, TestData};
use loadline_model::column::ELAPSED_S;
use loadline_store::{Interval, StoredRun, histogram_log, parse_rfc3339};

use crate::args::ExportArgs;
use crate::exit::Failure;
use crate::output;
use crate::target::run_folder;

pub(crate) fn export(args: &ExportArgs) -> Result<u8, Failure> {
    let stored = StoredRun::open(&run_folder(&args.run, &args.results))?;
    stored.warnings.iter().for_each(|w| output::say(&format!("warning: {w}")));
    let data = |record: &loadline_model::TestRecord| {
        let (series, histograms) = (stored.series(record.test)?, stored.histograms(record.test)?);
        Ok(TestData { record: record.clone(), series, histograms })
    };
    let tests = stored.records.iter().map(data).collect::<Result<Vec<_>, Failure>>()?;
    let (form, end) = args.format;
    let stdout = Path::new("-");
    let default = || PathBuf::from(format!("{}.{end}", stored.id()));
    match (form, &args.table) {
        (None, Some(_)) => {
            Err(Failure::usage("--table is for tables (--format csv, json, parquet), a log has latencies"))
        }
        (None, None) => written(&args.output.clone().unwrap_or_else(default), &hlog(&stored, &tests)?),
        (Some(form), Some(table)) => {
            let path = args.output.as_deref().unwrap_or(stdout);
            if form == Form::Parquet && path == stdout && std::io::stdout().is_terminal() {
                return Err(Failure::usage("Parquet is not for a terminal: name a file with --output"));
            }
            written(path, &table_as(form, table, &tests)?)
        }
        (Some(_), None) if args.output.as_deref() == Some(stdout) => {
            let tables = TABLES.join(", ");
            Err(Failure::usage(format!("--output - is for one table: name it with --table ({tables})")))
        }
        (Some(form), None) => {
            // All of it is made before any of it is written.
            let files = TABLES.map(|table| Ok((format!("{table}.{end}"), table_as(form, table, &tests)?)));
            let files = files.into_iter().collect::<Result<Vec<_>, Failure>>()?;
            let folder = args.output.clone().unwrap_or_else(default);
            let shown = folder.display();
            std::fs::create_dir(&folder).map_err(|e| match e.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    Failure::usage(format!("{shown} exists already: name another folder with --output"))
                }
                _ => Failure::failed(format!("{shown} cannot be made: {e}")),
            })?;
            files.iter().try_for_each(|(name, bytes)| output::write(&folder.join(name), bytes))?;
            output::stdout(format!("{shown}\n").as_bytes())?;
            Ok(0)
        }
    }
}

/// Writes a file, and its name to standard output.
fn written(path: &Path, bytes: &[u8]) -> Result<u8, Failure> {
    output::write(path, bytes)?;
    if path != Path::new("-") {
        output::stdout(format!("{}\n", path.display()).as_bytes())?;
    }
    Ok(0)
}

fn table_as(form: Form, name: &str, tests: &[TestData]) -> Result<Vec<u8>, Failure> {
    let table = Table::new(name, tests).ok_or_else(|| Failure::usage(format!("there is no table '{name}'")))?;
    table.write(form).map_err(|e| Failure::usage(e.to_string()))
}

/// The latencies of all tests as one log. Tags are `3-transaction`: number of the test and kind.
fn hlog(stored: &StoredRun, tests: &[TestData]) -> Result<Vec<u8>, Failure> {
    let started = |test: &TestData| parse_rfc3339(&test.record.started_at);
    let base = tests.iter().filter_map(started).min();
    let mut from = Duration::ZERO;
    let mut intervals: Vec<Interval<'_>> = Vec::new();
    for test in tests {
        let since = started(test).zip(base).and_then(|(at, base)| at.duration_since(base).ok());
        let length =
            test.record.figure(ELAPSED_S).and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or_default();
        // When a test began may be unknown: then it follows the one before.
        from = since.unwrap_or(from);
        for (kind, latencies) in &test.histograms {
            intervals.push(Interval { tag: format!("{}-{kind}", test.record.test), from, length, latencies });
        }
        from += length;
    }
    if intervals.is_empty() {
        return Err(Failure::usage(format!("run {} has no latencies", stored.id())));
    }
    let title = format!("loadline: run {}, tags are TEST-KIND, values in ns", stored.id()).replace(['\n', '\r'], " ");
    histogram_log(&title, base, &intervals).map_err(Failure::failed)
}
