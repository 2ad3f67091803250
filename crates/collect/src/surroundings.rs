//! Surroundings of a test on loadline's machine, at one moment: all processes, CPUs, limits, pressure. Two readings tell who
//! else used the machine in between.

use std::collections::BTreeMap;

use crate::os::{
    Cost, CostUnknown, CpuLimit, CpuTimes, Cpus, Pressure, Processes, Server, allowed, frequency_pct, thermal_ms,
};
use loadline_storage::now_ns;

/// Limits of a process's CPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Confined {
    pub allowed: Option<Cpus>,
    pub limit: Option<CpuLimit>,
}

impl Confined {
    fn for_process(id: u32) -> Confined {
        Confined { allowed: allowed(id), limit: CpuLimit::for_process(id) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Surroundings {
    pub at_ns: u64,
    pub processes: Option<Processes>,
    pub cpus: BTreeMap<u32, CpuTimes>,
    /// Waits for CPU, memory and I/O, of the whole machine.
    pub pressure: [Option<Pressure>; 3],
    pub thermal_ms: BTreeMap<u32, u64>,
    pub frequency_pct: Option<f64>,
    pub loadline: Confined,
    /// Limits of the database's CPUs, if its processes are known.
    pub server: Option<Confined>,
    /// Use of the database so far, if a [`CostMeter`](crate::os::CostMeter) reads it.
    pub cost: Result<Cost, CostUnknown>,
}

impl Surroundings {
    /// Reads them. What cannot be read is absent.
    pub fn read(server: &Server) -> Surroundings {
        let begin_ns = now_ns();
        let cpus = CpuTimes::of_each().unwrap_or_default();
        let processes = Processes::read().ok();
        // A reader without a CPU takes long: the middle is the best guess of the moment.
        let at_ns = begin_ns + now_ns().saturating_sub(begin_ns) / 2;
        let ids = cpus.keys().copied().collect();
        let root = match server {
            Server::Roots(ids) => ids.first(),
            Server::Inside | Server::Named(_) => None,
        };
        Surroundings {
            at_ns,
            processes,
            pressure: ["cpu", "memory", "io"].map(Pressure::local),
            thermal_ms: thermal_ms(&ids),
            frequency_pct: frequency_pct(&ids),
            cpus,
            loadline: Confined::for_process(std::process::id()),
            server: root.copied().map(Confined::for_process),
            cost: Err(CostUnknown::Unread),
        }
    }

    pub fn online(&self) -> Cpus {
        self.cpus.keys().copied().collect()
    }
}
