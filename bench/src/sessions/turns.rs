//! How evenly a contender serves its sessions: how many times the server's were given a CPU.

use std::collections::BTreeMap;
use std::fs;

/// Times that each task of a server was given a CPU.
pub(super) type Turns = BTreeMap<String, u64>;

/// Those of all servers whose process has this name, from `/proc/PID/task/TID/schedstat` (kernel:
/// Documentation/scheduler/sched-stats.rst).
pub(super) fn turns(name: &str) -> Turns {
    let entries = |path: String| fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path());
    let servers = entries("/proc".to_owned())
        .filter(|process| fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim_end() == name));
    let tasks = servers.flat_map(|process| entries(process.join("task").display().to_string()));
    let of = |task: std::path::PathBuf| {
        let turns = fs::read_to_string(task.join("schedstat")).ok()?.split_whitespace().nth(2)?.parse().ok()?;
        Some((task.file_name()?.to_str()?.to_owned(), turns))
    };
    tasks.filter_map(of).collect()
}

/// Share of the turns between two readings that the busiest tenth of `sessions` had: 0.1 if all are served alike. `None` if the
/// server has not so many tasks.
pub(super) fn busiest_tenth([before, after]: [&Turns; 2], sessions: u32) -> Option<f64> {
    let since = |(task, turns): (&String, &u64)| turns.saturating_sub(before.get(task).copied().unwrap_or(0));
    let mut each: Vec<u64> = after.iter().map(since).collect();
    // The server's own tasks have the fewest.
    each.sort_unstable_by(|a, b| b.cmp(a));
    let each = each.get(..sessions as usize)?;
    let sum = |of: &[u64]| of.iter().sum::<u64>() as f64;
    let busiest = each.get(..each.len() / 10)?;
    Some(sum(busiest) / sum(each)).filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_tenth_of_sessions_is_found_among_tasks_of_the_server() {
        let of = |each: [u64; 12]| each.iter().enumerate().map(|(n, turns)| (n.to_string(), *turns)).collect::<Turns>();
        let before = of([5; 12]);
        // Ten sessions and two tasks of the server; one session has half of all turns.
        let after = of([15, 15, 15, 95, 15, 15, 6, 15, 5, 15, 15, 15]);
        assert_eq!(busiest_tenth([&before, &after], 10), Some(0.5));
        assert_eq!(busiest_tenth([&before, &before], 10), None);
        assert_eq!(busiest_tenth([&before, &after], 100), None);
    }
}
