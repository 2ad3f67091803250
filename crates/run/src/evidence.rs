//! Evidence of a test, complete before a test is made of it: what the jobs counted, snapshots of the database's counters at fixed
//! moments, samples between them, what instruments saw, and answers to queries before and after. `steps.rs` has what makes a test of it.

use std::ops::Deref;
use std::sync::Arc;

use loadline_collect::Rates;
use loadline_collect::page_cache::DataFiles;
use loadline_database::{Target, TargetError, Work};
use loadline_load::{JobResult, Measured, Request, Shared, Tally};
use loadline_model::machine::Storage;
use loadline_model::manifest::TargetInfo;
use loadline_model::{Manifest, Note, Outcome, TestRecord};
use loadline_workload::{Commit, Program, RowCount, Step};

use crate::figures::counters::{Completed, Counters};
use crate::reference::References;
use crate::server_memory::ServerMemory;
use crate::test::{Judged, Test, Verdict, noted};

/// The run that a test is part of.
pub(crate) struct RunContext<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) records: &'a [TestRecord],
    /// Repetition of this test, from 1.
    pub(crate) repetition: u32,
    pub(crate) log: Option<&'a Storage>,
    /// Tool that measures the limits of its tests, or why there is none.
    pub(crate) references: &'a Result<References, String>,
    /// The data files, or why they cannot be kept out of the page cache.
    pub(crate) data_files: &'a Result<DataFiles, String>,
    /// Size of the database's own block cache, bytes, if known.
    pub(crate) cache_bytes: Option<u64>,
    pub(crate) server_memory: Option<ServerMemory>,
}

/// Evidence of one test; `seen` is that of jobs or of a scan.
pub(crate) struct Evidence<'a, S = Jobs<'a>> {
    pub(crate) request: &'a Request,
    pub(crate) run: &'a RunContext<'a>,
    pub(crate) proof: &'a Proof,
    /// The target before the test, and after it.
    pub(crate) target: (&'a TargetInfo, Result<TargetInfo, TargetError>),
    pub(crate) excuses: Excuses,
    /// Notes about what was before and after the jobs.
    pub(crate) remarks: Vec<Note>,
    pub(crate) seen: S,
}

pub(crate) struct Jobs<'a> {
    pub(crate) measured: &'a Measured,
    pub(crate) rates: Rates,
    /// The database's counters in the window, or why they could not be read.
    pub(crate) counters: Result<Counters<'a>, String>,
    pub(crate) instruments: Instruments,
    pub(crate) lost_nodes: &'a [String],
    pub(crate) full_disk: Option<String>,
}

/// A measurement in addition to the jobs of one test.
pub(crate) trait Instrument {
    /// Called before the sessions of jobs are opened. May change the request.
    fn prepare(&mut self, _request: &mut Request, _run: &RunContext<'_>) -> Result<(), TargetError> {
        Ok(())
    }

    /// Called after [`Instrument::prepare`] if others disturbed it: nothing that it measured may be used.
    fn forget(&mut self) {}

    /// Whether it does something at moments of the window, so that no other window can follow.
    fn follows_window(&self) -> bool {
        false
    }

    /// See [`loadline_load::TestHooks::start`]. `shared` has the window once it is set.
    fn start(&mut self, _request: &Request, _shared: &Arc<Shared>) -> Result<(), TargetError> {
        Ok(())
    }

    /// See [`loadline_load::TestHooks::stop`].
    fn stop(&mut self, _jobs: &[JobResult]) {}

    /// Called when the jobs have ended, for what can only be measured or asked then. `figures` are those of the jobs.
    fn complete(&mut self, _request: &Request, _run: &RunContext<'_>, _figures: &Test) {}

    /// Adds checks of what makes other checks fail as well.
    fn reasons_first(&self, _test: &mut Test) {}

    /// Adds what it knows of a window that was interrupted, if that is worth keeping, and returns of how much of it, s.
    fn report_interrupted(&self, _test: &mut Test) -> Option<f64> {
        None
    }

    /// Adds its figures or the reasons for their absence, its checks and notes; by default as of an interrupted window.
    fn report(&self, _e: &Evidence<'_>, test: &mut Test) {
        self.report_interrupted(test);
    }
}

/// The instruments of one test; by default none.
pub(crate) type Instruments = Vec<Box<dyn Instrument>>;

impl<'a> RunContext<'a> {
    /// A single test outside a run: no limits, no earlier tests.
    pub(crate) fn outside(manifest: &'a Manifest) -> RunContext<'a> {
        RunContext {
            manifest,
            records: &[],
            repetition: 1,
            log: None,
            references: const { &Err(String::new()) },
            data_files: const { &Err(String::new()) },
            cache_bytes: None,
            server_memory: None,
        }
    }
}

impl<'a> Jobs<'a> {
    /// Evidence of jobs that no instrument watched and that lost nothing.
    pub(crate) fn from(request: &Request, measured: &'a Measured) -> Jobs<'a> {
        let counters = Counters::new(request, measured);
        let rates = measured.readings.at_start.system.rates_until(&measured.readings.at_end.system);
        Jobs { measured, rates, counters, instruments: Vec::new(), lost_nodes: &[], full_disk: None }
    }
}

impl<S> Deref for Evidence<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.seen
    }
}

impl<S> Evidence<'_, S> {
    /// The evidence with these remarks before the others.
    pub(crate) fn and_remarks(mut self, remarks: impl IntoIterator<Item = Note>) -> Self {
        self.remarks.splice(0..0, remarks);
        self
    }

