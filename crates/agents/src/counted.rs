//! What an agent counted, on its way to the coordinator: JSON, compressed, in parts that every hub takes. Nothing is lost: histograms
//! go bucket by bucket, sums to the nanosecond.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use loadline_model::Latencies;
use loadline_window::{JobResult, OwnCommits, Tally};
use serde::{Deserialize, Serialize};

use crate::offset::Offset;

/// Length of a part: half of the largest message of a hub by default.
const PART: usize = 500_000;
/// Most that is unpacked, bytes.
const MOST: u64 = 4 << 30;

/// What an agent counted.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// What its jobs counted together.
    pub(crate) tally: Tally,
    /// Each job, times on the agent's clock.
    pub(crate) jobs: Vec<JobResult>,
    /// Transactions of its jobs at times on its clock.
    pub(crate) counts: Vec<(u64, u64)>,
    /// What their sessions committed for themselves.
    pub(crate) own: OwnCommits,
    /// Jobs on a thread, at most.
    pub(crate) sessions_per_thread: u32,
    /// CPU time of its process in the window, ns.
    pub(crate) process_cpu_ns: Option<u64>,
    /// CPU time of its machine that was used in the window, %.
    pub(crate) machine_cpu_pct: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    transaction: WireLatencies,
    commit: WireLatencies,
    response: Option<WireLatencies>,
    late: Option<WireLatencies>,
    late_cpu_ns: u64,
    connect: Option<WireLatencies>,
    thoughts: u64,
    per_second: Vec<u64>,
    total: u64,
    rows_changed: u64,
    errors: u64,
    errors_total: u64,
    conflicts: u64,
    conflicts_total: u64,
    error_texts: BTreeMap<String, u64>,
    jobs: Vec<WireJob>,
    counts: Vec<(u64, u64)>,
    own_commits: [Vec<u64>; 5],
    sessions_per_thread: u32,
    process_cpu_ns: Option<u64>,
    machine_cpu_pct: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct WireLatencies {
    histogram: String,
    /// High and low half.
    sum_ns: [u64; 2],
    max_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct WireJob {
    completed: u64,
    sum_ns: u64,
    total: u64,
    errors_total: u64,
    first_start_ns: Option<u64>,
    ran_until_ns: u64,
    ages_ns: [u64; 2],
    thinking_ns: u64,
    connecting_ns: u64,
    behind_ns: u64,
    intended_ns: Vec<u64>,
    lost: Option<String>,
}

impl WireLatencies {
    fn of(latencies: &Latencies) -> WireLatencies {
        let (bytes, sum, max_ns) = latencies.to_parts();
        WireLatencies { histogram: STANDARD.encode(bytes), sum_ns: [(sum >> 64) as u64, sum as u64], max_ns }
    }

    fn latencies(&self) -> Option<Latencies> {
        let [high, low] = self.sum_ns;
        let sum_ns = u128::from(high) << 64 | u128::from(low);
        Latencies::from_parts(&STANDARD.decode(&self.histogram).ok()?, sum_ns, self.max_ns)
    }
}

impl Counted {
    /// In parts.
    #[must_use]
    pub(crate) fn parts(&self) -> Vec<String> {
        // Each field by its name: what is added to a tally must be sent as well. The split by a phase needs one, and
        // agents have none; nor do they run scripts.
        let Tally {
            transaction,
            commit,
            split: _,
            scripted: _,
            response,
            late,
            late_cpu_ns,
            connect,
            thoughts,
            per_second,
            total,
            rows_changed,
            errors,
            errors_total,
            conflicts,
            conflicts_total,
            error_texts,
        } = &self.tally;
        let job = |job: &JobResult| WireJob {
            completed: job.completed,
            sum_ns: job.sum_ns,
            total: job.total,
            errors_total: job.errors_total,
            first_start_ns: job.first_start_ns,
            ran_until_ns: job.ran_until_ns,
            ages_ns: [job.age_at_open_ns, job.age_at_close_ns],
            thinking_ns: job.thinking_ns,
            connecting_ns: job.connecting_ns,
            behind_ns: job.behind_ns,
            intended_ns: job.intended_ns.clone(),
            lost: job.lost.clone(),
        };
        let wire = Wire {
            transaction: WireLatencies::of(transaction),
            commit: WireLatencies::of(commit),
            response: response.as_ref().map(WireLatencies::of),
            late: late.as_ref().map(WireLatencies::of),
            late_cpu_ns: *late_cpu_ns,
            connect: connect.as_ref().map(WireLatencies::of),
            thoughts: *thoughts,
            per_second: per_second.clone(),
            total: *total,
            rows_changed: *rows_changed,
            errors: *errors,
            errors_total: *errors_total,
            conflicts: *conflicts,
            conflicts_total: *conflicts_total,
            error_texts: error_texts.clone(),
            jobs: self.jobs.iter().map(job).collect(),
            counts: self.counts.clone(),
            own_commits: {
                let OwnCommits { open, passed_open, close, passed_close, end } = self.own.clone();
                [open, passed_open, close, passed_close, end]
            },
            sessions_per_thread: self.sessions_per_thread,
            process_cpu_ns: self.process_cpu_ns,
            machine_cpu_pct: self.machine_cpu_pct,
        };
        // Writing into memory cannot fail.
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        let _ = packed.write_all(&serde_json::to_vec(&wire).unwrap_or_default());
        let text = STANDARD.encode(packed.finish().unwrap_or_default());
        text.as_bytes().chunks(PART).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    /// Puts the parts together again. Times of `jobs` and `counts` are then on the coordinator's clock.
    ///
    /// # Errors
    /// If they are not what [`Self::parts`] made.
    pub(crate) fn read(text: &[u8], clock: &Offset) -> Result<Counted, String> {
        let wrong = |what: &str| format!("what it counted cannot be read ({what})");
        let packed = STANDARD.decode(text).map_err(|e| wrong(&e.to_string()))?;
        let mut json = Vec::new();
        let mut unpacked = ZlibDecoder::new(packed.as_slice()).take(MOST);
        unpacked.read_to_end(&mut json).map_err(|e| wrong(&e.to_string()))?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|e| wrong(&e.to_string()))?;
        let latencies = |of: &WireLatencies| of.latencies().ok_or_else(|| wrong("its histogram is damaged"));
        let tally = Tally {
            transaction: latencies(&wire.transaction)?,
            commit: latencies(&wire.commit)?,
            split: None,
            scripted: None,
            response: wire.response.as_ref().map(latencies).transpose()?,
            late: wire.late.as_ref().map(latencies).transpose()?,
            late_cpu_ns: wire.late_cpu_ns,
            connect: wire.connect.as_ref().map(latencies).transpose()?,
            thoughts: wire.thoughts,
            per_second: wire.per_second,
            total: wire.total,
            rows_changed: wire.rows_changed,
            errors: wire.errors,
            errors_total: wire.errors_total,
            conflicts: wire.conflicts,
            conflicts_total: wire.conflicts_total,
            error_texts: wire.error_texts,
        };
        let job = |job: WireJob| JobResult {
            completed: job.completed,
            sum_ns: job.sum_ns,
            total: job.total,
            errors_total: job.errors_total,
            first_start_ns: job.first_start_ns.map(|ns| clock.to_coordinator(ns)),
            ran_until_ns: clock.to_coordinator(job.ran_until_ns),
            age_at_open_ns: job.ages_ns[0],
            age_at_close_ns: job.ages_ns[1],
            thinking_ns: job.thinking_ns,
            connecting_ns: job.connecting_ns,
            behind_ns: job.behind_ns,
            intended_ns: job.intended_ns.iter().map(|ns| clock.to_coordinator(*ns)).collect(),
            lost: job.lost,
        };
        let jobs: Vec<JobResult> = wire.jobs.into_iter().map(job).collect();
        // What comes from elsewhere is held against itself: the parts must add up to the whole.
        let (completed, all) = jobs.iter().fold((0, 0), |(c, t), j| (c + j.completed, t + j.total));
        if (completed, all) != (tally.transaction.count(), tally.total) {
            return Err(wrong("its jobs do not add up to its histogram"));
        }
        let [open, passed_open, close, passed_close, end] = wire.own_commits;
        Ok(Counted {
            own: OwnCommits { open, passed_open, close, passed_close, end },
            tally,
            jobs,
            counts: wire.counts.into_iter().map(|(at, n)| (clock.to_coordinator(at), n)).collect(),
            sessions_per_thread: wire.sessions_per_thread,
            process_cpu_ns: wire.process_cpu_ns,
            machine_cpu_pct: wire.machine_cpu_pct,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_on_the_way(
            times in prop::collection::vec(1u64..4_000_000_000_000, 0..3000), ahead in -(1i64 << 50)..1i64 << 50,
            intended in prop::collection::vec(1u64 << 51..1u64 << 52, 0..2000), open in proptest::bool::ANY,
        ) {
            let mut counted = Counted { process_cpu_ns: Some(7), machine_cpu_pct: Some(12.5), ..Counted::default() };
            counted.tally.response = open.then(Latencies::new);
            for ns in &times {
                counted.tally.transaction.record(*ns);
                counted.tally.response.iter_mut().for_each(|r| r.record(*ns + 5));
            }
            let n = times.len() as u64;
            counted.tally.total = n;
            counted.tally.per_second = vec![n / 2, n - n / 2];
            counted.tally.error_texts.insert("é 'x'".into(), 3);
            let first_start_ns = intended.first().copied();
            let job = JobResult { completed: n, total: n, first_start_ns, intended_ns: intended, ..JobResult::default() };
            counted.jobs = vec![job];
            let text: String = counted.parts().concat();
            let clock = Offset { ahead_ns: ahead, bound_ns: 1 };
            let read = Counted::read(text.as_bytes(), &clock).unwrap();
            let (ours, theirs) = (&counted.tally, &read.tally);
            prop_assert!(ours.transaction.histogram() == theirs.transaction.histogram());
            prop_assert_eq!(ours.transaction.sum_ns(), theirs.transaction.sum_ns());
            prop_assert_eq!(ours.transaction.max_ns(), theirs.transaction.max_ns());
            prop_assert_eq!(theirs.response.as_ref().map(Latencies::sum_ns), ours.response.as_ref().map(Latencies::sum_ns));
            prop_assert_eq!(&ours.error_texts, &theirs.error_texts);
            let (ours, theirs) = (&counted.jobs[0], &read.jobs[0]);
            for (ours, theirs) in ours.intended_ns.iter().zip(&theirs.intended_ns) {
                prop_assert_eq!(*ours, clock.to_agent(*theirs));
            }
            let cut = text.get(..text.len() / 2).unwrap_or_default();
            prop_assert!(Counted::read(cut.as_bytes(), &clock).is_err(), "half of it");
        }
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let mut counted = Counted::default();
        counted.tally.transaction.record(5);
        let clock = Offset { ahead_ns: 0, bound_ns: 0 };
        let why = Counted::read(counted.parts().concat().as_bytes(), &clock).err().unwrap();
        assert!(why.contains("do not add up"), "{why}");
    }
}
