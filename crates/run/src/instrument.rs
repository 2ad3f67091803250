//! Instruments: measurements and proofs in addition to the jobs of a test.
//!
//! An instrument is one file here, which implements [`Instrument`] and states its [`Kind`], and one line in
//! [`KINDS`]. A workload lists it.

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

use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use loadline_database::TargetError;
use loadline_load::{Schedule, Shared};
use loadline_model::{Column, Plan};
use loadline_storage::now_ns;
use loadline_workload::Workload;

use crate::evidence::{Evidence, RunContext};
pub(crate) use crate::evidence::{Instrument, Instruments};
use crate::test::Test;

pub(crate) use aging::AGE_PARTS;
use aging::Aging;
pub(crate) use device::data_files;
use identical::IdenticalBlocks;
pub(crate) use levels::Levels;

/// All instruments, in the order in which they are prepared and report.
const KINDS: [Kind; 6] = [limit::KIND, workers::KIND, cache_hit::KIND, device::KIND, checkpoint::KIND, visible::KIND];

/// An instrument as [`KINDS`] lists it.
struct Kind {
    make: fn(&Workload) -> Option<Box<dyn Instrument>>,
    columns: &'static [&'static Column],
    /// Why these are empty if the workload does not list it.
    absent: &'static str,
}

impl Instruments {
    /// The instruments that `workload` lists, that of a run of levels, and what `plan` asks for.
    pub(crate) fn listed_by(workload: &Workload, levels: Option<Levels>, plan: &Plan) -> Instruments {
        let of_workload = KINDS.map(|kind| ((kind.make)(workload), kind.columns, kind.absent));
        let of_run = [
            (boxed(levels), levels::COLUMNS, levels::ABSENT),
            (boxed(plan.aging().then(Aging::default)), aging::COLUMNS, aging::ABSENT),
            (boxed(plan.payload.duplicates.map(|_| IdenticalBlocks::default())), identical::COLUMNS, identical::ABSENT),
        ];
        let mut instruments = Instruments::default();
        for (made, columns, why) in of_workload.into_iter().chain(of_run) {
            match made {
                Some(instrument) => instruments.all.push(instrument),
                None => instruments.absent.push((columns, why)),
            }
        }
        instruments
    }

    /// See [`Instrument::forget`].
    pub(crate) fn forget(&mut self) {
        self.all.iter_mut().for_each(|i| i.forget());
    }

    /// See [`Instrument::follows_window`].
    pub(crate) fn follow_window(&self) -> bool {
        self.all.iter().any(|i| i.follows_window())
    }

    /// See [`Instrument::report`]; with the reasons why columns of other instruments are empty.
    pub(crate) fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        self.absent.iter().for_each(|(columns, why)| test.set_all_absent(columns, why));
        self.all.iter().for_each(|i| i.report(e, test));
    }
}

fn boxed(instrument: Option<impl Instrument + 'static>) -> Option<Box<dyn Instrument>> {
    instrument.map(|of| Box::new(of) as Box<dyn Instrument>)
}

fn beside_jobs<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, TargetError> {
    let failed = |e| TargetError::Local(format!("no thread could be started for the {name}: {e}"));
    Builder::new().name(name.to_owned()).spawn(run).map_err(failed)
}

fn outcome<T>(thread: JoinHandle<Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("its thread crashed".to_owned()))
}

/// Waits until a moment of the window, once that is known.
fn wait_until(shared: &Shared, moment: impl Fn(&Schedule) -> u64) -> Result<(), String> {
    const LOOK_NS: u64 = 20_000_000;
    loop {
        let left_ns = shared.window().map_or(LOOK_NS, |window| moment(window).saturating_sub(now_ns()));
        if left_ns == 0 {
            return Ok(());
        }
        if shared.stopped() {
            return Err("the test ended earlier".to_owned());
        }
        std::thread::sleep(Duration::from_nanos(left_ns.min(LOOK_NS)));
    }
}

#[cfg(test)]
mod tests {
    use loadline_workload::CATALOGUE;

    use super::*;

    #[test]
    fn each_instrument_of_a_workload_is_made() {
        for workload in CATALOGUE.iter() {
            let made = KINDS.iter().filter(|kind| (kind.make)(workload).is_some()).count();
            let stated = [!workload.limits.is_empty(), workload.workers.is_some(), workload.visible.is_some()];
            let listed = workload.instruments.len() + stated.into_iter().filter(|is| *is).count();
            assert_eq!(made, listed, "{}", workload.code);
        }
    }
}
