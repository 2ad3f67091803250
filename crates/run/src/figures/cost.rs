//! Figures of what a transaction costs the database's machine.

use loadline_collect::os::{CostUsed, PerfRefused};
use loadline_model::{Column, column};

use super::{ENDED_EARLY, KIB, NONE_COMPLETED, all_ended_early};
use crate::evidence::Evidence;
use crate::test::Test;

const SWITCHES_LOST: &str = "threads that ended in the window, such as those of sessions or parallel workers, had more than 5 % of the \
     database's CPU time, and their context switches are lost with them";
const NO_IO: &str =
    "this user may not read /proc/PID/io of the database's processes: run loadline as root or as their user";
const NOT_ASKED: &str = "not asked for (--perf-events)";

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    // A target that has none says why.
    if out.target_lacks(column::SERVER_CPU_USER_US_PER_TX) {
        return;
    }
    let used = match &e.measured.around {
        Some(around) => around.cost.as_ref().map_err(ToString::to_string),
        None if all_ended_early(e.measured) => Err(ENDED_EARLY.to_owned()),
        None => Err("the database's processes were not looked at".to_owned()),
    };
    match used {
        Ok(used) => per_transaction(out, used, e.tps() * used.seconds),
        Err(why) => column::SERVER_COST.as_flattened().iter().for_each(|column| out.set_absent(column, why.as_str())),
    }
}

/// The figures of `used`, by `done` transactions.
fn per_transaction(out: &mut Test, used: &CostUsed, done: f64) {
    if done <= 0.0 {
        return out.set_all_absent(column::SERVER_COST.as_flattened(), NONE_COMPLETED);
    }
    let mut set = |columns: [&Column; 2], sums: Result<[f64; 2], String>| match sums {
        Ok(sums) => columns.iter().zip(sums).for_each(|(column, sum)| out.set(column, sum / done)),
        Err(why) => out.set_all_absent(&columns, &why),
    };
    let [cpu, switches, io, events] = column::SERVER_COST;
    set(cpu, Ok(used.cpu_us));
    set(switches, used.switches.ok_or_else(|| SWITCHES_LOST.to_owned()));
    set(io, used.io_bytes.map(|bytes| bytes.map(|n| n / KIB)).ok_or_else(|| NO_IO.to_owned()));
    let counted = used.events.as_ref().ok_or_else(|| NOT_ASKED.to_owned());
    set(events, counted.and_then(|events| events.map_err(|why: PerfRefused| why.to_string())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_there_or_says_why_not() {
        let of = |used: &CostUsed, done: f64| {
            let mut out = Test::default();
            per_transaction(&mut out, used, done);
            let columns = column::SERVER_COST.as_flattened();
            assert!(columns.iter().all(|c| out.figure(c).is_some() != out.absence_reason(c).is_some()));
            columns.iter().map(|c| out.figure(c)).collect::<Vec<_>>()
        };
        let used = CostUsed {
            seconds: 2.0,
            cpu_us: [5000.0, 1000.0],
            switches: Some([300.0, 20.0]),
            io_bytes: Some([0.0, 409_600.0]),
            events: Some(Ok([1e9, 1e5])),
        };
        let all = [50.0, 10.0, 3.0, 0.2, 0.0, 4.0, 1e7, 1e3].map(Some);
        assert_eq!(of(&used, 100.0), all);
        assert_eq!(of(&used, 0.0), [None; 8]);
        let refused = Some(Err(PerfRefused::default()));
        for (events, of_io) in [(None, None), (refused, used.io_bytes)] {
            let less = CostUsed { events, io_bytes: of_io, switches: None, ..used.clone() };
            let figures = of(&less, 100.0);
            assert_eq!((figures[..2].to_vec(), figures[2..4].to_vec()), (all[..2].to_vec(), vec![None; 2]));
            assert_eq!(figures[4..6].iter().all(Option::is_some), of_io.is_some());
            assert_eq!(figures[6..], [None; 2]);
        }
    }
}
