//! `loadline export`: a run for other programs.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_exchange::table::{Exported, TABLES, TestData};
use loadline_model::column::ELAPSED_S;
use loadline_store::{Interval, StoredRun, histogram_log, parse_rfc3339};

use crate::args::{ExportArgs, ExportAs};
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
    let default = |end: &str| PathBuf::from(format!("{}.{end}", stored.id()));
    match (args.format, &args.table) {
        (ExportAs::Hlog, Some(_)) => {
            Err(Failure::usage("--table is for --format csv and parquet: a log holds latencies only"))
        }
        (ExportAs::Hlog, None) => {
            let path = args.output.clone().unwrap_or_else(|| default("hlog"));
            written(&path, &hlog(&stored, &tests)?)
        }
        (format, Some(table)) => {
            let path = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
            if format == ExportAs::Parquet && path == Path::new("-") && std::io::stdout().is_terminal() {
                return Err(Failure::usage("Parquet is not for a terminal: name a file with --output"));
            }
            written(&path, &table_as(format, table, &tests)?)
        }
        (format, None) => {
            let end = if format == ExportAs::Csv { "csv" } else { "parquet" };
            let folder = args.output.clone().unwrap_or_else(|| default(end));
            if folder == Path::new("-") {
                return Err(Failure::usage(format!(
                    "--output - is for one table: name it with --table ({})",
                    TABLES.join(", ")
                )));
            }
            // All of it is made before any of it is written.
            let files = TABLES.iter().map(|table| Ok((format!("{table}.{end}"), table_as(format, table, &tests)?)));
            let files = files.collect::<Result<Vec<_>, Failure>>()?;
            let cannot = |e: std::io::Error| match e.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    Failure::usage(format!("{} exists already: name another folder with --output", folder.display()))
                }
                _ => Failure::failed(format!("{} cannot be made: {e}", folder.display())),
            };
            std::fs::create_dir(&folder).map_err(cannot)?;
            for (name, bytes) in files {
                output::write(&folder.join(name), &bytes)?;
            }
            output::stdout(format!("{}\n", folder.display()).as_bytes())?;
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

fn table_as(format: ExportAs, table: &str, tests: &[TestData]) -> Result<Vec<u8>, Failure> {
    let table = Exported::of(table, tests).ok_or_else(|| Failure::usage(format!("there is no table '{table}'")))?;
    match format {
        ExportAs::Parquet => parquet(&table),
        _ => Ok(table.csv().into_bytes()),
    }
}

#[cfg(feature = "parquet")]
fn parquet(table: &Exported) -> Result<Vec<u8>, Failure> {
    loadline_exchange::parquet(table).map_err(|e| Failure::failed(e.to_string()))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Exported) -> Result<Vec<u8>, Failure> {
    Err(Failure::usage(
        "this loadline was built without Parquet: build it with --features parquet, or export --format csv",
    ))
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