    pub(crate) fn work(&self) -> &Work {
        &self.request.work
    }

    pub(crate) fn is_durable(&self) -> bool {
        let program = &self.work().program;
        program.commit == Commit::Wait && program.writes()
    }
}

impl<'a> Evidence<'a> {
    pub(crate) fn merged(&self) -> &Tally {
        &self.measured.merged
    }

    pub(crate) fn transactions(&self) -> f64 {
        self.merged().transaction.count() as f64
    }

    pub(crate) fn tps(&self) -> f64 {
        loadline_load::tps(&self.measured.jobs, &self.measured.schedule)
    }

    pub(crate) fn jobs(&self) -> f64 {
        self.measured.jobs.len() as f64
    }

    /// Growth of a counter in the window, if it could be read.
    pub(crate) fn grown(&self, name: &str) -> Option<f64> {
        self.counters.as_ref().ok().and_then(|c| c.grown(name))
    }

    /// Why a figure is missing: its counters could not be read, or else `why`.
    pub(crate) fn missing(&self, why: &str) -> String {
        self.counters.as_ref().err().map_or(why, String::as_str).to_owned()
    }

    /// Transactions that the jobs completed between the database's snapshots, if the snapshots have their count.
    pub(crate) fn completed(&self) -> Option<Completed> {
        self.counters.as_ref().ok().and_then(Counters::completed)
    }

    /// Transactions to compare with the database's counters: those between its snapshots by the jobs' own count, or else
    /// those of the window, which may differ by as many as the counters are of another time.
    pub(crate) fn comparable(&self) -> Completed {
        let count = self.transactions();
        self.completed().unwrap_or(Completed { count, uncertain: self.late_share() * count })
    }

    /// For how long the counters may have grown outside the window, as a share of it.
    pub(crate) fn late_share(&self) -> f64 {
        let off_s = |c: &Counters<'_>| c.grew_outside_s(self.request.driver, &self.request.load);
        self.counters.as_ref().map_or(0.0, off_s) / self.measured.schedule.window_s().max(1e-9)
    }

    /// Share of the transactions that change something, whose commits need a sync; its lower bound where only executions show it.
    pub(crate) fn writing_share(&self) -> f64 {
        let (program, merged): (&Program, _) = (&self.work().program, self.merged());
        let most = merged.total as f64 * program.rows_changed_per_tx() as f64;
        let share = program.writing_share();
        if program.counts_changes() && most > 0.0 { share.min(merged.rows_changed as f64 / most) } else { share }
    }
}

/// State of a test on purpose: a check that fails because of it is noted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Excuses {
    /// Whether the doctor refused something of the target that the user forced.
    pub(crate) forced: bool,
    /// Why commits need not wait for their disk.
    pub(crate) commits: Option<Excuse>,
    /// Why transactions may have other redo than they were calibrated with.
    pub(crate) redo: Option<Excuse>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Excuse {
    /// The doctor refused this in an arm, and the user forced it.
    #[error("it is what the arms differ in: the arm has {}", .0.join("; "))]
    ArmHas(Vec<String>),
    /// The arms differ in what their transactions write.
    #[error("it is what the arms differ in: both do the work that was calibrated in arm A")]
    CalibratedInArmA,
    #[error("a commit at level {0} does not wait for its disk")]
    Level(String),
}

/// Noted instead of failed if there is an excuse.
pub(crate) fn excused(judged: Judged, excuse: Option<&Excuse>) -> Verdict {
    let verdict = judged.unwrap_or_else(|why| why);
    match excuse {
        Some(excuse) if verdict.outcome == Outcome::Failed => noted(format!("{}; {excuse}", verdict.detail)),
        _ => verdict,
    }
}

