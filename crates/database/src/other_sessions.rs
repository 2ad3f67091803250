//! CPU time of the sessions of others on a server of this machine, from `/proc/TID/schedstat`.

use std::collections::BTreeMap;

use loadline_model::snapshot::counter;

use crate::error::TargetError;
use crate::machine::{runs_command, task_times_ns};

/// A session, by the server's id, and the process or thread that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionTask {
    pub(crate) session: u32,
    pub(crate) task: u32,
}

/// Shortest time between two readings, ns: with hundreds of sessions one takes milliseconds.
const PAUSE_NS: u64 = 250_000_000;

#[derive(Debug)]
pub(crate) struct Sessions {
    /// The task of one of loadline's own, if it is known.
    pub(crate) own: Option<u32>,
    pub(crate) others: Vec<SessionTask>,
}

/// Sums it over readings. What a session used before it was first seen, or after it was last seen, is not in it.
#[derive(Debug)]
pub(crate) struct OtherSessions {
    /// Texts of which each command line of the server's processes holds one.
    commands: &'static [&'static str],
    last: BTreeMap<SessionTask, u64>,
    sum_ns: u64,
    /// When the last reading was made; `None` if it failed.
    at_ns: Option<u64>,
}

impl OtherSessions {
    pub(crate) fn new(commands: &'static [&'static str]) -> OtherSessions {
        OtherSessions { commands, last: BTreeMap::new(), sum_ns: 0, at_ns: None }
    }

    /// Reads the times of the sessions that `ask` returns, unless that was just done. `None`: some may not be seen.
    pub(crate) fn read(
        &mut self,
        ask: impl FnOnce() -> Result<Option<Sessions>, TargetError>,
    ) -> Result<(), TargetError> {
        if self.at_ns.is_none_or(|at| loadline_storage::now_ns() >= at + PAUSE_NS) {
            let known = ask()?.is_some_and(|sessions| self.add(&sessions).is_some());
            self.at_ns = known.then(loadline_storage::now_ns);
        }
        Ok(())
    }

    /// Adds the times of the sessions. `None` if loadline's own is none of this machine's server (as in a container), or has no time.
    fn add(&mut self, Sessions { own, others }: &Sessions) -> Option<()> {
        self.cpu_ns((*own)?)?;
        // A session that ended meanwhile has no time.
        let now: BTreeMap<_, _> = others.iter().filter_map(|t| Some((*t, self.cpu_ns(t.task)?))).collect();
        let grown = now.iter().filter_map(|(task, ns)| ns.checked_sub(*self.last.get(task)?));
        self.sum_ns += grown.sum::<u64>();
        self.last = now;
        Some(())
    }

    /// Fills the counters of the last reading: the sum, and its time.
    pub(crate) fn fill(&self, counters: &mut BTreeMap<String, f64>) {
        if let Some(at_ns) = self.at_ns {
            counters.insert(counter::OTHER_SESSIONS_CPU_NS.to_owned(), self.sum_ns as f64);
            counters.insert(counter::OTHER_SESSIONS_AT_NS.to_owned(), at_ns as f64);
        }
    }

    fn cpu_ns(&self, task: u32) -> Option<u64> {
        let [run_ns, _] = task_times_ns(task)?;
        runs_command(task, self.commands).then_some(run_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This thread, after it was given a CPU more than once.
    fn own_thread() -> u32 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        nix::unistd::gettid().as_raw().unsigned_abs()
    }

    #[test]
    fn the_sum_grows_with_the_sessions_and_never_falls() {
        let begin = std::time::Instant::now();
        let own = own_thread();
        let command: &'static str = std::env::args().next().unwrap().leak();
        let mut of = OtherSessions::new(Vec::from([command]).leak());
        let sessions = |own, ids: &[u32]| {
            let task = |session: &u32| SessionTask { session: *session, task: own };
            Sessions { own: Some(own), others: ids.iter().map(task).collect() }
        };
        let mut used = |ids: &[u32]| of.add(&sessions(own, ids)).map(|()| of.sum_ns);
        assert_eq!(used(&[1]), Some(0), "what it used before is unknown");
        let spin = std::time::Instant::now();
        while spin.elapsed().as_millis() < 20 {
            std::hint::black_box(0);
        }
        let once = used(&[1, 2]).unwrap();
        // The kernel counts in ticks of up to 10 ms.
        assert!(once > 0 && u128::from(once) <= begin.elapsed().as_nanos() + 10_000_000, "{once} ns");
        assert_eq!(used(&[3]), Some(once), "the thread is used again");
        assert_eq!(used(&[]), Some(once), "they ended");
        assert_eq!(of.add(&sessions(u32::MAX, &[1])), None);
        let mut elsewhere = OtherSessions::new(&["no such command"]);
        assert_eq!(elsewhere.add(&sessions(own, &[])), None, "another machine's ids");
    }

    #[test]
    fn what_may_not_be_seen_is_no_counter() {
        let mut of = OtherSessions::new(&[""]);
        let own = Some(own_thread());
        let mut read = |ask: &mut dyn FnMut() -> Option<Sessions>| {
            of.read(|| Ok(ask())).unwrap();
            let mut counters = BTreeMap::new();
            of.fill(&mut counters);
            counters.len()
        };
        assert_eq!(read(&mut || None), 0);
        assert_eq!(read(&mut || Some(Sessions { own: None, others: Vec::new() })), 0);
        assert_eq!(read(&mut || Some(Sessions { own, others: Vec::new() })), 2);
        assert_eq!(read(&mut || panic!("asked again at once")), 2);
    }
}
