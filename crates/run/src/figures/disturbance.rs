//! Figures and checks of who else used the machine in the window, and of what kept loadline and the database from CPUs.

use std::collections::BTreeMap;

use loadline_collect::os::{CpuShares, CpuTimes, Cpus, TICKS_PER_S, Used};
use loadline_collect::{Confined, CpuSource, Surroundings};
use loadline_database::Runs;
use loadline_load::{Around, Request};
use loadline_model::disturbance::{DISTURBANCES, Disturbance};
use loadline_model::format::number;
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Column, Note, column};

use super::counters::Counters;
use super::{ENDED_EARLY, all_ended_early};
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, failed, noted, passed};

const CONTAINER: &str =
    "loadline does not see all processes, as in a container of its own: unknown_cpu_pct is what it cannot tell apart";
const NO_SERVER: &str =
    "loadline sees neither all processes of this machine nor those of the database, as in a container of its own";
const NO_LIMITS: &str = "the control groups of the process or their CPU limit could not be read";
const NO_PRESSURE: &str = "the kernel keeps no pressure stall information (/proc/pressure)";

/// Shorter windows have no shares, as of a job that fails at once.
const SHORTEST_S: f64 = 0.1;
const TOO_SHORT: &str = "the window was shorter than 0.1 s, and CPU time is counted in ticks of 10 ms";

/// Fewer samples of the server's sessions say nothing.
const MIN_SAMPLES: u32 = 10;
/// Most CPU time of processes whose I/O cannot be read, as a share of the window.
const IO_UNREAD: f64 = 0.01;

/// Figures of others in the window of jobs.
pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    if all_ended_early(e.measured) {
        // What others used of a window that nobody worked in says nothing.
        return DISTURBANCES.iter().for_each(|kind| out.set_absent(kind.column, ENDED_EARLY));
    }
    let Some(around) = &e.measured.around else { return };
    let util = [column::DEVICE_UTIL_PCT, column::DATA_DEVICE_UTIL_PCT].into_iter().filter_map(|c| out.figure(c));
    let util_pct = util.reduce(f64::max);
    shares(out, around, e.rates.cpu.map(|s| s.steal_pct), util_pct);
    confined(out, e.request, &around.readings);
    let of_others = |c: &Counters<'_>| {
        let grown = |name| c.grown_on_time(name);
        Some(grown(counter::OTHER_SESSIONS_CPU_NS)? / grown(counter::OTHER_SESSIONS_AT_NS).filter(|ns| *ns > 0.0)?)
    };
    sessions(out, around, &e.measured.waits(), e.counters.as_ref().ok().and_then(of_others));
}

/// Figures between two readings. `steal_pct`: of the database's machine, if known; `device_util_pct`: of the devices of log and data.
pub(crate) fn shares(out: &mut Test, around: &Around, steal_pct: Option<f64>, device_util_pct: Option<f64>) {
    let [a, b] = &around.readings;
    let seconds = b.at_ns.saturating_sub(a.at_ns) as f64 / 1e9;
    let is_long = seconds >= SHORTEST_S;
    let unless_short = |why| if is_long { why } else { TOO_SHORT };
    let processes = if is_long { a.processes.as_ref().zip(b.processes.as_ref()) } else { None };
    match processes.map(|(a, b)| a.used_until(b, &around.own, &around.server)) {
        Some(used) => {
            other_io(out, &used, seconds, device_util_pct);
            others(out, &Machine { readings: [a, b], seconds }, used);
        }
        None => {
            let why = unless_short("the processes of this machine could not be read");
            out.set_all_absent(&[column::OTHER_CPU_PCT, column::UNKNOWN_CPU_PCT, column::OTHER_IO_PCT], why);
        }
    }
    let own = CpuShares::between(&sum(&a.cpus), &sum(&b.cpus)).map(|s| s.steal_pct);
    let steal = own.into_iter().chain(steal_pct).reduce(f64::max);
    let steal = if is_long { steal } else { None };
    out.set_or_absent(column::CPU_STEAL_PCT, steal, unless_short("/proc/stat could not be read"));
    // A CPU that came or went in between has no time of the window.
    let hot_ms = b.thermal_ms.iter().filter_map(|(cpu, ms)| ms.checked_sub(*a.thermal_ms.get(cpu)?)).max();
    let thermal = if is_long { hot_ms.map(|ms| ms as f64 / 10.0 / seconds) } else { None };
    let why = "the kernel does not time thermal throttling here (virtual machine, or Linux before 5.6)";
    out.set_or_absent(column::THERMAL_THROTTLED_PCT, thermal, unless_short(why));
    let frequency = a.frequency_pct.zip(b.frequency_pct).map(|(a, b)| f64::midpoint(a, b));
    out.set_or_absent(column::CPU_FREQUENCY_PCT, frequency, "the kernel does not show the CPUs' frequency here");
    pressure(out, [a, b], seconds, unless_short(NO_PRESSURE));
}

