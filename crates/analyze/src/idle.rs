//! Whether a log is flushed by time: commit time over the time since the last change, of transactions of one size.

use loadline_model::limits::SizePoint;

use crate::stats::median;

/// Highest share of the commit time without idle time that the longest idle time may leave, if the log is flushed by time.
const FELL: f64 = 0.7;

/// Shape of commit times over idle times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlushByTime {
    /// The log is flushed by then, s: from there on commits take less than half-way between those without idle time and those with the longest.
    Within(f64),
    /// Commits are not shorter by 30 % after the longest idle time, s.
    NotUpTo(f64),
}

/// When the log is flushed by time. `None` if there is only one idle time.
pub fn flush_by_time(points: &[SizePoint]) -> Option<FlushByTime> {
    let time = |p: &SizePoint| median(&p.commit_ns.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
    let mut medians: Vec<(f64, f64)> = points.iter().filter_map(|p| Some((p.idle_s, time(p)?))).collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ([(shortest_s, first), ..], [.., (longest_s, last)]) = (&medians[..], &medians[..]) else { return None };
    if shortest_s == longest_s {
        return None;
    }
    if *last > FELL * first {
        return Some(FlushByTime::NotUpTo(*longest_s));
    }
    let is_high = |(_, ns): &(f64, f64)| *ns >= f64::midpoint(*first, *last);
    // The first is high, and the last is not.
    let high = medians.iter().rposition(is_high)?;
    Some(FlushByTime::Within(medians.get(high + 1)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_flushed_by_time_is_found_between_two_idle_times() {
        let of = |times: &[(f64, u64)]| {
            let point = |(idle_s, ms): &(f64, u64)| SizePoint {
                redo_bytes: 1e6,
                idle_s: *idle_s,
                commit_ns: vec![ms * 1_000_000; 5],
                write_ns: vec![1; 5],
            };
            flush_by_time(&times.iter().map(point).collect::<Vec<_>>())
        };
        let by_time = [(5.0, 2), (0.0, 20), (0.1, 21), (1.0, 3), (0.5, 18)];
        assert_eq!(of(&by_time), Some(FlushByTime::Within(1.0)), "in any order");
        // One that is short by chance is no flush if later ones are long again.
        let chance = [(0.0, 20), (0.1, 4), (0.5, 19), (1.0, 3)];
        assert_eq!(of(&chance), Some(FlushByTime::Within(1.0)));
        assert_eq!(of(&[(0.0, 20), (1.0, 15), (5.0, 18)]), Some(FlushByTime::NotUpTo(5.0)));
        assert_eq!([of(&[(0.0, 20)]), of(&[(1.0, 20), (1.0, 2)]), of(&[])], [None; 3]);
    }
}
