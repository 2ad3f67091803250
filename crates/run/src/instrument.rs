//! Instruments: measurements and proofs in addition to the jobs of a test.
//!
//! An instrument is one file here, which implements [`Instrument`] and states its [`Kind`], and one line in
//! [`KINDS`]. A workload lists it as an [`InstrumentSpec`].

mod cache_hit;
mod checkpoint;
mod device;
mod limit;
mod replicas;
pub(crate) mod size_scan;
mod visible;
mod workers;

use std::sync::Arc;

use loadline_collect::page_cache::DataFiles;
use loadline_database::TargetError;
use loadline_load::{JobResult, Measured, Request, Shared, TestHooks};
use loadline_model::{Column, Manifest, TestRecord};
use loadline_workload::{Instrument as InstrumentSpec, Workload};

use crate::figures::Figures;
use crate::figures::counters::Counters;
use crate::reference::References;
use crate::server_memory::ServerMemory;

pub(crate) use device::data_files;
pub(crate) use replicas::Replicas;

/// All instruments, in the order in which they are prepared and finished.
const KINDS: [Kind; 6] = [limit::KIND, workers::KIND, cache_hit::KIND, device::KIND, checkpoint::KIND, visible::KIND];

/// A measurement in addition to the jobs of one test.
pub(crate) trait Instrument {
    /// Called before the sessions of jobs are opened. May change the request.
    fn prepare(&mut self, _request: &mut Request, _run: &RunContext<'_>) -> Result<(), TargetError> {
        Ok(())
    }

    /// See [`TestHooks::start`]. `shared` has the window once it is set.
    fn start(&mut self, _request: &Request, _shared: &Arc<Shared>) -> Result<(), TargetError> {
        Ok(())
    }

    /// See [`TestHooks::stop`].
    fn stop(&mut self, _jobs: &[JobResult]) {}

    /// Returns its figures or the reasons for their absence, its checks and notes.
    fn finish(&mut self, ended: &EndedTest<'_>) -> Figures;
}

/// An instrument as [`KINDS`] lists it.
struct Kind {
    /// Creates the instrument if the spec is of this kind.
    make: fn(InstrumentSpec) -> Option<Box<dyn Instrument>>,
    /// Its columns.
    columns: &'static [&'static Column],
    /// Why these are empty if the workload does not list it.
    absent: &'static str,
}

/// The run that a test is part of.
pub(crate) struct RunContext<'a> {
    /// Plan, target and machine.
    pub(crate) manifest: &'a Manifest,
    /// Earlier tests of the run.
    pub(crate) records: &'a [TestRecord],
    /// Repetition of this test, from 1.
    pub(crate) repetition: u32,
    /// What measures the limits of its tests, or why nothing does.
    pub(crate) references: &'a Result<References, String>,
    /// The data files, or why they cannot be kept out of the page cache.
    pub(crate) data_files: &'a Result<DataFiles, String>,
    /// Size of the database's own block cache, bytes, if known.
    pub(crate) cache_bytes: Option<u64>,
    /// Memory of the server's machine, if known.
    pub(crate) server_memory: Option<ServerMemory>,
}

/// A test whose jobs have ended.
pub(crate) struct EndedTest<'a> {
    /// What was asked for.
    pub(crate) request: &'a Request,
    /// What was measured.
    pub(crate) measured: &'a Measured,
    /// The database's counters, or why they could not be read.
    pub(crate) counters: &'a Result<Counters<'a>, String>,
    /// The figures of the jobs.
    pub(crate) figures: &'a Figures,
    /// The run that it is part of.
    pub(crate) run: &'a RunContext<'a>,
}

/// The instruments of one test.
pub(crate) struct Instruments {
    all: Vec<Box<dyn Instrument>>,
    /// Why the columns of other instruments are empty.
    others: Figures,
}

impl Instruments {
    /// The instruments that `workload` lists, and what looks at the replicas in a run of levels.
    pub(crate) fn of(workload: &Workload, replicas: Option<Replicas>) -> Instruments {
        let (mut all, mut others) = (Vec::new(), Figures::default());
        for kind in KINDS {
            match workload.instruments.iter().find_map(|listed| (kind.make)(*listed)) {
                Some(instrument) => all.push(instrument),
                None => others.set_all_absent(kind.columns, kind.absent),
            }
        }
        match replicas {
            Some(replicas) => all.push(Box::new(replicas)),
            None => others.set_all_absent(replicas::COLUMNS, replicas::ABSENT),
        }
        Instruments { all, others }
    }

    /// See [`Instrument::prepare`].
    pub(crate) fn prepare(&mut self, request: &mut Request, run: &RunContext<'_>) -> Result<(), TargetError> {
        self.all.iter_mut().try_for_each(|i| i.prepare(request, run))
    }

    /// See [`Instrument::finish`].
    pub(crate) fn finish(mut self, ended: &EndedTest<'_>) -> Figures {
        self.all.iter_mut().for_each(|i| self.others.add(i.finish(ended)));
        self.others
    }
}

impl TestHooks for Instruments {
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
    fn each_spec_has_one_instrument_or_replaces_the_jobs() {
        for workload in CATALOGUE.iter() {
            for listed in workload.instruments {
                let made = KINDS.iter().filter(|kind| (kind.make)(*listed).is_some()).count();
                let wanted = usize::from(!matches!(listed, InstrumentSpec::SizeScan(_)));
                assert_eq!(made, wanted, "{}: {listed:?}", workload.code);
            }
        }
    }
}
