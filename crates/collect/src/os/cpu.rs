//! CPU time of a machine, from `/proc/stat` (proc_stat(5)).

use std::collections::BTreeMap;

use crate::{CollectError, read};

/// CPU time of a machine since boot, in ticks (`USER_HZ`), summed over its CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User mode, `user` + `nice` (both include guests).
    pub user: u64,
    /// Kernel: `system` + `irq` + `softirq` + `steal`.
    pub sys: u64,
    /// The part of `sys` stolen by the hypervisor.
    pub steal: u64,
    /// The part of `sys` in interrupts: `irq` + `softirq`.
    pub irq: u64,
    /// Idle with no I/O outstanding.
    pub idle: u64,
    /// Idle with I/O outstanding.
    pub iowait: u64,
}

impl CpuTimes {
    /// Parses `/proc/stat` of this or another machine. Its first line, `cpu  …`, is enough; fields that an old kernel lacks
    /// count as 0.
    pub fn parse(text: &str) -> Result<CpuTimes, CollectError> {
        let wrong = |what: String| CollectError::Format { file: "/proc/stat", what };
        let line =
            text.lines().find_map(|l| l.strip_prefix("cpu ")).ok_or_else(|| wrong("no line 'cpu'".to_owned()))?;
        CpuTimes::of_line(line)
    }

    fn of_line(line: &str) -> Result<CpuTimes, CollectError> {
        let wrong = |what: String| CollectError::Format { file: "/proc/stat", what };
        let fields: Vec<u64> = line
            .split_whitespace()
            .map(|f| f.parse().map_err(|_| wrong(format!("'{f}' is not a number of ticks"))))
            .collect::<Result<_, _>>()?;
        // user nice system idle iowait irq softirq steal guest guest_nice
        let &[user, nice, system, idle, ref rest @ ..] = fields.as_slice() else {
            return Err(wrong(format!("its line 'cpu' has {} fields, at least 4 were expected", fields.len())));
        };
        let at = |i: usize| rest.get(i).copied().unwrap_or(0);
        let sum = |values: &[u64]| values.iter().fold(0u64, |a, b| a.saturating_add(*b));
        Ok(CpuTimes {
            user: sum(&[user, nice]),
            sys: sum(&[system, at(1), at(2), at(3)]),
            steal: at(3),
            irq: sum(&[at(1), at(2)]),
            idle,
            iowait: at(0),
        })
    }

    pub fn local() -> Result<CpuTimes, CollectError> {
        CpuTimes::parse(&read("/proc/stat")?)
    }

    /// CPU time of each CPU of this machine that is online.
    pub fn of_each() -> Result<BTreeMap<u32, CpuTimes>, CollectError> {
        let text = read("/proc/stat")?;
        // `cpu3 …`; the line of all has no number.
        let cpus = text.lines().filter_map(|l| {
            let (id, rest) = l.strip_prefix("cpu")?.split_once(' ')?;
            Some((id.parse().ok()?, CpuTimes::of_line(rest)))
        });
        cpus.map(|(id, times)| Ok((id, times?))).collect()
    }
}

/// CPU time of a machine between two moments, in percent of all CPUs. `user + sys + idle + iowait` is 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuShares {
    /// `user + sys`.
    pub busy_pct: f64,
    pub user_pct: f64,
    pub sys_pct: f64,
    pub idle_pct: f64,
    pub iowait_pct: f64,
    pub steal_pct: f64,
}

impl CpuShares {
    /// Shares from `a` to the later `b`. `None` if no tick passed or the machine was restarted.
    pub fn between(a: &CpuTimes, b: &CpuTimes) -> Option<CpuShares> {
        let (user, sys) = (b.user.checked_sub(a.user)?, b.sys.checked_sub(a.sys)?);
        // proc_stat(5): idle and iowait are estimates that can decrease a little.
        let (idle, iowait) = (b.idle.saturating_sub(a.idle), b.iowait.saturating_sub(a.iowait));
        let steal = b.steal.saturating_sub(a.steal).min(sys);
        let total = user as f64 + sys as f64 + idle as f64 + iowait as f64;
        let pct = |ticks: u64| 100.0 * ticks as f64 / total;
        (total > 0.0).then(|| CpuShares {
            busy_pct: pct(user) + pct(sys),
            user_pct: pct(user),
            sys_pct: pct(sys),
            idle_pct: pct(idle),
            iowait_pct: pct(iowait),
            steal_pct: pct(steal),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 20 30 400 50 6 7 8 90 0\ncpu0 100 20 30 400 50 6 7 8 90 0\nintr 5 1\nctxt 1\n";

    #[test]
    fn fields_are_added_up_as_documented_and_anything_else_is_refused() {
        let times = CpuTimes::parse(STAT).unwrap();
        assert_eq!(times, CpuTimes { user: 120, sys: 30 + 6 + 7 + 8, steal: 8, irq: 13, idle: 400, iowait: 50 });
        // An old kernel, and a text cut to its first line by a server.
        let old = CpuTimes::parse("cpu 1 2 3 4").unwrap();
        assert_eq!(old, CpuTimes { user: 3, sys: 3, steal: 0, irq: 0, idle: 4, iowait: 0 });
        for (text, what) in
            [("", "no line"), ("cpu0 1 2 3 4\n", "no line"), ("cpu  1 2 x 4\n", "'x'"), ("cpu  1 2\n", "2 fields")]
        {
            let error = CpuTimes::parse(text).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("/proc/stat"), "{error}");
        }
        assert!(CpuTimes::parse(&format!("cpu {0} {0} {0} {0} {0} {0} {0} {0}", u64::MAX)).is_ok());
    }

    #[test]
    fn shares_are_of_the_whole() {
        let a = CpuTimes { user: 100, sys: 50, steal: 5, irq: 0, idle: 800, iowait: 50 };
        let b = CpuTimes { user: 130, sys: 60, steal: 7, irq: 0, idle: 855, iowait: 55 };
        let s = CpuShares::between(&a, &b).unwrap();
        assert_eq!((s.user_pct, s.sys_pct, s.idle_pct, s.iowait_pct), (30.0, 10.0, 55.0, 5.0));
        assert_eq!((s.busy_pct, s.steal_pct), (40.0, 2.0));
        assert_eq!(CpuShares::between(&a, &a), None);
        assert_eq!(CpuShares::between(&b, &a), None, "a restart is no share");
        let iowait_ran_back = CpuTimes { iowait: 49, ..b };
        assert_eq!(CpuShares::between(&a, &iowait_ran_back).unwrap().iowait_pct, 0.0);
    }

    #[test]
    fn the_cpus_of_this_machine_add_up() {
        let (all, each) = (CpuTimes::local().unwrap(), CpuTimes::of_each().unwrap());
        assert!(!each.is_empty() && each.values().map(|c| c.user).sum::<u64>() >= all.user / 2, "{each:?}");
    }
}
