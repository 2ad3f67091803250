//! `loadline snapshot`: a page about a running database, without any load of loadline's own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use loadline_database::{kind_of, open};
use loadline_model::format::parse_duration_s;
use loadline_report::{Format, Period, render_page};
use loadline_run::watch::{check, watch};
use loadline_store::{WatchedFile, read_watched, run_name};

use crate::args::SnapshotArgs;
use crate::exit::{self, Failure};
use crate::target::run_folder;
use crate::{output, signals};

/// Shortest and longest time to watch, s.
const SECONDS: std::ops::RangeInclusive<f64> = 1.0..=86_400.0;

pub(crate) fn snapshot(args: &SnapshotArgs) -> Result<u8, Failure> {
    if args.files.is_empty() { take(args) } else { show(args) }
}

/// The page of stored snapshots, side by side.
fn show(args: &SnapshotArgs) -> Result<u8, Failure> {
    let read = |file: &std::path::PathBuf| -> Result<Period, Failure> {
        let path = run_folder(file, &args.results);
        if !path.exists() {
            let shown = file.display();
            return Err(Failure::usage(format!("{shown} does not exist: name the .json file of a snapshot")));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Period::of_watched(read_watched(&path)?, &name))
    };
    let periods = args.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    write(args, &periods, Path::new("loadline-snapshot.html"))?;
    Ok(0)
}

fn take(args: &SnapshotArgs) -> Result<u8, Failure> {
    let seconds = parse_duration_s(&args.time).map_err(|e| Failure::usage(format!("--for: {e}")))?;
    if !SECONDS.contains(&seconds) {
        return Err(Failure::usage(format!("--for {}: it must be 1s to 24h", args.time)));
    }
    let Some(url) = &args.target.options.target else {
        return Err(Failure::usage(
            "--target is missing: give the URL of a running database, or the files of snapshots",
        ));
    };
    check(url)?;
    let stop = Arc::new(AtomicBool::new(false));
    signals::interruptible(&stop, "nothing was changed on the database".to_owned())?;
    let target = open(&args.target.request(&args.results))?;
    // Before watching: what cannot be stored is not watched for nothing.
    let kind = kind_of(url)?.scheme();
    let file = WatchedFile::create(&args.results, &run_name(SystemTime::now(), &format!("{kind}-snapshot")))?;
    let watched = watch(target.as_ref(), seconds, &stop, || {
        output::say(&format!("watching for {seconds:.0} s; Ctrl-C ends it, and keeps what was seen"));
    })?;
    watched.notes.iter().for_each(|note| output::say(&format!("note: {note}")));
    let (path, complete) = (file.path().to_owned(), watched.complete);
    let stored = file.write(&watched);
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // The page is of use even if the disk is full meanwhile.
    let written = write(args, &[Period::of_watched(watched, &name)], &path.with_extension("html"));
    output::say(&format!("snapshot: {}", stored?.display()));
    written?;
    Ok(match (complete, stop.load(Ordering::Relaxed)) {
        (false, _) => exit::FAILED,
        (true, true) => exit::INTERRUPTED,
        (true, false) => 0,
    })
}

/// Writes the page; HTML without --output to `default`.
fn write(args: &SnapshotArgs, periods: &[Period], default: &Path) -> Result<(), Failure> {
    let format = args.format;
    let bytes = render_page(periods, format).map_err(|e| Failure::usage(e.to_string()))?;
    match (&args.output, format) {
        (Some(path), _) => output::write(path, &bytes),
        (None, Format::Html) => {
            output::write(default, &bytes)?;
            output::stdout(format!("{}\n", default.display()).as_bytes())
        }
        (None, _) => output::stdout(&bytes),
    }
}
