//! What is measured beside the jobs of a test, or proved of it.
//!
//! An instrument is one file here, which implements [`Instrument`] and states its [`Kind`], and one line in
//! [`KINDS`]. A workload lists it ([`Listed`]).

mod cache_hit;
mod checkpoint;
mod device;
mod limit;
pub(crate) mod size_scan;
mod visible;
mod workers;

use std::sync::Arc;

use loadline_collect::page_cache::DataFiles;
use loadline_database::TargetError;
use loadline_model::{Column, LogWriterPoint, Manifest, TestRecord};
use loadline_workload::{Instrument as Listed, Workload};

use crate::figures::Figures;
use crate::figures::counters::Counters;
use crate::reference::Reference;
use crate::window::{Beside, JobResult, Measured, Request, Shared};

pub(crate) use device::data_files;

/// All instruments, in the order in which they are prepared and their figures are taken.
const KINDS: [Kind; 6] = [limit::KIND, workers::KIND, cache_hit::KIND, device::KIND, checkpoint::KIND, visible::KIND];

/// Something that is measured beside the jobs of one test.
pub(crate) trait Instrument {
    /// The target has settled, and no session of a job is open yet. What jobs are asked to do may be changed here.
    fn prepare(&mut self, _request: &mut Request, _run: &Run<'_>) -> Result<(), TargetError> {
        Ok(())
    }

    /// The sessions of all jobs are open; the jobs begin when this returns. The window start is in `shared` as soon
    /// as it is known. What is started here ends by itself when `shared` says so.
    fn start(&mut self, _request: &Request, _shared: &Arc<Shared>) -> Result<(), TargetError> {
        Ok(())
    }

    /// The jobs have ended with these results: ends what was started.
    fn stop(&mut self, _jobs: &[JobResult]) {}

    /// What came of it: figures or the reasons why there are none, checks and notes.
    fn finish(&mut self, over: &Over<'_>) -> Figures;
}

/// An instrument as [`KINDS`] lists it.
struct Kind {
    /// Makes it for a test, if it is what a workload lists.
    make: fn(Listed) -> Option<Box<dyn Instrument>>,
    /// Its columns.
    columns: &'static [&'static Column],
    /// Why these are empty where no workload lists it.
    absent: &'static str,
}

/// What tests are compared with.
pub(crate) enum Limits {
    /// The reference log writer, measured around each test.
    Reference(Box<Reference>),
    /// As measured elsewhere.
    Points(Vec<LogWriterPoint>),
    /// Nothing, and why.
    None(String),
}

/// What instruments know of the run around a test.
pub(crate) struct Run<'a> {
    /// Plan, target and machine.
    pub(crate) manifest: &'a Manifest,
    /// The tests before.
    pub(crate) records: &'a [TestRecord],
    /// Repetition of this one, from 1.
    pub(crate) repetition: u32,
    /// What tests are compared with.
    pub(crate) limits: &'a Limits,
    /// The data files, or why they cannot be looked after.
    pub(crate) data_files: &'a Result<DataFiles, String>,
    /// Size of the database's own block cache, bytes, if it is known.
    pub(crate) cache_bytes: Option<u64>,
}

/// A test that is over.
pub(crate) struct Over<'a> {
    /// What was asked for.
    pub(crate) request: &'a Request,
    /// What was measured.
    pub(crate) measured: &'a Measured,
    /// The database's counters, or why they could not be read.
    pub(crate) counters: &'a Result<Counters<'a>, String>,
    /// The figures of every test.
    pub(crate) figures: &'a Figures,
    /// The run around it.
    pub(crate) run: &'a Run<'a>,
}

/// The instruments of one test.
pub(crate) struct Instruments {
    all: Vec<Box<dyn Instrument>>,
    /// Why the columns of the others are empty.
    others: Figures,
}

impl Instruments {
    /// Those that `workload` lists.
    pub(crate) fn of(workload: &Workload) -> Instruments {
        let (mut all, mut others) = (Vec::new(), Figures::default());
        for kind in KINDS {
            match workload.instruments.iter().find_map(|listed| (kind.make)(*listed)) {
                Some(instrument) => all.push(instrument),
                None => others.leave_all_out(kind.columns, kind.absent),
            }
        }
        Instruments { all, others }
    }

    /// See [`Instrument::prepare`].
    pub(crate) fn prepare(&mut self, request: &mut Request, run: &Run<'_>) -> Result<(), TargetError> {
        self.all.iter_mut().try_for_each(|i| i.prepare(request, run))
    }

    /// See [`Instrument::finish`].
    pub(crate) fn finish(mut self, over: &Over<'_>) -> Figures {
        self.all.iter_mut().for_each(|i| self.others.add(i.finish(over)));
        self.others
    }
}

impl Beside for Instruments {
    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        self.all.iter_mut().try_for_each(|i| i.start(request, shared))
    }

    fn stop(&mut self, jobs: &[JobResult]) {
        self.all.iter_mut().for_each(|i| i.stop(jobs));
    }
}

#[cfg(test)]
mod tests {
    use loadline_workload::CATALOGUE;

    use super::*;

    #[test]
    fn what_a_workload_lists_is_one_instrument_or_takes_the_place_of_its_jobs() {
        for workload in CATALOGUE {
            for listed in workload.instruments {
                let made = KINDS.iter().filter(|kind| (kind.make)(*listed).is_some()).count();
                let wanted = usize::from(!matches!(listed, Listed::SizeScan(_)));
                assert_eq!(made, wanted, "{}: {listed:?}", workload.code);
            }
        }
    }
}
