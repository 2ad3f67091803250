//! `loadline report`, and the report that a run writes at its end.

use std::path::{Path, PathBuf};

use loadline_report::{Format, Options, RunData, render};
use loadline_store::{StoredRun, write_report};

use crate::args::{ReportArgs, ReportFormat};
use crate::exit::Failure;
use crate::output;
use crate::target::run_folder;

impl From<ReportFormat> for Format {
    fn from(f: ReportFormat) -> Format {
        match f {
            ReportFormat::Html => Format::Html,
            ReportFormat::Md => Format::Markdown,
            ReportFormat::Csv => Format::Csv,
            ReportFormat::Json => Format::Json,
            ReportFormat::Text => Format::Text,
        }
    }
}

/// Everything about a stored run.
pub(crate) fn load(path: &Path) -> Result<(PathBuf, RunData), Failure> {
    let mut stored = StoredRun::open(path)?;
    let warnings = std::mem::take(&mut stored.warnings);
    let mut data = RunData::new(stored.manifest.clone(), stored.records.clone(), warnings);
    for test in stored.records.iter().map(|r| r.test) {
        data.add(test, &stored.series(test)?, &stored.histograms(test)?);
    }
    Ok((stored.path().to_owned(), data))
}

pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let mut runs = Vec::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    for run in &args.runs {
        let (folder, data) = load(&run_folder(run, &args.results))?;
        if folders.contains(&folder) {
            return Err(Failure::usage(format!("{} is named twice", folder.display())));
        }
        folders.push(folder);
        runs.push(data);
    }
    for warning in runs.iter().flat_map(|r| &r.warnings) {
        output::say(&format!("warning: {warning}"));
    }
    let options = Options { columns: args.columns.clone(), across_drivers: args.across_drivers };
    let bytes = render(&runs, args.format.into(), &options).map_err(|e| Failure::usage(e.to_string()))?;
    match (&args.output, args.format, folders.as_slice()) {
        (Some(path), _, _) => {
            output::write(path, &bytes)?;
            if path != Path::new("-") {
                output::say(&format!("report: {}", path.display()));
            }
        }
        (None, ReportFormat::Html, [folder]) => {
            let path = write_report(folder, "report/index.html", &bytes)?;
            output::stdout(format!("{}\n", path.display()).as_bytes())?;
        }
        (None, ReportFormat::Html, _) => {
            let path = Path::new("loadline-report.html");
            output::write(path, &bytes)?;
            output::stdout(format!("{}\n", path.display()).as_bytes())?;
        }
        (None, _, _) => output::stdout(&bytes)?,
    }
    Ok(0)
}

/// Writes the report of the run in `folder` and returns its path.
pub(crate) fn write_index(folder: &Path, run: RunData) -> Result<PathBuf, Failure> {
    let html = render(&[run], Format::Html, &Options::default()).map_err(|e| Failure::failed(e.to_string()))?;
    Ok(write_report(folder, "report/index.html", &html)?)
}
