//! A scan of commit time by transaction size (redo per transaction): one session, sizes in random order. Or, with transactions of the
//! largest size, by the time from the last change to the commit.
//!
//! The size of each transaction is measured: the target's redo counter is read before and after it.

pub(crate) mod output;

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use loadline_collect::Surroundings;
use loadline_database::{ClientSession, Observer, TargetError, Work};
use loadline_load::{Around, Request, TestError, session_tasks};
use loadline_model::snapshot::counter;
use loadline_model::{Latencies, Random, SizePoint, Snapshot};
use loadline_storage::now_ns;
use loadline_workload::{Arg, Execute, SizeScan, Stream};

use crate::calibrate::with;

/// A sample whose redo differs from the median of its size by more than both limits is an outlier: a checkpoint or
/// another session wrote too.
const MAX_OFF_SHARE: f64 = 0.03;
const MAX_OFF_BYTES: f64 = 16.0 * 1024.0;

#[derive(Debug)]
pub(crate) struct Scanned {
    /// Sizes, ascending.
    pub(crate) sizes: Vec<SizePoint>,
    outliers: u64,
    /// Transactions of warm-up and scan.
    committed: u64,
    rows: u64,
    /// Wall-clock time at which the first sample began.
    pub(crate) opened_at: SystemTime,
    elapsed_ns: u64,
    warmup_ns: u64,
    /// Of the scan, including outliers.
    pub(crate) transaction: Latencies,
    pub(crate) commit: Latencies,
    /// Counters before the session's first and after its last transaction.
    pub(crate) all: [Snapshot; 2],
    /// Counters before the first and after the last sample.
    pub(crate) scan: [Snapshot; 2],
    around: Around,
}

/// Shorter sleeps are skipped: the kernel cannot sleep less.
const MIN_SLEEP_NS: u64 = 200_000;

/// Longest sleep after which nobody looks whether the user wants to stop.
const MOST_ASLEEP: Duration = Duration::from_millis(200);

struct Paced<'a> {
    session: &'a mut dyn ClientSession,
    start_ns: u64,
    /// Minimum time per row, ns.
    row_ns: f64,
    rows: u64,
}

impl Execute for Paced<'_> {
    type Error = TargetError;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let rows = self.session.execute(statement, args)?;
        self.rows += rows;
        let due_ns = self.start_ns + (self.rows as f64 * self.row_ns) as u64;
        let ahead_ns = due_ns.saturating_sub(now_ns());
        if ahead_ns > MIN_SLEEP_NS {
            std::thread::sleep(Duration::from_nanos(ahead_ns));
        }
        Ok(rows)
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        ClientSession::bulk(self.session, table, first, rows)
    }
}

struct Sample {
    redo_bytes: f64,
    idle_s: f64,
    write_ns: u64,
    commit_ns: u64,
}

struct ScanSession<'a> {
    request: &'a Request,
    session: Box<dyn ClientSession>,
    observer: Box<dyn Observer>,
    node: usize,
    committed: u64,
    rows: u64,
    /// Minimum time per row, ns; 0 without a pace.
    row_ns: f64,
}

