//! Limits of a process's CPUs: its affinity, CPU limits of control groups, heat, and pressure stall information
//! (kernel: Documentation/accounting/psi.rst).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use loadline_storage::groups_in;

pub type Cpus = BTreeSet<u32>;

/// The CPUs that the process `id` may use: `Cpus_allowed_list` of `/proc/ID/status`.
pub fn allowed(id: u32) -> Option<Cpus> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|l| list(l.strip_prefix("Cpus_allowed_list:")?.trim()))
}

/// Parses `0-3,8`.
fn list(text: &str) -> Option<Cpus> {
    let mut all = Cpus::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // The kernel knows no more CPUs than this.
        all.extend(first..=last.min(first.saturating_add(1 << 16)));
    }
    Some(all)
}

/// CPU limit of the control group of a process and of those above it: one may be inside another.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuLimit {
    /// The lowest limit, CPUs; `None` without one.
    pub cpus: Option<f64>,
    /// Of each group with a limit: periods, and those in which it was used up.
    periods: Vec<(PathBuf, [u64; 2])>,
}

impl CpuLimit {
    /// Reads that of the process `id`; `None` if its control groups cannot be read.
    pub fn for_process(id: u32) -> Option<CpuLimit> {
        CpuLimit::under(Path::new("/"), id)
    }

    fn under(root: &Path, id: u32) -> Option<CpuLimit> {
        let groups = std::fs::read_to_string(root.join(format!("proc/{id}/cgroup"))).ok()?;
        let mut found = None;
        for group in groups_in(&groups, root, "cpu") {
            let Some([periods, throttled]) = periods(&group) else { continue };
            let limit: &mut CpuLimit = found.get_or_insert_default();
            if let Some(cpus) = quota(&group) {
                limit.cpus = Some(limit.cpus.map_or(cpus, |lowest| lowest.min(cpus)));
                limit.periods.push((group, [periods, throttled]));
            }
        }
        found
    }

    /// The largest share of the periods until `later` in which a limit was used up, %. Without a limit 0: nothing stopped it.
    pub fn throttled_pct(&self, later: &CpuLimit) -> f64 {
        let share = |(path, [periods, throttled]): &(PathBuf, [u64; 2])| {
            let (_, [now, now_throttled]) = later.periods.iter().find(|(p, _)| p == path)?;
            let all = now.checked_sub(*periods).filter(|n| *n > 0)?;
            Some(100.0 * now_throttled.saturating_sub(*throttled) as f64 / all as f64)
        };
        self.periods.iter().filter_map(share).fold(0.0, f64::max)
    }
}

/// Periods of the limit of a control group, and those in which it was used up, from `cpu.stat`.
fn periods(group: &Path) -> Option<[u64; 2]> {
    let text = std::fs::read_to_string(group.join("cpu.stat")).ok()?;
    let of = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok());
    // The root of version 2 has no limit, and no such lines.
    Some([of("nr_periods").unwrap_or(0), of("nr_throttled").unwrap_or(0)])
}

