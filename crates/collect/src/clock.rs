//! The monotonic clock of all times in ns.

use std::time::Duration;

use loadline_storage::now_ns;

/// Time until `at_ns`; zero if it is past.
pub fn until(at_ns: u64) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(now_ns()))
}

/// Most attempts at a reading.
const ATTEMPTS: usize = 3;

/// Repeats `read`, which returns how long it took, ns, and a value, while `disturbed` says of that time that the reader waited
/// for a CPU; at most twice. Returns the shortest.
pub fn least_disturbed<T>(disturbed: impl Fn(u64) -> bool, mut read: impl FnMut() -> (u64, T)) -> (u64, T) {
    let mut best = read();
    for _ in 1..ATTEMPTS {
        if !disturbed(best.0) {
            break;
        }
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_runs_back_and_is_shared_by_threads() {
        let before = now_ns();
        let there = std::thread::spawn(now_ns).join().unwrap();
        let after = now_ns();
        assert!(before <= there && there <= after);
        assert_eq!(until(before), Duration::ZERO);
        let left = until(now_ns() + 1_000_000_000);
        assert!(left > Duration::from_millis(900) && left <= Duration::from_secs(1));
    }
}