/// Figures of the sessions of others on the server. `busy_cpus`: CPUs that those that were seen kept busy.
pub(crate) fn sessions(out: &mut Test, around: &Around, waits: &WaitProfile, busy_cpus: Option<f64>) {
    let others = if waits.samples >= MIN_SAMPLES { waits.others } else { None };
    let others_pct = others.map(|n| 100.0 * n as f64 / f64::from(waits.samples));
    let why = "sessions of others on this database are not sampled, or loadline may not see them";
    out.set_or_absent(column::OTHER_SESSIONS_PCT, others_pct, why);
    let b = &around.readings[1];
    let cpus = allowed(b.server.as_ref().unwrap_or(&b.loadline), &b.online()).len().max(1);
    let cpu_pct = busy_cpus.map(|busy| 100.0 * busy / cpus as f64);
    let why =
        "the processes or threads of others' sessions are unknown, on another machine, or loadline may not see them";
    out.set_or_absent(column::OTHER_SESSIONS_CPU_PCT, cpu_pct, why);
}

/// The CPUs of `online` that `side` may use; all if that is unknown.
fn allowed(side: &Confined, online: &Cpus) -> Cpus {
    match &side.allowed {
        Some(allowed) if !allowed.is_disjoint(online) => allowed.intersection(online).copied().collect(),
        _ => online.clone(),
    }
}

struct Machine<'a> {
    readings: [&'a Surroundings; 2],
    seconds: f64,
}

impl Machine<'_> {
    /// CPU seconds that were neither idle nor stolen on `cpus`. Idle time is exact; the rest is counted in whole ticks.
    fn busy_s(&self, cpus: &Cpus) -> f64 {
        let at = |reading: &Surroundings| {
            let of = |cpu| reading.cpus.get(cpu).map_or(0, |c: &CpuTimes| c.idle + c.iowait + c.steal);
            cpus.iter().map(of).sum::<u64>() as f64 / TICKS_PER_S
        };
        (self.seconds * cpus.len() as f64 - (at(self.readings[1]) - at(self.readings[0]))).max(0.0)
    }

    /// Share that others had for `others_s` of the CPUs that loadline, or the database, may use, %: the larger one. If a side
    /// may not use all, nothing tells on which CPUs the others were: as many as fit beside the sides count.
    fn share_pct(&self, used: &Used, others_s: f64) -> f64 {
        let [_, b] = self.readings;
        let online = b.online();
        let sides: Vec<(Cpus, f64)> = std::iter::once((allowed(&b.loadline, &online), used.loadline_s))
            .chain(b.server.as_ref().map(|server| (allowed(server, &online), used.server_s)))
            .collect();
        let share = |(cpus, _): &(Cpus, f64)| {
            let own_s: f64 = sides.iter().filter(|(other, _)| other.is_subset(cpus)).map(|(_, s)| s).sum();
            // What one that ended had used before counts for the process that waited for it: more than all CPUs may have been busy.
            let at_most = if *cpus == online { self.busy_s(cpus) } else { (self.busy_s(cpus) - own_s).max(0.0) };
            100.0 * others_s.min(at_most) / (cpus.len().max(1) as f64 * self.seconds)
        };
        sides.iter().map(share).fold(0.0, f64::max)
    }
}