/// Limit of a control group, CPUs: `cpu.max`, or `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1.
fn quota(group: &Path) -> Option<f64> {
    let text = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let text = match text("cpu.max") {
        Some(both) => both,
        None => format!("{} {}", text("cpu.cfs_quota_us")?.trim(), text("cpu.cfs_period_us")?.trim()),
    };
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    // `max`, and -1 in version 1: no limit.
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// A number in a file of `cpu`.
fn of_cpu<T: FromStr>(cpu: u32, file: &str) -> Option<T> {
    std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/{file}")).ok()?.trim().parse().ok()
}

/// Time in which each CPU, or its package, ran slower because it was too hot, ms. Not of CPUs whose time is unknown.
pub fn thermal_ms(cpus: &Cpus) -> BTreeMap<u32, u64> {
    let of = |cpu, what| of_cpu(cpu, &format!("thermal_throttle/{what}_throttle_total_time_ms"));
    cpus.iter().filter_map(|cpu| Some((*cpu, of(*cpu, "core").max(of(*cpu, "package"))?))).collect()
}

/// Current frequency of the fastest CPU, as a share of its highest, %.
pub fn frequency_pct(cpus: &Cpus) -> Option<f64> {
    let khz = |cpu, file| of_cpu::<f64>(cpu, file).filter(|khz| *khz > 0.0);
    let share =
        |cpu: &u32| Some(100.0 * khz(*cpu, "cpufreq/scaling_cur_freq")? / khz(*cpu, "cpufreq/cpuinfo_max_freq")?);
    cpus.iter().filter_map(share).reduce(f64::max)
}

/// Time since boot in which tasks waited for one resource, µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some task waited.
    pub some_us: u64,
    /// All tasks that were not idle waited.
    pub full_us: Option<u64>,
}

impl Pressure {
    /// That of `resource` (`cpu`, `memory` or `io`) on this machine, if the kernel keeps it.
    pub(crate) fn local(resource: &str) -> Option<Pressure> {
        Pressure::parse(&std::fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?)
    }

    /// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` and the same with `full`.
    fn parse(text: &str) -> Option<Pressure> {
        let total = |kind: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(kind))?;
            line.split_whitespace().find_map(|field| field.strip_prefix("total=")?.parse().ok())
        };
        Some(Pressure { some_us: total("some ")?, full_us: total("full ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(list("0-2,8"), Some(Cpus::from([0, 1, 2, 8])));
        assert_eq!(list("5"), Some(Cpus::from([5])));
        for wrong in ["", "a", "1-", "-1", "1,,2"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
        assert!(!allowed(std::process::id()).unwrap().is_empty());
        assert_eq!(allowed(u32::MAX), None);
    }

    #[test]
    fn the_limit_of_a_container_and_those_around_it_count() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let limit = || CpuLimit::under(root.path(), 5);
        assert_eq!(limit(), None, "nothing to read");
        put("proc/5/cgroup", "0::/a/b\n");
        assert_eq!(limit(), None, "no controller of the CPU");
        put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        put("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 0\nnr_throttled 0\n");
        put("sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
        let free = limit().unwrap();
        assert_eq!((free.cpus, free.throttled_pct(&free)), (None, 0.0));
        put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        put("sys/fs/cgroup/a/cpu.stat", "nr_periods 10\nnr_throttled 2\nthrottled_usec 5\n");
        let before = limit().unwrap();
        put("sys/fs/cgroup/a/cpu.stat", "nr_periods 50\nnr_throttled 12\nthrottled_usec 5\n");
        assert_eq!((before.cpus, before.throttled_pct(&limit().unwrap())), (Some(1.5), 25.0));
        // Version 1, beside an empty version 2.
        put("proc/5/cgroup", "3:cpu,cpuacct:/v1\n0::/\n");
        put("sys/fs/cgroup/cpu/v1/cpu.cfs_quota_us", "-1\n");
        put("sys/fs/cgroup/cpu/v1/cpu.cfs_period_us", "100000\n");
        put("sys/fs/cgroup/cpu/v1/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
        assert_eq!(limit().unwrap().cpus, None);
        put("sys/fs/cgroup/cpu/v1/cpu.cfs_quota_us", "50000\n");
        assert_eq!(limit().unwrap().cpus, Some(0.5));
    }

    #[test]
    fn totals_are_read() {
        let text =
            "some avg10=1.00 avg60=0.00 avg300=0.00 total=500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n";
        assert_eq!(Pressure::parse(text), Some(Pressure { some_us: 500, full_us: Some(20) }));
        assert_eq!(Pressure::parse("some total=7\n"), Some(Pressure { some_us: 7, full_us: None }));
        assert_eq!((Pressure::parse(""), Pressure::parse("some total=x")), (None, None));
    }
}