impl ScanSession<'_> {
    /// Changes each of its `own` rows: the first change of a page after a checkpoint logs the whole page. Then again, and returns the
    /// redo of a row, bytes.
    fn warm_up(&mut self, stream: &mut Stream, own: u64) -> Result<f64, TestError> {
        let (per_tx, mut redo) = (self.request.work.program.rows_per_tx().max(1), 0.0);
        for _ in 0..2 {
            let before = self.redo()?;
            for _ in 0..own.div_ceil(per_tx) {
                self.go_on()?;
                self.transaction(stream, per_tx, 0.0)?;
            }
            redo = self.redo()? - before;
        }
        Ok(redo / (own.div_ceil(per_tx) * per_tx) as f64)
    }

    /// Runs `samples` transactions of each kind, by the rows, idle time and stream of each, in an order of its own in each round. Each goes on
    /// at the `sequence` where the last one ended, so that every update changes its row.
    fn rounds(
        &mut self,
        samples: u64,
        mut streams: Vec<(u64, f64, Stream)>,
        mut sequence: u64,
        mut tick: impl FnMut(u64, u64),
    ) -> Result<Vec<Vec<Sample>>, TestError> {
        let mut seen: Vec<Vec<Sample>> = streams.iter().map(|_| Vec::new()).collect();
        let (sizes, mut random) = (streams.len() as u64, Random::new(self.request.work.draws));
        let mut order: Vec<usize> = (0..streams.len()).collect();
        for round in 0..samples {
            random.shuffle(&mut order);
            for (done, i) in (1..).zip(order.iter().copied()) {
                self.go_on()?;
                let Some(((rows, idle_s, stream), of_size)) = streams.get_mut(i).zip(seen.get_mut(i)) else { continue };
                let redo = self.redo()?;
                stream.sequence = sequence;
                let (write_ns, commit_ns) = self.transaction(stream, *rows, *idle_s)?;
                sequence = stream.sequence;
                let redo_bytes = self.redo()? - redo;
                of_size.push(Sample { redo_bytes, idle_s: *idle_s, write_ns, commit_ns });
                tick(round * sizes + done, samples * sizes);
            }
        }
        Ok(seen)
    }

    /// Runs one transaction, which is idle before its commit. Returns the time until then and the time of its commit, ns.
    fn transaction(&mut self, stream: &mut Stream, rows: u64, idle_s: f64) -> Result<(u64, u64), TargetError> {
        let start = now_ns();
        self.session.begin()?;
        stream.transaction(&mut Paced {
            session: self.session.as_mut(),
            start_ns: start,
            row_ns: self.row_ns,
            rows: 0,
        })?;
        let written = now_ns();
        let until = written + (idle_s * 1e9) as u64;
        while now_ns() < until && self.go_on().is_ok() {
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(now_ns())).min(MOST_ASLEEP));
        }
        let commit = now_ns();
        self.session.commit()?;
        let end = now_ns();
        self.committed += 1;
        self.rows += rows;
        Ok((written - start, end - commit))
    }

    /// An error if the user wants to stop.
    fn go_on(&self) -> Result<(), TestError> {
        if self.request.interrupted.load(Ordering::Relaxed) { Err(TestError::Interrupted) } else { Ok(()) }
    }

    fn counters(&mut self) -> Result<Snapshot, TargetError> {
        self.session.publish_counters()?;
        self.snapshot()
    }

    /// The counters of the session's own node: the others of a cluster apply what it writes later.
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = self.observer.snapshot()?;
        if self.node < snapshot.nodes.len() {
            snapshot.counters = snapshot.nodes.swap_remove(self.node);
            snapshot.nodes.clear();
        }
        Ok(snapshot)
    }

    fn redo(&mut self) -> Result<f64, TargetError> {
        let snapshot = self.snapshot()?;
        snapshot.counters.get(counter::REDO_BYTES).copied().ok_or_else(|| {
            TargetError::Unsupported("the target does not count its redo, so sizes cannot be measured".into())
        })
    }
}

/// Runs the scan over sizes, or over `idle_s` if there are any. Calls `tick` with the number of samples done and the total.
pub(crate) fn scan(
    request: &Request,
    spec: &SizeScan,
    idle_s: &[f64],
    tick: impl FnMut(u64, u64),
) -> Result<Scanned, TestError> {
    let (target, work) = (&request.target, request.work.as_ref());
    let thread = nix::unistd::gettid().as_raw().unsigned_abs();
    let mut session = ScanSession {
        request,
        session: target.client_session(work, 0)?,
        observer: target.observer()?,
        node: work.node(0, target.facts().nodes as usize),
        committed: 0,
        rows: 0,
        row_ns: 0.0,
    };
    let (_, server) = session_tasks(request, session.observer.as_mut(), &[thread]);
    let all_before = session.counters()?;
    let started_ns = now_ns();
    let own = work.workload.tables.first().map_or(0, |t| t.batch_rows(&work.params));
    let mut stream = work.stream(0)?;
    let bytes_per_row = session.warm_up(&mut stream, own)?;
    let pace = work.params.get(&spec.pace_mib) as f64 * 1024.0 * 1024.0;
    if pace > 0.0 {
        session.row_ns = bytes_per_row / pace * 1e9;
    }
    let of_kind = |(rows, idle_s): (u64, f64)| {
        Ok((rows, idle_s, with(work, &[(spec.rows.clone(), rows as i64)].into()).stream(0)?))
    };
    let streams = kinds(sizes(work, spec, bytes_per_row, own), idle_s).into_iter().map(of_kind);
    let streams = streams.collect::<Result<Vec<(u64, f64, Stream)>, TargetError>>()?;
    let samples = work.params.get(&spec.samples).max(1) as u64;
    let warmup_ns = now_ns() - started_ns;
    let opened_at = SystemTime::now();
    let before = session.counters()?;
    let around_open = Surroundings::read(&server);
    let open_ns = now_ns();
    let seen = session.rounds(samples, streams, stream.sequence, tick)?;
    let elapsed_ns = now_ns() - open_ns;
    let readings = [around_open, Surroundings::read(&server)];
    let after = session.counters()?;
    let (mut transaction, mut commit) = (Latencies::new(), Latencies::new());
    for sample in seen.iter().flatten() {
        transaction.record(sample.write_ns + sample.commit_ns);
        commit.record(sample.commit_ns);
    }
    let (sizes, outliers) = by_size(seen);
    Ok(Scanned {
        sizes,
        outliers,
        committed: session.committed,
        rows: session.rows,
        opened_at,
        elapsed_ns,
        warmup_ns,
        transaction,
        commit,
        all: [all_before, after.clone()],
        scan: [before, after],
        around: Around { readings, server, own: vec![std::process::id()] },
    })
}

