//! Whether others leave the machine to a test, by the thresholds that judge tests; and the wait for it at the end of a warm-up, with the
//! jobs running: less than half a second before the window, so that few bursts begin in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_collect::Surroundings;
use loadline_collect::os::{CostUnknown, DiskCounters, DiskRates, Server};
use loadline_database::TargetError;
use loadline_load::{Around, JobResult, Request, Shared, TestHooks};
use loadline_model::disturbance::DISTURBANCES;
use loadline_storage::now_ns;

use super::Context;
use crate::figures::disturbance::shares;
use crate::instrument::Instruments;
use crate::test::Test;

/// Time over which is looked whether it is quiet.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// What others do on this machine, since it was last looked.
pub(super) struct Others {
    server: Server,
    /// loadline and a proxy that is measured.
    own: Vec<u32>,
    /// Of log and data.
    devices: [Option<String>; 2],
    before: Reading,
}

/// What is read for it.
type Reading = (Surroundings, [Option<DiskCounters>; 2]);

impl Others {
    /// Since now.
    pub(super) fn beside(context: &Context<'_>) -> Others {
        let (server, info) = (context.side.server.clone(), &context.side.info);
        let devices = ["log", "data"].map(|role| info.device(role).map(str::to_owned));
        let proxy = context.via.iter().flatten().flatten().copied();
        let own = std::iter::once(std::process::id()).chain(proxy).collect();
        Others { before: read(&server, &devices), own, server, devices }
    }

    /// Time since it was last looked, s.
    pub(super) fn looked_s(&self) -> f64 {
        now_ns().saturating_sub(self.before.0.at_ns) as f64 / 1e9
    }

    /// Whether nothing has disturbed as much as makes a test disturbed since it was last looked, which it is now.
    pub(super) fn were_quiet(&mut self) -> bool {
        let now = read(&self.server, &self.devices);
        let before = std::mem::replace(&mut self.before, now.clone());
        let seconds = now.0.at_ns.saturating_sub(before.0.at_ns) as f64 / 1e9;
        let disks = before.1.iter().zip(&now.1);
        let rates = disks.filter_map(|(a, b)| DiskRates::between(a.as_ref()?, b.as_ref()?, seconds));
        let util_pct = rates.map(|rates| rates.util_pct).reduce(f64::max);
        let (server, own) = (self.server.clone(), self.own.clone());
        let mut seen = Test::default();
        let around = Around { readings: [before.0, now.0], server, own, cost: Err(CostUnknown::Unread) };
        shares(&mut seen, &around, None, util_pct);
        DISTURBANCES.iter().all(|kind| seen.figure(kind.column).is_none_or(|pct| !kind.is_disturbing(pct)))
    }
}

fn read(server: &Server, devices: &[Option<String>; 2]) -> Reading {
    (Surroundings::read(server), devices.each_ref().map(|d| DiskCounters::local(d.as_deref()?).ok()))
}

/// The instruments of a test whose window may be held back.
pub(super) struct WhenQuiet<'a>(pub(super) &'a mut Instruments, pub(super) &'a mut Hold);

impl TestHooks for WhenQuiet<'_> {
    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        self.0.start(request, shared)
    }

    fn holds(&self) -> bool {
        self.1.most_s > 0.0
    }

    fn may_open(&mut self) -> bool {
        let is_quiet = self.1.others.were_quiet();
        self.1.decide(is_quiet)
    }

    fn stop(&mut self, jobs: &[JobResult]) {
        self.0.stop(jobs);
    }
}

/// Holds the window back at the end of a warm-up until others are quiet.
pub(super) struct Hold {
    others: Others,
    most_s: f64,
    /// When a look was first not quiet.
    began: Option<Instant>,
    /// How long the window has been held, s.
    pub(super) waited_s: f64,
    /// Whether it was let go although others were not quiet.
    pub(super) in_vain: bool,
    is_looking: bool,
    /// Set when it begins to wait, for whoever tells it.
    pub(super) waits: Arc<AtomicBool>,
}

impl Hold {
    /// For at most `most_s`; without any, no window is held.
    pub(super) fn new(others: Others, most_s: f64) -> Hold {
        Hold { others, most_s, began: None, waited_s: 0.0, in_vain: false, is_looking: false, waits: Arc::default() }
    }

    /// Whether others disturbed since the last look, which is when the window was let go.
    pub(super) fn was_disturbed(&mut self) -> bool {
        !self.others.were_quiet()
    }

    /// Whether the window may start, if others were quiet since the last look. The first one is only where the next begins.
    fn decide(&mut self, is_quiet: bool) -> bool {
        if !std::mem::replace(&mut self.is_looking, true) {
            return false;
        }
        if !is_quiet {
            self.waits.store(self.began.is_none(), Ordering::Relaxed);
            self.began.get_or_insert_with(Instant::now);
        }
        self.waited_s = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        self.in_vain = !is_quiet && self.waited_s >= self.most_s;
        is_quiet || self.in_vain
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use loadline_database::{OpenRequest, Target, Work, open};
    use loadline_load::{Warmup, run_test};

    use super::*;

    struct Looks(u32);

    impl TestHooks for Looks {
        fn holds(&self) -> bool {
            true
        }

        fn may_open(&mut self) -> bool {
            self.0 += 1;
            self.0 > 4
        }
    }

    #[test]
    fn jobs_of_a_window_that_is_held_back_go_on_warming_up() {
        let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new("null:", PathBuf::new())).unwrap());
        let of_null = Request::of(&target, &Arc::new(Work::of("LGWR-LAT1", &[]).unwrap()), 1);
        let request = Request { warmup: Warmup::Seconds(0.5), duration_s: 0.2, ..of_null };
        let mut looks = Looks(0);
        let measured = run_test(&request, &mut looks, |_| ()).unwrap();
        assert_eq!(looks.0, 5);
        // Three more looks than a quiet machine needs.
        assert!(measured.warmup.taken_s >= 1.0, "{:?}", measured.warmup);
        let job = &measured.jobs[0];
        assert!(0 < job.completed && 4 * job.completed < job.total, "jobs worked before the window: {job:?}");
    }

    #[test]
    fn a_window_is_held_back_until_a_whole_look_is_quiet_or_patience_is_gone() {
        let none = [None, None];
        let others =
            Others { before: read(&Server::Inside, &none), server: Server::Inside, own: Vec::new(), devices: none };
        let mut hold = Hold::new(others, 600.0);
        assert!(!hold.decide(true), "the first look only begins");
        assert!(!hold.decide(false) && hold.waits.swap(false, Ordering::Relaxed));
        assert!(!hold.decide(false) && !hold.waits.load(Ordering::Relaxed), "it is told once that it waits");
        assert!(hold.decide(true) && !hold.in_vain && hold.waited_s > 0.0);
        hold.most_s = 0.0;
        assert!(hold.decide(false) && hold.in_vain, "a machine that is never quiet ends the wait");
    }
}
