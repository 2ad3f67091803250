//! Tasks of the operating system (processes or threads) that run jobs: their CPU time, and what they wait for.

use loadline_database::machine::{runs_command, task_times_ns};
use loadline_storage::now_ns;

use crate::read;

/// A reading that took longer, ns, is repeated: its reader had to wait for a CPU, so its time is uncertain.
const DISTURBED_NS: u64 = 200_000;

const ATTEMPTS: usize = 3;

/// Most tasks whose state is read at a time, so that samples stay cheap with many jobs.
const SAMPLED: usize = 16;

/// Tasks of this machine, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tasks(Vec<u32>);

impl Tasks {
    /// The tasks `ids`, if all exist and their command lines hold one of `commands`. The ids come from a server, which may
    /// run in a container with ids of its own: other tasks of this machine then have these ids, or none.
    pub fn of_command(ids: Vec<u32>, commands: &[&str]) -> Option<Tasks> {
        (!ids.is_empty() && ids.iter().all(|id| runs_command(*id, commands))).then_some(Tasks(ids))
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    pub fn own(ids: Vec<u32>) -> Tasks {
        Tasks(ids)
    }

    /// The state of some of the tasks, in turn by the `number` of the sample.
    pub(crate) fn states(&self, number: usize) -> TaskStates {
        let first = number.wrapping_mul(SAMPLED) % self.0.len().max(1);
        let mut states = TaskStates::default();
        for id in self.0.iter().cycle().skip(first).take(self.0.len().min(SAMPLED)) {
            // A task that has ended is in no state.
            let Some(state) = read(format!("/proc/{id}/stat")).ok().as_deref().and_then(state) else { continue };
            states.seen += 1;
            states.in_io += u32::from(state == 'D');
        }
        states
    }
}

/// The state in `/proc/TID/stat`: the letter after the name in brackets, which may hold any character.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// States of tasks at one moment, or summed over samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskStates {
    /// Tasks whose state was read.
    pub seen: u32,
    /// Those in uninterruptible sleep (`D`): in I/O, as a rule.
    pub in_io: u32,
}

/// CPU time of tasks since they started, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskTimes {
    pub run_ns: u64,
    /// Time ready to run, waiting for a CPU, ns. The kernel adds a wait when it ends.
    pub wait_ns: u64,
    /// When they were read, ns on [`now_ns`]: the mean over the tasks.
    pub at_ns: u64,
}

impl TaskTimes {
    /// Times of `tasks`. `None` if one has ended, or the kernel does not keep these statistics.
    pub fn read(tasks: &Tasks) -> Option<TaskTimes> {
        // Times of their own: a reader that waits for a CPU between two tasks reads the second late. The mean is exact
        // for a difference of two sums.
        let begin_ns = now_ns();
        let (mut sum, mut later_ns) = (TaskTimes::default(), 0);
        for id in &tasks.0 {
            let (at_ns, times) = timed(now_ns, || task_times_ns(*id));
            let [run_ns, wait_ns] = times?;
            sum.run_ns = sum.run_ns.saturating_add(run_ns);
            sum.wait_ns = sum.wait_ns.saturating_add(wait_ns);
            later_ns += at_ns.saturating_sub(begin_ns);
        }
        sum.at_ns = begin_ns + later_ns / (tasks.0.len().max(1) as u64);
        Some(sum)
    }
}

/// Result of `read` and when it was read by `clock`: the middle of the call. Repeats a call that took long.
pub(crate) fn timed<T>(mut clock: impl FnMut() -> u64, mut read: impl FnMut() -> T) -> (u64, T) {
    let once = || {
        let before = clock();
        let value = read();
        (clock().saturating_sub(before), (before, value))
    };
    let (took_ns, (before, value)) = least_disturbed(|took_ns| took_ns > DISTURBED_NS, once);
    (before + took_ns / 2, value)
}

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
    use std::sync::mpsc::TryRecvError;

    use super::*;

    #[test]
    fn the_state_follows_the_name() {
        assert_eq!(state("12 (a) D (b) S 1 2"), Some('S'));
        assert_eq!(state("12 (postgres) D 1 2"), Some('D'));
        assert_eq!(state("12 postgres D"), None);
    }

    #[test]
    fn a_reading_has_the_time_at_which_it_was_made() {
        // Each call of the clock returns the next time; the reading is the number of the attempt.
        let at = |times: &[u64]| {
            let (mut times, mut attempt) = (times.iter().copied(), 0);
            let read = || {
                attempt += 1;
                attempt
            };
            timed(move || times.next().unwrap(), read)
        };
        assert_eq!(at(&[1_000, 3_000]), (2_000, 1));
        assert_eq!(at(&[0, 50_000_000, 60_000_000, 60_002_000]), (60_001_000, 2), "the first reader lost its CPU");
        let thrice = [0, 50_000_000, 60_000_000, 70_000_000, 80_000_000, 120_000_000];
        assert_eq!(at(&thrice), (65_000_000, 2), "the shortest of three");
        let before = now_ns();
        let own = nix::unistd::gettid().as_raw() as u32;
        let seen = TaskTimes::read(&Tasks::own(vec![own; 3])).unwrap();
        assert!((before..=now_ns()).contains(&seen.at_ns), "{seen:?}");
    }

    #[test]
    fn a_busy_thread_is_on_cpu_and_a_sleeping_one_is_not() {
        let thread = |busy: bool| {
            let (send, own) = std::sync::mpsc::channel();
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            let handle = std::thread::spawn(move || {
                let _ = send.send(nix::unistd::gettid().as_raw() as u32);
                while busy && stopped.try_recv() == Err(TryRecvError::Empty) {
                    std::hint::black_box(0);
                }
                let _ = stopped.recv();
            });
            (Tasks::own(vec![own.recv().unwrap()]), stop, handle)
        };
        let used = |tasks: &Tasks| {
            let before = TaskTimes::read(tasks).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
            let after = TaskTimes::read(tasks).unwrap();
            (after.run_ns - before.run_ns) + (after.wait_ns - before.wait_ns)
        };
        for busy in [true, false] {
            let (tasks, stop, handle) = thread(busy);
            let ns = used(&tasks);
            assert!(if busy { ns > 100_000_000 } else { ns < 50_000_000 }, "busy {busy}: {ns} ns of 200 ms");
            assert_eq!(tasks.states(7), TaskStates { seen: 1, in_io: 0 });
            drop(stop);
            handle.join().unwrap();
            // The kernel wakes who joins before it takes the task away.
            let gone = || TaskTimes::read(&tasks).is_none() && tasks.states(0).seen == 0;
            let waited = std::time::Instant::now();
            while !gone() {
                assert!(waited.elapsed() < std::time::Duration::from_secs(60), "an ended task has no times");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn ids_of_another_machine_are_refused() {
        let own = std::process::id();
        assert!(Tasks::of_command(vec![own], &["loadline"]).is_some());
        assert_eq!(Tasks::of_command(vec![own], &["no such command"]), None);
        assert_eq!(Tasks::of_command(vec![own, u32::MAX], &["loadline"]), None);
        assert_eq!(Tasks::of_command(Vec::new(), &["loadline"]), None);
    }

    #[test]
    fn of_many_tasks_all_get_their_turn() {
        let own = nix::unistd::gettid().as_raw() as u32;
        let tasks = Tasks::own(vec![own; 40]);
        let seen: Vec<u32> = (0..3).map(|n| tasks.states(n).seen).collect();
        assert_eq!(seen, [16, 16, 16]);
        assert_eq!(Tasks::default().states(3), TaskStates::default());
    }
}
