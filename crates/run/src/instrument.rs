//! Instruments: measurements and proofs in addition to the jobs of a test.
//!
//! An instrument is one file here, which implements [`Instrument`], one line in [`LISTED`], and why its figures are absent
//! without it in `absent.toml`. A workload lists it.

mod aging;
mod cache_hit;
mod checkpoint;
mod device;
mod identical;
mod levels;
mod limit;
pub(crate) mod size_scan;
mod visible;
mod workers;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::thread::{Builder, JoinHandle};

use loadline_database::TargetError;
use loadline_load::schedule::sleep_until;
use loadline_load::{Schedule, Shared};
use loadline_model::{Column, Plan};
use loadline_storage::now_ns;
use loadline_workload::Workload;

use crate::evidence::RunContext;
pub(crate) use crate::evidence::{Instrument, Instruments};
use crate::test::Test;

use aging::Aging;
pub(crate) use device::data_files;
use identical::IdenticalBlocks;
pub(crate) use levels::Levels;

/// Makes an instrument if the workload lists it.
type Make = fn(&Workload) -> Option<Box<dyn Instrument>>;

/// Makers of instruments, in the order in which these are prepared and report.
const LISTED: [Make; 6] = [
    limit::listed_by,
    workers::listed_by,
    cache_hit::listed_by,
    device::listed_by,
    checkpoint::listed_by,
    visible::listed_by,
];

/// Figures by the reason for their absence. None if the file cannot be read, which the tests detect.
static ABSENT: LazyLock<BTreeMap<String, Vec<&'static Column>>> =
    LazyLock::new(|| toml::from_str(include_str!("instrument/absent.toml")).unwrap_or_default());

/// The instruments that `workload` lists, that of a run of levels, and what `plan` asks for.
pub(crate) fn listed_by(workload: &Workload, levels: Option<Levels>, plan: &Plan) -> Instruments {
    let of_run = [
        boxed(levels),
        boxed(plan.aging().then(Aging::default)),
        boxed(plan.payload.duplicates.map(|_| IdenticalBlocks::default())),
    ];
    LISTED.into_iter().map(|made| made(workload)).chain(of_run).flatten().collect()
}

/// Says why figures are absent that no instrument of the test has measured.
pub(crate) fn say_why_absent(test: &mut Test) {
    ABSENT.iter().for_each(|(why, columns)| test.set_all_absent(columns, why));
}

pub(crate) fn boxed(instrument: Option<impl Instrument + 'static>) -> Option<Box<dyn Instrument>> {
    instrument.map(|of| Box::new(of) as Box<dyn Instrument>)
}

/// An instrument's work beside the jobs, in a thread of its own.
struct Beside<T> {
    thread: Option<JoinHandle<Result<T, String>>>,
    /// Outcome, or why there is none.
    outcome: Result<T, String>,
}

impl<T> Default for Beside<T> {
    fn default() -> Beside<T> {
        Beside { thread: None, outcome: Err("it was not started".to_owned()) }
    }
}

impl<T: Send + 'static> Beside<T> {
    fn start(
        &mut self,
        name: &str,
        run: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<(), TargetError> {
        let failed = |e| TargetError::Local(format!("no thread could be started for the {name}: {e}"));
        self.thread = Some(Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?);
        Ok(())
    }

    fn join(&mut self) {
        let crashed = |_| Err("its thread crashed: an internal error, please report it".to_owned());
        if let Some(thread) = self.thread.take() {
            self.outcome = thread.join().unwrap_or_else(crashed);
        }
    }
}

fn wait_until(shared: &Shared, moment: impl Fn(&Schedule) -> u64) -> Result<(), String> {
    const LOOK_NS: u64 = 20_000_000;
    while shared.window().is_none() && !shared.stopped() {
        sleep_until(now_ns() + LOOK_NS, shared);
    }
    let moment_ns = shared.window().map_or(u64::MAX, moment);
    sleep_until(moment_ns, shared);
    if now_ns() >= moment_ns { Ok(()) } else { Err("the test ended earlier".to_owned()) }
}

#[cfg(test)]
mod tests {
    use loadline_workload::CATALOGUE;

    use super::*;

    #[test]
    fn each_instrument_of_a_workload_is_made() {
        for workload in CATALOGUE.iter() {
            let made = LISTED.iter().filter(|made| made(workload).is_some()).count();
            let stated = [!workload.limits.is_empty(), workload.workers.is_some(), workload.visible.is_some()];
            let listed = workload.instruments.len() + stated.into_iter().filter(|is| *is).count();
            assert_eq!(made, listed, "{}", workload.code);
        }
        assert!(ABSENT.values().flatten().count() > 20, "absent.toml can be read");
    }
}
