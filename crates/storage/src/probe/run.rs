//! The probe of one directory: removes leftovers, fills the file, measures all slices, makes the rows.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use loadline_model::format::bytes;
use loadline_model::probe::{Absent, Engine, Operation, ProbeRow, ProbedDir};

use crate::clock::now_ns;
use crate::probe::ProbeError;
use crate::probe::options::ProbeOptions;
use crate::probe::plan::{Point, Tally, slices};
use crate::probe::session::ProbeSession;
use crate::probe::testfile::clean_leftovers;

/// Largest share of the time for filling the test file.
const FILL_SHARE: f64 = 1.0 / 3.0;

#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// Before anything is written: needed and free space, bytes.
    Needs {
        needed: u64,
        free: Option<u64>,
    },
    Note(&'a str),
    /// The test file is being filled, bytes.
    Filling {
        done: u64,
        total: u64,
    },
    Measuring {
        point: Point,
        done: usize,
        total: usize,
        left_s: f64,
    },
}

/// Measures what the storage under `dir` allows. Leaves nothing there, also after an error.
pub fn probe(
    dir: &Path,
    options: &ProbeOptions,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<ProbedDir, ProbeError> {
    options.check()?;
    let begin = now_ns();
    let elapsed_s = || (now_ns() - begin) as f64 / 1e9;
    let mut notes = Vec::new();
    let mut note = |watch: &mut dyn FnMut(Event<'_>), text: String| {
        watch(Event::Note(&text));
        notes.push(text);
    };
    if dir.is_dir() {
        for (path, removed) in clean_leftovers(dir)? {
            let path = path.display();
            let kept = |why| format!("kept {path}, which a probe made: {why}");
            note(watch, removed.map_or_else(kept, |()| format!("removed {path}: a killed probe left it")));
        }
    }
    let mut session = ProbeSession::open(dir, options, stop)?;
    watch(Event::Needs { needed: session.needed_bytes, free: session.facts.storage.free_bytes });
    for text in caveats(&session) {
        note(watch, text);
    }
    let wanted = session.file_bytes;
    if options.size.is_none() && wanted < 1 << 30 {
        note(watch, format!("free space is short: the test file has only {}", bytes(wanted as f64)));
    }
    let filled = session.fill(options.seconds * FILL_SHARE, |done, total| watch(Event::Filling { done, total }))?;
    if filled < wanted {
        note(
            watch,
            format!(
                "only {} of the {} of the test file were filled in time: it may fit into a cache of the device. Use more \
                 --seconds for a larger file",
                bytes(filled as f64),
                bytes(wanted as f64)
            ),
        );
    }
    let mut points = session.points();
    if let Some(only) = &options.only {
        points.retain(|p| only.contains(p));
    }
    let (rounds, slice_s) = slices(points.len(), options.seconds - elapsed_s());
    let rows = measured(&mut session, &points, (rounds, slice_s), watch)?;
    let (engine, engine_reason) = session.engine();
    let mut absent = Vec::new();
    if let Err(reason) = session.pmem() {
        let reason = reason.to_owned();
        absent.push(Absent { operation: Operation::PmemPersist, size_bytes: None, depth: None, reason });
    }
    Ok(ProbedDir {
        dir: dir.display().to_string(),
        storage: session.facts.storage.clone(),
        kind: session.facts.kind.name().to_owned(),
        st_dev: session.facts.st_dev,
        logical_block_bytes: session.facts.logical_block_bytes,
        engine,
        engine_reason: engine_reason.map(str::to_owned),
        direct: session.direct(),
        file_bytes: session.file_bytes,
        window_s: slice_s * f64::from(rounds),
        rounds,
        compressibility: options.compressibility,
        dedup: options.dedup,
        dedup_seen: session.duplicates().ok(),
        notes,
        rows,
        absent,
        log_writer: Vec::new(),
    })
}

/// Measures all points in so many rounds, each in slices of so many seconds.
fn measured(
    session: &mut ProbeSession<&AtomicBool>,
    points: &[Point],
    (rounds, slice_s): (u32, f64),
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Vec<ProbeRow>, ProbeError> {
    let mut tallies: Vec<Tally> = points.iter().map(|p| Tally::new(session.is_direct(p))).collect();
    let total = points.len() * rounds as usize;
    for round in 0..rounds as usize {
        for (i, (point, tally)) in points.iter().zip(&mut tallies).enumerate() {
            let done = round * points.len() + i;
            watch(Event::Measuring { point: *point, done, total, left_s: (total - done) as f64 * slice_s });
            session.slice(point, slice_s, tally)?;
        }
    }
    let mut rows: Vec<ProbeRow> = points.iter().zip(&tallies).filter_map(|(p, t)| t.row(p)).collect();
    rows.sort_by_key(|r| (r.operation, r.size_bytes, r.depth));
    Ok(rows)
}

fn caveats(session: &ProbeSession<&AtomicBool>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(text) = session.facts.kind.caveat() {
        all.push(text.to_owned());
    }
    if let (Engine::Threads, Some(reason)) = session.engine() {
        all.push(format!("threads with pread and pwrite instead of io_uring: {reason}"));
    }
    if !session.direct() {
        all.push(
            "this filesystem has no O_DIRECT: reads and unsynced writes go to the page cache, that is, to memory"
                .to_owned(),
        );
    } else if session.alignment() > 512 {
        all.push(format!(
            "sync writes below {} go through the page cache: O_DIRECT needs whole blocks of that size",
            bytes(session.alignment() as f64)
        ));
    }
    if let Ok((label, flush)) = session.pmem() {
        all.push(format!("mapped memory is {label}; written back with {flush} and sfence"));
    }
    let facts = &session.facts.storage.device_facts;
    if facts.get("write_cache").is_some_and(|c| c == "write through") {
        all.push("the device reports no volatile write cache: a sync has nothing to flush".to_owned());
    }
    all
}
