//! `loadline report`, and the report that a run writes at its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loadline_report::{Format, Options, Period, Prices, ReportError, RunData, render, render_page};
use loadline_store::{StoredRun, write_report};
use loadline_workload::script::BUILTINS;
use loadline_workload::{CATALOGUE, Workload};

use crate::args::ReportArgs;
use crate::audit;
use crate::exit::Failure;
use crate::output;
use crate::pdf;
use crate::references;
use crate::source::{load, load_all};
use crate::target::run_folder;

/// The page of test number `test` of a stored run, without what other tests share.
fn period(stored: &StoredRun, data: &RunData, test: u32) -> Result<Period, Failure> {
    let missing = || Failure::usage(format!("run {} has no test {test}", stored.id()));
    loadline_live::period(stored, data, test)?.ok_or_else(missing)
}

/// `--test`: the page of tests of one run.
fn pages(args: &ReportArgs) -> Result<u8, Failure> {
    let [run] = args.runs.as_slice() else {
        return Err(Failure::usage("--test is for tests of one run: name one"));
    };
    let (stored, data) = load(&run_folder(run, &args.results))?;
    let periods = args.test.iter().map(|test| period(&stored, &data, *test)).collect::<Result<Vec<_>, _>>()?;
    let Some(format) = args.format else {
        return Err(Failure::usage("--test has no --format pdf: give --format html, md or text"));
    };
    let bytes = render_page(&periods, format).map_err(|e| Failure::usage(e.to_string()))?;
    let numbers = args.test.iter().map(u32::to_string).collect::<Vec<_>>().join("-");
    write_out(args, &bytes, Some((&stored, &format!("report/test-{numbers}.html"))))?;
    Ok(0)
}

/// Writes the page of every test of a run, to which its report links. They hold what is only of interest for one test, so a
/// failure to make them is a warning.
fn write_pages(stored: &StoredRun, data: &mut RunData) {
    let tests = data.tests_with_pages();
    let write = |data: &RunData| -> Result<(), Failure> {
        for test in tests.iter().copied() {
            let page = render_page(&[period(stored, data, test)?], Format::Html);
            let page = page.map_err(|e| Failure::failed(e.to_string()))?;
            write_report(stored.path(), &format!("report/test-{test}.html"), &page)?;
        }
        Ok(())
    };
    match write(data) {
        Ok(()) => data.pages = tests,
        Err(e) => output::say(&format!("warning: the pages of the tests could not be made: {}", e.message)),
    }
}

pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    if !args.test.is_empty() {
        return pages(args);
    }
    if args.table.is_some() && !matches!(args.format, Some(Format::Csv | Format::Json)) {
        return Err(Failure::usage("--table is raw values: give --format csv or json"));
    }
    let has_prices = args.table.as_deref().map_or(!matches!(args.format, Some(Format::Csv)), |table| table == "prices");
    if args.price.is_some() && !has_prices {
        return Err(Failure::usage("--price has no effect on the table of all tests or of facts: give --table prices"));
    }
    let prices = args.price.as_deref().map(prices).transpose()?;
    let internal = |e: ReportError| Failure::failed(e.to_string());
    let (all_stored, data) = load_all(&args.runs, &args.results)?;
    let mut runs: Vec<RunData> = data.into_iter().map(audited).collect();
    if args.example {
        runs = loadline_report::example().map_err(internal)?;
    }
    add_references(args, &mut runs)?;
    if args.summary && matches!(args.format, Some(Format::Csv | Format::Json)) {
        return Err(Failure::usage("--summary is for reports to read: give --format pdf, html, md or text"));
    }
    if args.redact || args.anonymous {
        hide(args, &mut runs)?;
    }
    // In the run's folder are the pages of its tests, in which nothing is hidden and which are of the whole run.
    let in_folder = !args.redact && !args.anonymous && !args.summary;
    if let (None, Some(Format::Html), true, [stored], [run]) =
        (&args.output, args.format, in_folder, all_stored.as_slice(), runs.as_mut_slice())
    {
        write_pages(stored, run);
    }
    let options = Options {
        columns: args.columns.clone(),
        // Its platforms were measured with different drivers.
        across_drivers: args.across_drivers || args.example,
        summary: args.summary,
        title: args.title.clone(),
        customer: args.customer.clone(),
        paper: args.format.is_none(),
        table: args.table.clone(),
        prices,
    };
    let made =
        render(&runs, args.format.unwrap_or(Format::Html), &options).map_err(|e| Failure::usage(e.to_string()))?;
    let bytes = if args.format.is_none() { pdf::print(&made)? } else { made };
    let folder = if let [stored] = all_stored.as_slice() { Some((stored, "report/index.html")) } else { None };
    write_out(args, &bytes, if in_folder { folder } else { None })?;
    Ok(0)
}