/// Rows changed per transaction, for each size.
fn sizes(work: &Work, spec: &SizeScan, bytes_per_row: f64, own: u64) -> Vec<u64> {
    let (most, step) = (work.params.get(&spec.most_kib).max(1), work.params.get(&spec.step_kib).max(1));
    let row = bytes_per_row.max(1.0);
    let mut rows: Vec<u64> = (0..=most / step)
        .map(|i| ((i * step * 1024) as f64 / row).round().max(1.0) as u64)
        // A transaction changes no row twice.
        .take_while(|rows| *rows <= own)
        .collect();
    rows.dedup();
    rows
}

/// Rows changed per transaction with its idle time: of each size, or of the largest with each idle time.
fn kinds(sizes: Vec<u64>, idle_s: &[f64]) -> Vec<(u64, f64)> {
    match sizes.last() {
        Some(largest) if !idle_s.is_empty() => idle_s.iter().map(|s| (*largest, *s)).collect(),
        _ => sizes.into_iter().map(|rows| (rows, 0.0)).collect(),
    }
}

/// Points without outliers, and the number of outliers.
fn by_size(seen: Vec<Vec<Sample>>) -> (Vec<SizePoint>, u64) {
    let mut outliers = 0;
    let mut points = Vec::new();
    for samples in seen {
        let all: Vec<f64> = samples.iter().map(|s| s.redo_bytes).collect();
        let Some(median) = median(all) else { continue };
        let (count, idle_s) = (samples.len(), samples.first().map_or(0.0, |s| s.idle_s));
        let kept: Vec<Sample> = samples
            .into_iter()
            .filter(|s| (s.redo_bytes - median).abs() <= (MAX_OFF_SHARE * median).max(MAX_OFF_BYTES))
            .collect();
        outliers += (count - kept.len()) as u64;
        points.push(SizePoint {
            redo_bytes: median,
            idle_s,
            commit_ns: kept.iter().map(|s| s.commit_ns).collect(),
            write_ns: kept.iter().map(|s| s.write_ns).collect(),
        });
    }
    points.sort_by(|a, b| a.idle_s.total_cmp(&b.idle_s).then(a.redo_bytes.total_cmp(&b.redo_bytes)));
    (points, outliers)
}

/// The upper of the two in the middle: being one of the values, it never makes outliers of all.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_are_excluded_and_counted() {
        let sample = |redo_bytes| Sample { redo_bytes, idle_s: 0.0, write_ns: 1, commit_ns: 2 };
        let (points, outliers) = by_size(vec![
            vec![sample(200_000.0), sample(201_000.0), sample(900_000.0)],
            vec![sample(2_000.0), sample(2_100.0), sample(10_000.0)],
        ]);
        assert_eq!(outliers, 1, "only those off by more than 16 KiB");
        assert!(points[0].redo_bytes < points[1].redo_bytes);
        assert_eq!((points[0].commit_ns.len(), points[1].commit_ns.len()), (3, 2));
    }

    #[test]
    fn idle_times_are_scanned_with_the_largest_transaction() {
        assert_eq!(kinds(vec![1, 8, 64], &[]), [(1, 0.0), (8, 0.0), (64, 0.0)]);
        assert_eq!(kinds(vec![1, 8, 64], &[0.0, 5.0]), [(64, 0.0), (64, 5.0)]);
        let work = Work::from_catalogue("LGWR-SIZE", &[("most-kib", 64), ("step-kib", 8)]).unwrap();
        let spec = work.workload.scan.as_ref().unwrap();
        assert_eq!(sizes(&work, spec, 4096.0, u64::MAX), [1, 2, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(sizes(&work, spec, 4096.0, 5), [1, 2, 4], "a transaction changes no row twice");
    }
}