fn others(out: &mut Test, machine: &Machine<'_>, mut used: Used) {
    let busy_s = machine.busy_s(&machine.readings[1].online());
    used.limit_others(busy_s - used.loadline_s - used.server_s);
    out.others = used.names(machine.seconds);
    if used.all_seen {
        out.set(column::OTHER_CPU_PCT, machine.share_pct(&used, used.others_s));
    } else if used.server_seen {
        out.set_absent(column::OTHER_CPU_PCT, CONTAINER);
    } else {
        return out.set_all_absent(&[column::OTHER_CPU_PCT, column::UNKNOWN_CPU_PCT], NO_SERVER);
    }
    // If all are seen, what is left are processes that ended and that nobody waited for.
    let seen_s = if used.all_seen { used.others_s + used.kernel_s } else { 0.0 };
    let [a, b] = machine.readings.map(|r| sum(&r.cpus));
    let irq_s = b.irq.saturating_sub(a.irq) as f64 / TICKS_PER_S;
    let unknown_s = busy_s - irq_s - used.loadline_s - used.server_s - seen_s;
    out.set(column::UNKNOWN_CPU_PCT, machine.share_pct(&used, unknown_s.max(0.0)));
}

fn other_io(out: &mut Test, used: &Used, seconds: f64, device_util_pct: Option<f64>) {
    let why = match device_util_pct {
        None => "the devices of log and data are unknown or on another machine",
        _ if !used.all_seen => "loadline does not see all processes, as in a container of its own",
        // Without CPU time there was no I/O.
        _ if !used.as_root && used.io_unread_s > IO_UNREAD * seconds => {
            "the I/O of other users' processes can only be read by root"
        }
        Some(util_pct) => {
            let share = used.others_io_bytes as f64 / (used.io_bytes as f64).max(1.0);
            out.notes.extend(left_out(used, seconds));
            return out.set(column::OTHER_IO_PCT, util_pct * share);
        }
    };
    out.set_absent(column::OTHER_IO_PCT, why);
}

/// Processes whose I/O not even root may read, as that of process 1 in some containers.
fn left_out(used: &Used, seconds: f64) -> Option<Note> {
    let is_much = used.io_unread_s > IO_UNREAD * seconds;
    let (name, _) = if is_much { used.io_unread.as_ref()? } else { return None };
    Some(Note::OtherIoUnread { process: name.clone(), cpu_pct: 100.0 * used.io_unread_s / seconds })
}

pub(crate) fn confined(out: &mut Test, request: &Request, [a, b]: &[Surroundings; 2]) {
    let online = b.cpus.len();
    let allowed = if online > 0 { b.loadline.allowed.as_ref() } else { None };
    let withheld = allowed.map(|allowed| {
        let usable = allowed.iter().filter(|cpu| b.cpus.contains_key(cpu)).count();
        100.0 * (online - usable) as f64 / online as f64
    });
    out.set_or_absent(column::CPU_WITHHELD_PCT, withheld, "the CPU affinity could not be read");
    let limit = b.loadline.limit.as_ref();
    let why = if limit.is_some() { "no CPU limit" } else { NO_LIMITS };
    out.set_or_absent(column::CPU_LIMIT, limit.and_then(|l| l.cpus), why);
    let throttled =
        |a: Option<&Confined>, b: Option<&Confined>| Some(a?.limit.as_ref()?.throttled_pct(b?.limit.as_ref()?));
    let own = throttled(Some(&a.loadline), Some(&b.loadline));
    let server = throttled(a.server.as_ref(), b.server.as_ref());
    let (client, database, why) = match request.target.facts().runs {
        Runs::InProcess => (None, own, "the database runs inside the loadline process: see database_throttled_pct"),
        Runs::Nowhere => (own, None, NO_LIMITS),
        Runs::Apart => (own, server, NO_LIMITS),
    };
    out.set_or_absent(column::CLIENT_THROTTLED_PCT, client, why);
    let no_server = match request.cpu {
        CpuSource::Local => "the processes of the database are unknown, or their control groups could not be read",
        _ => "the database runs on another machine",
    };
    out.set_or_absent(column::DATABASE_THROTTLED_PCT, database, no_server);
}

