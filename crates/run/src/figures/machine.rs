//! Figures of the machines: CPU and log device of the database, CPU of loadline.

use loadline_collect::os::{CpuShares, DiskRates};
use loadline_collect::{CpuSource, Edge};
use loadline_model::{Column, column};

use super::collected::Figures;
use crate::window::{Measured, Request};

/// Why an embedded database has no client CPU.
const IN_PROCESS: &str =
    "the database runs inside the loadline process: its CPU time cannot be separated from loadline's";
const DEVICE: [&Column; 3] = [column::DEVICE_WRITES_PER_S, column::DEVICE_WRITE_MIB_PER_S, column::DEVICE_UTIL_PCT];

/// Figures of the database's machine.
pub(super) fn machine(request: &Request, measured: &Measured) -> Figures {
    let mut out = Figures::default();
    let (open, close) = (&measured.edges.at_open, &measured.edges.at_close);
    match open.cpu.as_ref().zip(close.cpu.as_ref()).and_then(|(a, b)| CpuShares::between(a, b)) {
        Some(s) => {
            let shares = [s.busy_pct, s.user_pct, s.sys_pct, s.idle_pct, s.iowait_pct];
            column::CPU_SHARES.iter().zip(shares).for_each(|(id, pct)| out.set(id, pct));
            if s.steal_pct >= 1.0 {
                out.notes.push(format!("{:.0} % of the CPU time was stolen by the hypervisor", s.steal_pct));
            }
        }
        None => {
            let why = match request.cpu {
                CpuSource::Local => "/proc/stat could not be read",
                _ => "the database runs on another machine, where loadline cannot read /proc/stat",
            };
            column::CPU_SHARES.iter().for_each(|id| out.set_fallback_reason(id, why));
        }
    }
    let disk = open.disk.as_ref().zip(close.disk.as_ref());
    match disk.and_then(|(a, b)| DiskRates::between(a, b, seconds_between(open, close))) {
        Some(r) => {
            DEVICE.iter().zip([r.writes_per_s, r.write_mib_per_s, r.util_pct]).for_each(|(id, v)| out.set(id, v));
        }
        None => out.set_all_absent(&DEVICE, "the log device is unknown or on another machine"),
    }
    out
}

/// Seconds between two readings.
pub(crate) fn seconds_between(open: &Edge, close: &Edge) -> f64 {
    close.at_ns.saturating_sub(open.at_ns) as f64 / 1e9
}

/// Figures of the loadline process, on a machine with `cpus` CPUs.
pub(super) fn client(request: &Request, measured: &Measured, cpus: u32) -> Figures {
    let mut out = Figures::default();
    if request.target.facts().in_process {
        out.set_all_absent(&[column::CLIENT_CPU_US_PER_TX, column::CLIENT_CPU_PCT], IN_PROCESS);
        return out;
    }
    let (open, close) = (&measured.edges.at_open, &measured.edges.at_close);
    let process = open.process.as_ref().zip(close.process.as_ref());
    let Some(ns) = process.map(|(a, b)| b.total_ns().saturating_sub(a.total_ns()) as f64) else {
        let why = "the CPU time of this process could not be read";
        out.set_all_absent(&[column::CLIENT_CPU_US_PER_TX, column::CLIENT_CPU_PCT], why);
        return out;
    };
    let seconds = seconds_between(open, close);
    let done = measured.merged.transaction.count() as f64 / measured.schedule.window_s() * seconds;
    let per_tx = (done > 0.0).then(|| ns / 1e3 / done);
    out.set_or_absent(column::CLIENT_CPU_US_PER_TX, per_tx, "no transaction completed in the window");
    out.set(column::CLIENT_CPU_PCT, ns / 1e9 / seconds / f64::from(cpus.max(1)) * 100.0);
    out
}
