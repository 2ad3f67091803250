//! Figures of the machines: CPU and log device of the database, CPU of loadline.

use loadline_collect::{CpuSource, Rates};
use loadline_database::Runs;
use loadline_load::{Measured, Request};
use loadline_model::{Column, column};

use super::populations::TimeShares;
use crate::checks::processes;
use crate::evidence::Evidence;
use crate::test::Test;

const IN_PROCESS: &str = "the database runs inside the loadline process, and in an open loop its CPU time cannot be separated from loadline's";
const DEVICE: [&Column; 3] = [column::DEVICE_WRITES_PER_S, column::DEVICE_WRITE_MIB_PER_S, column::DEVICE_UTIL_PCT];

/// Figures of the database's machine, or why there are none.
pub(crate) fn machine(e: &Evidence<'_>, out: &mut Test) {
    rates(out, &e.rates);
    let why = match e.request.cpu {
        CpuSource::Local if super::all_ended_early(e.measured) => super::ENDED_EARLY,
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
    const BOTH: [&Column; 2] = [column::CLIENT_CPU_US_PER_TX, column::CLIENT_CPU_PCT];
    let (request, measured) = (e.request, e.measured);
    if !measured.elsewhere.processes.is_empty() {
        return of_agents(measured, out);
    }
    let Some(ns) = e.rates.process_ns.map(|ns| ns as f64) else {
        return out.set_all_absent(&BOTH, "the CPU time of this process could not be read");
    };
    let ns = match request.target.facts().runs {
        Runs::InProcess => own_part(request, measured, ns),
        Runs::Apart | Runs::Nowhere => Some(ns),
    };
    let Some(ns) = ns else {
        return out.set_all_absent(&BOTH, IN_PROCESS);
    };
    let seconds = e.rates.seconds;
    let done = e.tps() * seconds;
    let per_tx = (done > 0.0).then(|| ns / 1e3 / done);
    out.set_or_absent(column::CLIENT_CPU_US_PER_TX, per_tx, "no transaction completed in the window");
    out.set(column::CLIENT_CPU_PCT, ns / 1e9 / seconds / f64::from(e.run.manifest.machine.cpus.max(1)) * 100.0);
}

/// Figures of the agents: all of their CPU time, and the share of the machine on which it is largest.
fn of_agents(measured: &Measured, out: &mut Test) {
    let why = "the CPU time of an agent is unknown";
    let schedule = &measured.schedule;
    let done = loadline_load::tps(&measured.jobs, schedule) * schedule.window_s();
    let used = || processes::cpu_ns(&measured.elsewhere.processes, schedule.window_s());
    let ns = if done > 0.0 { used() } else { None };
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
    let (a, b) = a.zip(b).filter(|_| !request.load.has_rate())?;
    let run = b.run_ns.checked_sub(a.run_ns)? as f64;
    let wait = b.wait_ns.checked_sub(a.wait_ns)? as f64;
    let jobs_ns = measured.schedule.window_ns() as f64 * measured.jobs.len() as f64;
    let outside = TimeShares::new(&measured.schedule, &measured.jobs).outside * jobs_ns * run / (run + wait);
    Some((ns - run).max(0.0) + outside.clamp(0.0, run)).filter(|ns| ns.is_finite())
}