fn pressure(out: &mut Test, [a, b]: [&Surroundings; 2], seconds: f64, why: &str) {
    const COLUMNS: [(&Column, Option<&Column>); 3] = [
        (column::CPU_PRESSURE_PCT, None),
        (column::MEMORY_PRESSURE_PCT, Some(column::MEMORY_PRESSURE_FULL_PCT)),
        (column::IO_PRESSURE_PCT, Some(column::IO_PRESSURE_FULL_PCT)),
    ];
    let pct = |a: u64, b: u64| (b.saturating_sub(a) as f64 / 1e4 / seconds).min(100.0);
    for ((some, full), pressure) in COLUMNS.into_iter().zip(a.pressure.iter().zip(&b.pressure)) {
        let both = if seconds >= SHORTEST_S { pressure.0.zip(*pressure.1) } else { None };
        out.set_or_absent(some, both.map(|(a, b)| pct(a.some_us, b.some_us)), why);
        if let Some(full) = full {
            let us = both.and_then(|(a, b)| a.full_us.zip(b.full_us));
            out.set_or_absent(full, us.map(|(a, b)| pct(a, b)), why);
        }
    }
}

fn sum(cpus: &BTreeMap<u32, CpuTimes>) -> CpuTimes {
    cpus.values().fold(CpuTimes::default(), |sum, c| CpuTimes {
        user: sum.user + c.user,
        sys: sum.sys + c.sys,
        steal: sum.steal + c.steal,
        irq: sum.irq + c.irq,
        idle: sum.idle + c.idle,
        iowait: sum.iowait + c.iowait,
    })
}

/// Checks of the figures of others, by the thresholds of [`DISTURBANCES`].
pub(crate) fn undisturbed(test: &mut Test) {
    for kind in DISTURBANCES.iter() {
        let judged = test.known(kind.column).map(|pct| judge(kind, pct, test));
        test.judge(kind.check, judged);
    }
}

