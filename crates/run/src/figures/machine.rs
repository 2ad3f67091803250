//! Figures of the machines: CPU and log device of the database, CPU of loadline, and what a transaction costs the database's machine.

use loadline_collect::os::{CostUsed, Server};
use loadline_collect::{CpuSource, Rates};
use loadline_database::Runs;
use loadline_load::{Around, Measured, Request};
use loadline_model::{Column, column};

use super::populations::TimeShares;
use super::{ENDED_EARLY, KIB, MIB, NONE_COMPLETED, all_ended_early};
use crate::checks::processes;
use crate::evidence::Evidence;
use crate::test::Test;

const IN_PROCESS: &str = "the database runs inside the loadline process, and in an open loop its CPU time cannot be separated from loadline's";
const SWITCHES_LOST: &str = "the threads that still ran at window end had less than 95 % of the database's CPU time: those that ended, such as \
     of sessions or parallel workers, took their context switches along";
const NO_IO: &str =
    "this user may not read /proc/PID/io of the database's processes: run loadline as root or as their user";
const NOT_ASKED: &str = "not asked for (--perf-events)";
const DEVICE: [&Column; 3] = [column::DEVICE_WRITES_PER_S, column::DEVICE_WRITE_MIB_PER_S, column::DEVICE_UTIL_PCT];

/// Figures of the database's machine, or why there are none.
pub(crate) fn machine(e: &Evidence<'_>, out: &mut Test) {
    rates(out, &e.rates);
    let why = match e.request.cpu {
        CpuSource::Local if all_ended_early(e.measured) => ENDED_EARLY,
        CpuSource::Local => "/proc/stat could not be read",
        _ => "the database runs on another machine, where loadline cannot read /proc/stat",
    };
    column::CPU_SHARES.iter().for_each(|c| out.set_fallback_reason(c, why));
    DEVICE.iter().for_each(|c| out.set_fallback_reason(c, "the log device is unknown or on another machine"));
}

/// CPU and log device of the database's machine.
pub(crate) fn rates(out: &mut Test, rates: &Rates) {
    if let Some(s) = rates.cpu {
        let shares = [s.busy_pct, s.user_pct, s.sys_pct, s.idle_pct, s.iowait_pct];
        column::CPU_SHARES.iter().zip(shares).for_each(|(c, pct)| out.set(c, pct));
    }
    if let Some(r) = rates.disk {
        DEVICE.iter().zip([r.writes_per_s, r.write_mib_per_s, r.util_pct]).for_each(|(c, v)| out.set(c, v));
    }
}

pub(crate) fn client(e: &Evidence<'_>, out: &mut Test) {
    let (request, measured) = (e.request, e.measured);
    if !measured.elsewhere.processes.is_empty() {
        return of_agents(measured, out);
    }
    let ns = match (e.rates.process_ns.map(|ns| ns as f64), request.target.facts().runs) {
        (None, _) => Err("the CPU time of this process could not be read"),
        (Some(ns), Runs::InProcess) => own_part(request, measured, ns).ok_or(IN_PROCESS),
        (Some(ns), Runs::Apart | Runs::Nowhere) => Ok(ns),
    };
    let ns = match ns {
        Ok(ns) => ns,
        Err(why) => return out.set_all_absent(&[column::CLIENT_CPU_US_PER_TX, column::CLIENT_CPU_PCT], why),
    };
    let seconds = e.rates.seconds;
    let done = e.tps() * seconds;
    out.set_or_absent(column::CLIENT_CPU_US_PER_TX, (done > 0.0).then(|| ns / 1e3 / done), NONE_COMPLETED);
    out.set(column::CLIENT_CPU_PCT, ns / 1e9 / seconds / f64::from(e.run.manifest.machine.cpus.max(1)) * 100.0);
}

/// Figures of the agents: all of their CPU time, and the share of the machine on which it is largest.
fn of_agents(measured: &Measured, out: &mut Test) {
    let why = "the CPU time of an agent is unknown";
    let window_s = measured.schedule.window_s();
    let done = loadline_load::tps(&measured.jobs, &measured.schedule) * window_s;
    let ns = if done > 0.0 { processes::cpu_ns(&measured.elsewhere.processes, window_s) } else { None };
    out.set_or_absent(column::CLIENT_CPU_US_PER_TX, ns.map(|ns| ns / 1e3 / done), why);
    let share = processes::busiest(&measured.elsewhere.processes).map(|(_, share)| share * 100.0);
    out.set_or_absent(column::CLIENT_CPU_PCT, share, why);
}

