//! CPU time of the sessions of others on a server of this machine, from `/proc/TID/schedstat`.

use std::collections::BTreeMap;

/// A session, by the server's id, and the process or thread that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionTask {
    pub(crate) session: u32,
    pub(crate) task: u32,
}

/// Sums it over readings. What a session used before it was first seen, or after it was last seen, is not in it.
#[derive(Debug)]
pub(crate) struct OtherSessions {
    /// Texts of which each command line of the server's processes holds one.
    commands: &'static [&'static str],
    /// CPU time of the sessions of the last reading, ns.
    last: BTreeMap<SessionTask, u64>,
    sum_ns: u64,
}

impl OtherSessions {
    pub(crate) fn new(commands: &'static [&'static str]) -> OtherSessions {
        OtherSessions { commands, last: BTreeMap::new(), sum_ns: 0 }
    }

    /// The sum so far, ns, with the sessions of others that are there now. `None` if `own`, the task of one of loadline's
    /// sessions, is none of this machine's server, as in a container with ids of its own, or has no time.
    pub(crate) fn used_ns(&mut self, own: u32, others: &[SessionTask]) -> Option<u64> {
        self.cpu_ns(own)?;
        // A session that ended meanwhile has no time.
        let now: BTreeMap<_, _> = others.iter().filter_map(|t| Some((*t, self.cpu_ns(t.task)?))).collect();
        let grown = now.iter().filter_map(|(task, ns)| ns.checked_sub(*self.last.get(task)?));
        self.sum_ns += grown.sum::<u64>();
        self.last = now;
        Some(self.sum_ns)
    }

    fn cpu_ns(&self, task: u32) -> Option<u64> {
        let line = std::fs::read(format!("/proc/{task}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line);
        let times = std::fs::read_to_string(format!("/proc/{task}/schedstat")).ok()?;
        // Without its statistics the kernel prints zeros.
        let ns = times.split_whitespace().next()?.parse().ok().filter(|ns| *ns > 0)?;
        self.commands.iter().any(|command| line.contains(command)).then_some(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_grows_with_the_sessions_and_never_falls() {
        let own = nix::unistd::gettid().as_raw().unsigned_abs();
        let command: &'static str = std::env::args().next().unwrap().leak();
        let mut of = OtherSessions::new(Vec::from([command]).leak());
        let session = |session| SessionTask { session, task: own };
        assert_eq!(of.used_ns(own, &[session(1)]), Some(0), "what it used before is unknown");
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < 20 {
            std::hint::black_box(0);
        }
        let used = of.used_ns(own, &[session(1), session(2)]).unwrap();
        assert!(used > 0 && u128::from(used) <= begin.elapsed().as_nanos(), "{used} ns");
        assert_eq!(of.used_ns(own, &[session(3)]), Some(used), "the thread is used again");
        assert_eq!(of.used_ns(own, &[]), Some(used), "they ended");
        assert_eq!(of.used_ns(u32::MAX, &[session(1)]), None);
        assert_eq!(OtherSessions::new(&["no such command"]).used_ns(own, &[]), None, "another machine's ids");
    }
}