/// Results of queries before and after a test.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    /// Growth of the evidence query's result, or why the query failed; `None` without a query.
    pub(crate) grown: Result<Option<i64>, String>,
    /// Consistency queries with their results, which must be 0.
    pub(crate) consistency: Vec<(String, Result<Option<i64>, String>)>,
    /// Bytes of the whole tables that a transaction reads or loads, if it does.
    pub(crate) data_bytes: Result<Option<f64>, String>,
}

pub(crate) struct BeforeTest {
    evidence: Option<i64>,
    /// Results that the consistency queries must have after the test, or why that is not known.
    consistent: Vec<Result<Option<i64>, String>>,
}

impl BeforeTest {
    pub(crate) fn query(target: &dyn Target, work: &Work) -> Result<BeforeTest, TargetError> {
        let ask = |query| integer(target, work, query).map_err(|e| format!("before the test: {e}"));
        let absolute = work.workload.consistency.iter().map(|_| Ok(Some(0)));
        let consistent = absolute.chain(work.workload.unchanged.iter().map(|c| ask(&c.query)));
        Ok(BeforeTest { evidence: target.evidence(work)?, consistent: consistent.collect() })
    }

    pub(crate) fn proof(&self, target: &dyn Target, work: &Work) -> Proof {
        let after = target.evidence(work).map_err(|e| e.to_string());
        let grown = after.map(|after| self.evidence.zip(after).map(|(before, after)| after - before));
        let off = |query: &str, wanted: &Result<Option<i64>, String>| {
            let found = integer(target, work, query).map_err(|e| e.to_string())?;
            Ok(found.zip(wanted.clone()?).map(|(found, wanted)| found - wanted))
        };
        let conditions = work.workload.consistency.iter().chain(&work.workload.unchanged).zip(&self.consistent);
        let consistency = conditions.map(|(c, wanted)| (c.what.clone(), off(&c.query, wanted))).collect();
        Proof { grown, consistency, data_bytes: data_bytes(target, work) }
    }
}

/// Bytes of the whole tables that a transaction reads or loads.
fn data_bytes(target: &dyn Target, work: &Work) -> Result<Option<f64>, String> {
    let Some(volume) = work.workload.volume(&work.params) else { return bulk_bytes(target, work) };
    let size = |table: &String| {
        let bytes = target.abilities().tables.map_or(Ok(None), |queries| queries.bytes_read(work, table));
        bytes.map_err(|e| e.to_string())?.ok_or_else(unknown_size)
    };
    let sizes = volume.tables.iter().map(size).collect::<Result<Vec<u64>, String>>()?;
    Ok((!sizes.is_empty()).then(|| sizes.iter().sum::<u64>() as f64 * volume.share))
}

/// Bytes of the rows that a transaction adds in bulk, or to the only table.
fn bulk_bytes(target: &dyn Target, work: &Work) -> Result<Option<f64>, String> {
    let bulk = work.program.body.iter().find_map(|step| match step {
        Step::Bulk { table, rows } => Some((work.workload.tables.get(*table)?, u64::from(*rows))),
        _ => None,
    });
    let only = match work.workload.tables.as_slice() {
        [table] if table.rows == RowCount::Empty => Some((table, work.program.rows_changed_per_tx())),
        _ => None,
    };
    let Some((table, rows)) = bulk.or(only) else { return Ok(None) };
    let there = rows_of(target, work, &table.name).map_err(|e| e.to_string())?;
    let bytes = table_bytes(target, work, &table.name).map_err(|e| e.to_string())?;
    let (bytes, there) = bytes.zip(there.filter(|n| *n > 0)).ok_or_else(unknown_size)?;
    Ok(Some(bytes as f64 / there as f64 * rows as f64))
}

fn unknown_size() -> String {
    "the size of the target's tables is unknown".to_owned()
}

pub(crate) fn integer(target: &dyn Target, work: &Work, query: &str) -> Result<Option<i64>, TargetError> {
    target.abilities().tables.map(|queries| queries.integer(work, query)).transpose()
}

pub(crate) fn rows_of(target: &dyn Target, work: &Work, table: &str) -> Result<Option<i64>, TargetError> {
    integer(target, work, &format!("SELECT COUNT(*) FROM {{{table}}}"))
}

/// Bytes of `table` as it is stored; `None` if unknown.
pub(crate) fn table_bytes(target: &dyn Target, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
    target.abilities().tables.map_or(Ok(None), |queries| queries.table_bytes(work, table))
}
