//! `loadline probe`: measures directories one after the other and sets them side by side.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use loadline_collect::inventory::machine;
use loadline_model::LogWriterPoint;
use loadline_model::format::{bytes, counted, duration_s};
use loadline_model::probe::{ProbeReport, ProbedDir, VERSION};
use loadline_report::render_probe;
use loadline_run::study::KnownLimits;
use loadline_storage::probe::{Event, ProbeError, ProbeOptions, ProbeSession};
use loadline_store::rfc3339;

use crate::args::ProbeArgs;
use crate::exit::Failure;
use crate::progress::Changing;
use crate::target::named_twice;
use crate::{output, signals};

/// Share of a directory's time for the device; the rest is for the reference log writer.
const FOR_DEVICE: f64 = 0.65;

/// Measures the reference log writer in `dir`, unless --no-log-writer.
fn log_writer(
    dir: &Path,
    args: &ProbeArgs,
    stop: &Arc<AtomicBool>,
    progress: &Progress,
) -> Result<Vec<LogWriterPoint>, String> {
    if args.no_log_writer {
        return Ok(Vec::new());
    }
    let seconds = args.seconds * (1.0 - FOR_DEVICE);
    loadline_run::reference::grid(dir, seconds, ProbeOptions::default().seed, stop, |workload, jobs| {
        progress.changing.set(format!(
            "{}  reference log writer, {workload} with {}",
            progress.dir,
            counted(jobs as usize, "job")
        ));
    })
}

/// The log-writer figures of a file that `loadline probe --format json` wrote.
pub(crate) fn limits(path: &Path) -> Result<KnownLimits, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| Failure::usage(format!("cannot read {shown}: {e}")))?;
    let report: ProbeReport = serde_json::from_str(&text).map_err(|e| {
        Failure::usage(format!(
            "{shown} is not the output of a probe: {e}; make it with  loadline probe DIR --format json --output {shown}"
        ))
    })?;
    let points: Vec<LogWriterPoint> = report.dirs.iter().flat_map(|d| d.log_writer.clone()).collect();
    match (report.version, report.dirs.len()) {
        (VERSION, 1) if !points.is_empty() => Ok(KnownLimits { host: report.machine.host, points }),
        (VERSION, 1) => Err(Failure::usage(format!(
            "{shown} has no figures of the reference log writer: probe again without --no-log-writer"
        ))),
        (VERSION, n) => Err(Failure::usage(format!("{shown} holds {n} directories: probe the log's directory alone"))),
        (version, _) => Err(Failure::usage(format!(
            "{shown} has probe format {version}; this loadline reads {VERSION}: probe again"
        ))),
    }
}

pub(crate) fn probe(args: &ProbeArgs) -> Result<u8, Failure> {
    let options = ProbeOptions {
        size: args.size,
        seconds: args.seconds,
        compressibility: args.compressibility,
        dedup: args.dedup,
        engine: args.engine,
        ..ProbeOptions::default()
    };
    options.check()?;
    let for_device = if args.no_log_writer { 1.0 } else { FOR_DEVICE };
    let options = ProbeOptions { seconds: (args.seconds * for_device).max(1.0), ..options };
    let stop = Arc::new(AtomicBool::new(false));
    let dirs: Vec<_> = args.dirs.iter().map(|dir| dir.display().to_string()).collect();
    let left = format!("files of the probe may be left in {}: the next probe there removes them", dirs.join(", "));
    signals::interruptible(&stop, left)?;
    if let Some(dir) = named_twice(&args.dirs) {
        return Err(Failure::usage(format!("{} is named twice: name each directory once", dir.display())));
    }
    // Find unusable directories before measuring the first one.
    for dir in &args.dirs {
        ProbeSession::open(dir, &options, &*stop)?;
    }
    let at = rfc3339(SystemTime::now());
    let mut dirs: Vec<ProbedDir> = Vec::new();
    for dir in &args.dirs {
        let mut progress = Progress { changing: Changing::new(), dir: dir.display().to_string() };
        let mut probed = loadline_storage::probe::probe(dir, &options, &stop, &mut |e| progress.on(e))?;
        match log_writer(dir, args, &stop, &progress) {
            Ok(points) => probed.log_writer = points,
            Err(_) if stop.load(Ordering::Relaxed) => return Err(ProbeError::Interrupted.into()),
            Err(reason) => {
                let note = format!("the reference log writer was not measured: {reason}");
                progress.line(&note);
                probed.notes.push(note);
            }
        }
        if let Some(same) = dirs.iter().find(|d| d.st_dev == probed.st_dev) {
            let note = format!("on the same filesystem as {}: differences between the two are noise", same.dir);
            progress.line(&note);
            probed.notes.push(note);
        }
        progress.changing.clear();
        dirs.push(probed);
    }
    let report =
        ProbeReport { version: VERSION, loadline: env!("CARGO_PKG_VERSION").to_owned(), at, machine: machine(), dirs };
    let text = render_probe(&report, args.list.format).map_err(|e| Failure::failed(e.to_string()))?;
    output::write(&args.list.output, text.as_bytes())?;
    Ok(0)
}

/// On a terminal, one line that changes; otherwise a line for each message.
struct Progress {
    changing: Changing,
    dir: String,
}

impl Progress {
    fn line(&self, text: &str) {
        self.changing.line(&format!("{}: {text}", self.dir));
    }

    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Needs { needed, free } => {
                let free = free.map_or(String::new(), |f| format!(" of {} free", bytes(f as f64)));
                self.line(&format!("uses up to {}{free} while measuring", bytes(needed as f64)));
            }
            Event::Note(text) => self.line(text),
            Event::Filling { done, total } => {
                let (done, total) = (bytes(done as f64), bytes(total as f64));
                self.changing.set(format!("{}  writing the test file, {done} of {total}", self.dir));
            }
            Event::Measuring { point, left_s, .. } => self.changing.set(format!(
                "{}  {} of {}, {} in flight  about {} left",
                self.dir,
                point.operation,
                bytes(point.size as f64),
                point.depth,
                duration_s(left_s)
            )),
        }
    }
}