/// loadline's part of the `ns` of CPU time of a process that also runs the database: all but the jobs' threads, and of
/// these the time outside transactions. A thread that was ready to run was on a CPU for the same share of its time inside
/// and outside. `None` in an open loop, in which jobs also wait outside transactions.
fn own_part(request: &Request, measured: &Measured, ns: f64) -> Option<f64> {
    let readings = [&measured.readings.at_start, &measured.readings.at_end];
    let [a, b] = readings.map(|e| e.job_threads);
    let (a, b) = if request.load.has_rate() { return None } else { a.zip(b)? };
    let run = b.run_ns.checked_sub(a.run_ns)? as f64;
    let wait = b.wait_ns.checked_sub(a.wait_ns)? as f64;
    let jobs_ns = measured.schedule.window_ns() as f64 * measured.jobs.len() as f64;
    let outside = TimeShares::new(&measured.schedule, &measured.jobs).outside * jobs_ns * run / (run + wait);
    Some((ns - run).max(0.0) + outside.clamp(0.0, run)).filter(|ns| ns.is_finite())
}

/// Figures of what a transaction costs the database's machine.
pub(crate) fn cost(e: &Evidence<'_>, out: &mut Test) {
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
            let of_others = |around: &Around| {
                let [a, b] = &around.readings;
                let used = a.processes.as_ref()?.used_until(b.processes.as_ref()?, &around.own, &around.server);
                Some(used.others_io_bytes as f64)
            };
            let others = e.measured.around.as_ref().and_then(of_others).unwrap_or(0.0);
            let is_same = e.request.data_disk == e.request.disk;
            let devices = [e.rates.disk, if is_same { None } else { e.rates.data_disk }];
            let device_mib_per_s = devices.iter().flatten().map(|d| d.write_mib_per_s).reduce(|a, b| a + b);
            let device_bytes = device_mib_per_s.map(|mib| mib * MIB * used.seconds - others);
            per_transaction(out, &used, e.tps() * used.seconds, device_bytes);
        }
        Err(why) => column::SERVER_COST.as_flattened().iter().for_each(|column| out.set_absent(column, why.as_str())),
    }
}

/// CPU time of the proxy or pooler through which the jobs go.
pub(crate) fn proxy(e: &Evidence<'_>, out: &mut Test) {
    let direct = "the jobs reach the server directly (loadline ab --via: through a proxy or pooler)";
    let processes = e.request.proxy.as_ref().ok_or(direct).and_then(|ids| ids.as_ref().map_err(String::as_str));
    let used = processes.and_then(|ids| {
        let readings = e.measured.around.as_ref().map(|around| &around.readings);
        let read =
            readings.and_then(|[open, close]| Some((open, open.processes.as_ref()?, close, close.processes.as_ref()?)));
        let (open, before, close, after) = read.ok_or("the processes of this machine were not looked at")?;
        // Some have a process for each session.
        let used = before.used_until(after, &[], &Server::Roots(ids.iter().copied().collect()));
        let seconds = close.at_ns.saturating_sub(open.at_ns) as f64 / 1e9;
        let done = Some(e.tps() * seconds).filter(|done| *done > 0.0).ok_or(NONE_COMPLETED)?;
        if used.server_seen { Ok([used.server_s * 1e6 / done]) } else { Err("the proxy's process ended in the test") }
    });
    out.set_all([column::VIA_CPU_US_PER_TX], used);
}

/// Bytes written are not believed from so many times what the device wrote for all on.
const TOO_MUCH: f64 = 1.5;

/// The figures of `used`, by `done` transactions. `device_bytes`: what the devices wrote meanwhile, less what others had.
fn per_transaction(out: &mut Test, used: &CostUsed, done: f64, device_bytes: Option<f64>) {
    if done <= 0.0 {
        return out.set_all_absent(column::SERVER_COST.as_flattened(), NONE_COMPLETED);
    }
    let [cpu, switches, [read, written], events] = column::SERVER_COST;
    let each = |sums: [f64; 2]| sums.map(|sum| sum / done);
    out.set_all(cpu, Ok::<_, &str>(each(used.cpu_us)));
    out.set_all(switches, used.switches.map(each).ok_or(SWITCHES_LOST));
    let kib = used.io_bytes.map(|bytes| each(bytes).map(|n| n / KIB));
    out.set_or_absent(read, kib.map(|[read, _]| read), NO_IO);
    match used.io_bytes.and_then(|[_, bytes]| overstated(bytes, used, device_bytes)) {
        Some(why) => out.set_absent(written, why),
        None => out.set_or_absent(written, kib.map(|[_, written]| written), NO_IO),
    }
    let counted = used.events.as_ref().map(|counts| counts.as_ref().map_err(ToString::to_string));
    out.set_all(events, counted.unwrap_or_else(|| Err(NOT_ASKED.to_owned())).map(|counts| each(*counts)));
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