fn prices(path: &Path) -> Result<Prices, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|e| Failure::usage(format!("the price list {shown} cannot be read: {e}")))?;
    Prices::parse(&text).map_err(|e| Failure::usage(format!("{shown} is no price list: {e}")))
}

/// Adds the published runs of `--with`, and says what is not as it should be in any.
fn add_references(args: &ReportArgs, runs: &mut Vec<RunData>) -> Result<(), Failure> {
    for name in &args.with {
        let named = references::named(name)?;
        if runs
            .iter()
            .any(|run| run.published.as_ref().is_some_and(|p| !p.imported) && run.manifest.run == named.manifest.run)
        {
            return Err(Failure::usage(format!("{name} is named twice")));
        }
        runs.push(named);
    }
    for warning in runs.iter().flat_map(|r| &r.warnings) {
        output::say(&format!("warning: {warning}"));
    }
    Ok(())
}

/// Writes a page where the user wants it, or where it belongs: that of one stored run in its folder, under this name.
fn write_out(args: &ReportArgs, bytes: &[u8], folder: Option<(&StoredRun, &str)>) -> Result<(), Failure> {
    let path = match (&args.output, args.format, folder) {
        (Some(path), ..) => {
            output::write(path, bytes)?;
            if path != Path::new("-") {
                output::say(&format!("report: {}", path.display()));
            }
            return Ok(());
        }
        (None, Some(Format::Html), Some((stored, name))) => write_report(stored.path(), name, bytes)?,
        (None, Some(Format::Html), None) => PathBuf::from("loadline-report.html"),
        (None, None, _) => PathBuf::from("loadline-report.pdf"),
        (None, ..) => return output::stdout(bytes),
    };
    if folder.is_none() || args.format.is_none() {
        output::write(&path, bytes)?;
    }
    output::stdout(format!("{}\n", path.display()).as_bytes())
}

/// `data` with what an audit finds in it, if it is imported: nothing else was checked.
pub(crate) fn audited(mut data: RunData) -> RunData {
    if let Some(published) = &mut data.published {
        match audit::findings(&audit::table_of(&data.records), &data.manifest.run) {
            Ok(findings) => published.findings = findings,
            Err(e) => data.warnings.push(format!("its figures were not audited: {}", e.message)),
        }
    }
    data
}

/// Writes the report of a run and returns its path.
pub(crate) fn write_index(stored: &StoredRun, mut run: RunData) -> Result<PathBuf, Failure> {
    write_pages(stored, &mut run);
    let html = render(&[run], Format::Html, &Options::default()).map_err(|e| Failure::failed(e.to_string()))?;
    Ok(write_report(stored.path(), "report/index.html", &html)?)
}

fn hide(args: &ReportArgs, runs: &mut [RunData]) -> Result<(), Failure> {
    loadline_report::redact(runs, args.anonymous, &is_catalogued).map_err(|e| Failure::usage(e.to_string()))
}

/// Whether `word` is a code, parameter or table of the catalogue, or a workload of pgbench's own scripts.
fn is_catalogued(word: &str) -> bool {
    let in_workload = |w: &Arc<Workload>| {
        w.code == word || w.params.iter().any(|p| p.name == word) || w.tables.iter().any(|t| t.name == word)
    };
    let of_pgbench = |(name, _): &(&str, &str)| word.strip_prefix("PGBENCH-") == Some(&name.to_ascii_uppercase());
    CATALOGUE.iter().any(in_workload) || word == "PGBENCH" || BUILTINS.iter().any(of_pgbench)
}
