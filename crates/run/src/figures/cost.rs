//! Figures of what a transaction costs the database's machine.

use loadline_collect::os::{CostUsed, Server};
use loadline_load::Around;
use loadline_model::column;

use super::{ENDED_EARLY, KIB, MIB, NONE_COMPLETED, all_ended_early};
use crate::evidence::Evidence;
use crate::test::Test;

const SWITCHES_LOST: &str = "the threads that still ran at window end had less than 95 % of the database's CPU time: those that ended, such as \
     of sessions or parallel workers, took their context switches along";
const NO_IO: &str =
    "this user may not read /proc/PID/io of the database's processes: run loadline as root or as their user";
const NOT_ASKED: &str = "not asked for (--perf-events)";

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let used = match &e.measured.around {
        Some(Around { readings: [open, close], .. }) => {
            let [before, after] = [open, close].map(|of| of.cost.as_ref().map_err(ToString::to_string));
            before.and_then(|before| before.used_until(after?).map_err(|why| why.to_string()))
        }
        None if all_ended_early(e.measured) => Err(ENDED_EARLY.to_owned()),
        None => Err("the database's processes were not looked at".to_owned()),
    };
    match used {
        Ok(used) => {
            // What others may have written is no proof of the database's bytes.
            let others = e.measured.around.as_ref().and_then(others_bytes).unwrap_or(0.0);
            let devices = [e.rates.disk, e.rates.data_disk.filter(|_| e.request.data_disk != e.request.disk)];
            let device_mib_per_s = devices.iter().flatten().map(|d| d.write_mib_per_s).reduce(|a, b| a + b);
            let device_bytes = device_mib_per_s.map(|mib| mib * MIB * used.seconds - others);
            per_transaction(out, &used, e.tps() * used.seconds, device_bytes);
        }
        Err(why) => column::SERVER_COST.as_flattened().iter().for_each(|column| out.set_absent(column, why.as_str())),
    }
}

/// CPU time of the proxy or pooler through which the jobs go.
pub(crate) fn proxy(e: &Evidence<'_>, out: &mut Test) {
    let column = column::VIA_CPU_US_PER_TX;
    let Some(processes) = &e.request.proxy else {
        return out
            .set_absent(column, "the jobs reach the server directly (loadline ab --via: through a proxy or pooler)");
    };
    let used = processes.as_ref().map_err(String::as_str).and_then(|ids| {
        let readings = e.measured.around.as_ref().map(|around| &around.readings);
        let read =
            readings.and_then(|[open, close]| Some((open, open.processes.as_ref()?, close, close.processes.as_ref()?)));
        let (open, before, close, after) = read.ok_or("the processes of this machine were not looked at")?;
        // Some have a process for each session.
        let used = before.used_until(after, &[], &Server::Roots(ids.iter().copied().collect()));
        let seconds = close.at_ns.saturating_sub(open.at_ns) as f64 / 1e9;
        let done = Some(e.tps() * seconds).filter(|done| *done > 0.0).ok_or(NONE_COMPLETED)?;
        if used.server_seen { Ok(used.server_s * 1e6 / done) } else { Err("the proxy's process ended in the test") }
    });
    match used {
        Ok(us) => out.set(column, us),
        Err(why) => out.set_absent(column, why),
    }
}

/// Bytes of I/O of all processes but the database's and loadline's.
fn others_bytes(around: &Around) -> Option<f64> {
    let [open, close] = &around.readings;
    let used = open.processes.as_ref()?.used_until(close.processes.as_ref()?, &around.own, &around.server);
    Some(used.others_io_bytes as f64)
}

/// Bytes written are not believed from so many times what the device wrote for all on.
const TOO_MUCH: f64 = 1.5;

/// The figures of `used`, by `done` transactions. `device_bytes`: what the devices of log and data wrote meanwhile, less
/// what others had.
fn per_transaction(out: &mut Test, used: &CostUsed, done: f64, device_bytes: Option<f64>) {
    if done <= 0.0 {
        return out.set_all_absent(column::SERVER_COST.as_flattened(), NONE_COMPLETED);
    }
    let split =
        |sums: Option<[f64; 2]>, why: &str| sums.map_or([(); 2].map(|()| Err(why.to_owned())), |sums| sums.map(Ok));
    let [read, mut written] = split(used.io_bytes, NO_IO);
    if let Some(why) = written.as_ref().ok().and_then(|bytes| overstated(*bytes, used, device_bytes)) {
        written = Err(why);
    }
    let kib = |bytes: Result<f64, String>| bytes.map(|n| n / KIB);
    let events = match &used.events {
        Some(Err(why)) => split(None, &why.to_string()),
        Some(Ok(counts)) => split(Some(*counts), ""),
        None => split(None, NOT_ASKED),
    };
    let sums = [split(Some(used.cpu_us), ""), split(used.switches, SWITCHES_LOST), [kib(read), kib(written)], events];
    for (column, sum) in column::SERVER_COST.as_flattened().iter().zip(sums.into_iter().flatten()) {
        match sum {
            Ok(sum) => out.set(column, sum / done),
            Err(why) => out.set_absent(column, why),
        }
    }
}

/// Why `written` bytes cannot be believed: more than write calls can have written, and than the device wrote. From Linux 6.16 on, a
/// change in a large folio of the page cache counts as the whole folio on some filesystems.
fn overstated(written: f64, used: &CostUsed, device_bytes: Option<f64>) -> Option<String> {
    let is_too_much = written > used.write_calls_bytes && device_bytes.is_none_or(|bytes| written > TOO_MUCH * bytes);
    is_too_much.then(|| {
        format!(
            "write_bytes of /proc/PID/io grew by {:.1} MiB, where write calls can have written {:.1} MiB at most, and the device is not \
             known to have written as much for it: the kernel counts whole folios of its page cache",
            written / MIB,
            used.write_calls_bytes / MIB
        )
    })
}

#[cfg(test)]
mod tests {
    use loadline_collect::os::PerfRefused;

    use super::*;

    #[test]
    fn each_figure_is_there_or_says_why_not() {
        let of = |used: &CostUsed, done: f64| {
            let mut out = Test::default();
            per_transaction(&mut out, used, done, None);
            let columns = column::SERVER_COST.as_flattened();
            assert!(columns.iter().all(|c| out.figure(c).is_some() != out.absence_reason(c).is_some()));
            columns.iter().map(|c| out.figure(c)).collect::<Vec<_>>()
        };
        let used = CostUsed {
            seconds: 2.0,
            cpu_us: [5000.0, 1000.0],
            switches: Some([300.0, 20.0]),
            io_bytes: Some([0.0, 409_600.0]),
            write_calls_bytes: 500_000.0,
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
        // Bytes that nobody wrote: not if only the device can have written them, as without write calls.
        let few = CostUsed { write_calls_bytes: 100_000.0, ..used };
        let overstated = |device| overstated(409_600.0, &few, device).is_some();
        assert_eq!([overstated(None), overstated(Some(200_000.0)), overstated(Some(400_000.0))], [true, true, false]);
        assert_eq!(of(&few, 100.0)[4..6], [Some(0.0), None]);
    }
}
