//! Tasks of the operating system (processes or threads) that run jobs: their CPU time, and what they wait for.

use crate::error::{CollectError, read};

/// Most tasks whose state is read at a time, so that samples stay cheap with many jobs.
const SAMPLED: usize = 16;

/// Tasks of this machine, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tasks(Vec<u32>);

impl Tasks {
    /// The tasks `ids`, if all exist and their command lines hold one of `commands`. The ids come from a server, which may
    /// run in a container with ids of its own: other tasks of this machine then have these ids, or none.
    #[must_use]
    pub fn of_command(ids: Vec<u32>, commands: &[&str]) -> Option<Tasks> {
        let known = |id: &u32| {
            let line = read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            commands.iter().any(|command| line.contains(command))
        };
        (!ids.is_empty() && ids.iter().all(known)).then_some(Tasks(ids))
    }

    /// Threads of this process.
    #[must_use]
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
    /// Time on a CPU, ns.
    pub run_ns: u64,
    /// Time ready to run, waiting for a CPU, ns.
    pub wait_ns: u64,
}

impl TaskTimes {
    /// Times of `tasks` from `/proc/TID/schedstat` (kernel: Documentation/scheduler/sched-stats.rst).
    ///
    /// # Errors
    /// A task has ended, or the kernel does not keep these statistics.
    pub fn of(tasks: &Tasks) -> Result<TaskTimes, CollectError> {
        tasks.0.iter().try_fold(TaskTimes::default(), |sum, id| {
            let one = TaskTimes::parse(&read(format!("/proc/{id}/schedstat"))?)?;
            Ok(TaskTimes {
                run_ns: sum.run_ns.saturating_add(one.run_ns),
                wait_ns: sum.wait_ns.saturating_add(one.wait_ns),
            })
        })
    }

    fn parse(text: &str) -> Result<TaskTimes, CollectError> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|f| f.parse().ok()).collect();
        match fields[..] {
            // Time on a CPU, time waiting for one, times it was given one. A young task may have run for 0 ns so far.
            [run_ns, wait_ns, turns] if turns > 0 => Ok(TaskTimes { run_ns, wait_ns }),
            // Without its statistics the kernel prints zeros.
            _ => Err(CollectError::Format { file: "/proc/TID/schedstat", what: format!("'{}'", text.trim()) }),
        }
    }
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
    fn times_need_the_kernels_statistics() {
        assert_eq!(TaskTimes::parse("5000 70 3\n").unwrap(), TaskTimes { run_ns: 5000, wait_ns: 70 });
        assert_eq!(TaskTimes::parse("0 70 1\n").unwrap(), TaskTimes { run_ns: 0, wait_ns: 70 }, "a young task");
        for none in ["0 0 0\n", "", "5", "5 6", "a b c"] {
            assert!(TaskTimes::parse(none).is_err(), "{none}");
        }
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
            let before = TaskTimes::of(tasks).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
            let after = TaskTimes::of(tasks).unwrap();
            (after.run_ns - before.run_ns) + (after.wait_ns - before.wait_ns)
        };
        for busy in [true, false] {
            let (tasks, stop, handle) = thread(busy);
            let ns = used(&tasks);
            assert!(if busy { ns > 100_000_000 } else { ns < 50_000_000 }, "busy {busy}: {ns} ns of 200 ms");
            assert_eq!(tasks.states(7), TaskStates { seen: 1, in_io: 0 });
            drop(stop);
            handle.join().unwrap();
            assert!(TaskTimes::of(&tasks).is_err() && tasks.states(0).seen == 0, "an ended task has no times");
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