fn judge(kind: &Disturbance, pct: f64, figures: &Test) -> Verdict {
    // Names of processes that are seen say nothing about what is left beside them.
    let hidden = kind.column == column::UNKNOWN_CPU_PCT && figures.figure(column::OTHER_CPU_PCT).is_none();
    let of_cpu = kind.column == column::OTHER_CPU_PCT || hidden;
    let names =
        if of_cpu && !figures.others.is_empty() { format!(" (most: {})", figures.others) } else { String::new() };
    let disturbed = kind.disturbed_from.map_or(String::new(), |pct| format!(", disturbed from {pct} %"));
    let value = number(pct, if pct < 10.0 { 1 } else { 0 });
    let detail = format!("{} {value} %{names}; noted from {} %{disturbed}", kind.words, kind.noted_from);
    match pct {
        pct if kind.is_disturbing(pct) => failed(detail),
        pct if kind.is_noted(pct) => noted(detail),
        _ => passed(detail),
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::Outcome::{Failed, NotMade, Noted, Passed};
    use loadline_model::{Check, CheckId};

    use super::*;

    /// Two readings 2 s apart on 4 CPUs of which `busy` are busy.
    fn readings(busy: &[u32]) -> [Surroundings; 2] {
        let at = |seconds: u64| {
            let of = |cpu: u32| {
                let idle = if busy.contains(&cpu) { 0 } else { seconds * 100 };
                (cpu, CpuTimes { idle, user: seconds * 100 - idle, ..CpuTimes::default() })
            };
            Surroundings {
                at_ns: seconds * 1_000_000_000,
                processes: None,
                cpus: (0..4).map(of).collect(),
                pressure: [None; 3],
                thermal_ms: BTreeMap::new(),
                frequency_pct: None,
                loadline: Confined::default(),
                server: None,
                cost: Err(loadline_collect::os::CostUnknown::NoDatabase),
            }
        };
        [at(1), at(3)]
    }

    #[test]
    fn the_times_of_all_cpus_are_a_sum() {
        let of = |n: u64| CpuTimes { user: n, sys: 2 * n, steal: 3 * n, irq: 5 * n, idle: 7 * n, iowait: 11 * n };
        assert_eq!(sum(&[(0, of(2)), (7, of(10))].into()), of(12));
    }

    /// `other_cpu_pct` and `unknown_cpu_pct`, rounded, if loadline may use `allowed`, and the server `of_server`.
    fn shares_of(busy: &[u32], allowed: &[u32], of_server: Option<&[u32]>, used: &Used) -> [Option<f64>; 2] {
        let [a, mut b] = readings(busy);
        let [loadline, server] = [Some(allowed), of_server]
            .map(|cpus| cpus.map(|cpus| Confined { allowed: Some(cpus.iter().copied().collect()), limit: None }));
        (b.loadline, b.server) = (loadline.unwrap_or_default(), server);
        let mut out = Test::default();
        others(&mut out, &Machine { readings: [&a, &b], seconds: 2.0 }, used.clone());
        let columns = [column::OTHER_CPU_PCT, column::UNKNOWN_CPU_PCT];
        for column in columns {
            assert!(out.figure(column).is_some() != out.absence_reason(column).is_some(), "{column}");
        }
        columns.map(|c| out.figure(c).map(|pct| (pct * 1e9).round() / 1e9))
    }

    fn share(busy: &[u32], allowed: &[u32], of_server: Option<&[u32]>, used: &Used) -> Option<f64> {
        shares_of(busy, allowed, of_server, used)[0]
    }

    const ALL: &[u32] = &[0, 1, 2, 3];

    #[test]
    fn a_window_that_hardly_was_has_no_shares() {
        let unknown_pct = |length_ns: u64| {
            // All CPUs were busy: of a short window, because no tick of idle time ended in it.
            let mut readings = readings(ALL).map(|r| Surroundings { processes: Some(Default::default()), ..r });
            readings[1].at_ns = readings[0].at_ns + length_ns;
            let server = loadline_collect::os::Server::Inside;
            let around = Around { readings, server, own: Vec::new() };
            let mut out = Test::default();
            super::shares(&mut out, &around, Some(50.0), None);
            let columns = [column::UNKNOWN_CPU_PCT, column::CPU_STEAL_PCT];
            assert!(columns.iter().all(|c| out.figure(c).is_some() != out.absence_reason(c).is_some()));
            columns.map(|c| out.figure(c))
        };
        assert_eq!(unknown_pct(5_000_000), [None, None]);
        assert_eq!(unknown_pct(2_000_000_000)[1], Some(50.0));
    }

    #[test]
    fn the_cpus_that_loadline_may_use_count() {
        let used = |others_s: f64| Used { loadline_s: 0.9, others_s, all_seen: true, ..Used::default() };
        assert_eq!(share(&[0], ALL, None, &used(0.0)), Some(0.0));
        assert_eq!(share(&[0], ALL, None, &used(1.0)), Some(12.5), "of four CPUs");
        assert_eq!(share(ALL, ALL, None, &used(20.0)), Some(88.75), "no more than was busy beside loadline");
        // Pinned to a CPU that a loop shares: 1.1 of its 2 s.
        assert_eq!(share(&[0], &[0], None, &used(1.1)), Some(55.0));
        assert_eq!(share(&[1, 2, 3], &[0], None, &used(6.0)), Some(0.0), "on other CPUs than loadline's, nearly idle");
        // The database is pinned beside a loop; loadline may use all.
        let server = Used { server_s: 1.0, ..used(1.0) };
        assert_eq!(share(&[2, 3], ALL, Some(&[3]), &server), Some(50.0));
        let both = Used { server_s: 1.1, ..used(4.0) };
        assert_eq!(
            share(&[0, 2, 3], &[0], Some(&[0]), &both),
            Some(0.0),
            "others were not on the CPU that both keep busy"
        );
        // The whole life of a compiler that ended while processes were listed: no more than what the CPUs were busy with.
        assert_eq!(share(&[0], ALL, None, &used(40.0)), Some(13.75));
    }

    #[test]
    fn what_a_container_hides_or_ended_unseen_is_unknown_and_not_nothing() {
        let hidden = |server_seen| Used { loadline_s: 1.0, server_s: 1.0, server_seen, ..Used::default() };
        assert_eq!(shares_of(&[0, 1], ALL, None, &hidden(true)), [None, Some(25.0)], "two of four busy seconds");
        assert_eq!(shares_of(&[0, 1], ALL, None, &hidden(false)), [None, None], "it may be the database");
        // Four busy seconds: loadline's, another process's, the kernel's, and one of processes that nobody waited for.
        let used = Used { loadline_s: 1.0, others_s: 1.0, kernel_s: 1.0, all_seen: true, ..Used::default() };
        assert_eq!(shares_of(&[0, 1], ALL, None, &used), [Some(12.5), Some(12.5)]);
        let all = Used { others_s: 2.5, ..used };
        assert_eq!(shares_of(&[0, 1], ALL, None, &all)[1], Some(0.0), "never less than nothing");
    }

    #[test]
    fn the_device_is_busy_for_others_by_their_share_of_bytes() {
        let of = |used: Used, util| {
            let mut out = Test::default();
            other_io(&mut out, &used, 2.0, util);
            (out.figure(column::OTHER_IO_PCT), out.absence_reason(column::OTHER_IO_PCT).is_some())
        };
        let used = |bytes, others| Used { io_bytes: bytes, others_io_bytes: others, all_seen: true, ..Used::default() };
        assert_eq!(of(used(1000, 250), Some(80.0)), (Some(20.0), false));
        assert_eq!(of(used(0, 0), Some(80.0)), (Some(0.0), false));
        assert_eq!(of(Used { io_unread_s: 0.01, ..used(1000, 250) }, Some(80.0)), (Some(20.0), false));
        let unread = Used { io_unread_s: 0.03, io_unread: Some(("init".into(), 0.03)), ..used(1000, 250) };
        let unknown = [Used { all_seen: false, ..used(1, 1) }, unread.clone()];
        unknown.into_iter().for_each(|used| assert_eq!(of(used, Some(1.0)), (None, true)));
        assert_eq!(of(used(1, 1), None), (None, true));
        // What even root may not read is left out, and said.
        let as_root = Used { as_root: true, ..unread };
        assert_eq!(of(as_root.clone(), Some(80.0)), (Some(20.0), false));
        assert!(
            matches!(left_out(&as_root, 2.0), Some(Note::OtherIoUnread { process, .. }) if process == "init")
                && left_out(&used(1, 1), 2.0).is_none()
        );
    }

    #[test]
    fn each_kind_is_noted_and_disturbing_from_its_thresholds_on() {
        for kind in DISTURBANCES.iter() {
            let of = |pct| judge(kind, pct, &Test::default()).outcome;
            assert_eq!([kind.noted_from - 0.01, kind.noted_from].map(of), [Passed, Noted], "{kind:?}");
            match kind.disturbed_from {
                Some(from) => assert_eq!([from - 0.01, from].map(of), [Noted, Failed], "{kind:?}"),
                None => assert_eq!(of(100.0), Noted, "{kind:?}"),
            }
        }
        let mut test = crate::testing::figures(&[(column::OTHER_CPU_PCT, 45.3)]);
        test.others = "yes 0.88 CPUs".to_owned();
        undisturbed(&mut test);
        let of_others = |check: &&Check| check.id == CheckId::OtherCpu;
        let (others, unread): (Vec<&Check>, Vec<&Check>) = test.checks.iter().partition(of_others);
        for part in ["other processes on the CPU 45 % (most: yes 0.88 CPUs)", "noted from 5 %", "disturbed from 20 %"] {
            assert!(others[0].detail.contains(part), "{part}: {others:?}");
        }
        assert!(unread.iter().all(|c| c.outcome == NotMade), "what was not read passes nothing: {unread:?}");
    }
}
