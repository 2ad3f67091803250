//! Whether others leave the machine to a test, by the thresholds that judge tests; and the wait for it at the end of a warm-up, with the
//! jobs running: less than half a second before the window, so that few bursts begin in between.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_collect::Surroundings;
use loadline_collect::os::{DiskCounters, DiskRates, Server};
use loadline_database::TargetError;
use loadline_load::{Around, JobResult, Request, Shared, TestHooks};
use loadline_model::disturbance::{DISTURBANCES, Disturbance};
use loadline_model::live::Held;

use super::Context;
use crate::figures::disturbance::shares;
use crate::instrument::Instrument;
use crate::test::Test;

/// Time over which is looked whether it is quiet, of a test without a window.
const LOOK: Duration = Duration::from_millis(200);

/// Use by others on this machine, since it was last looked.
pub(super) struct Others {
    server: Server,
    /// loadline and a proxy that is measured.
    own: Vec<u32>,
    /// Of log and data.
    devices: [Option<String>; 2],
    before: Reading,
}

type Reading = (Surroundings, [Option<DiskCounters>; 2]);

impl Others {
    pub(super) fn beside(context: &Context<'_>) -> Others {
        let (server, info) = (context.side.server.clone(), &context.side.info);
        let devices = ["log", "data"].map(|role| info.device(role).map(str::to_owned));
        let proxy = context.via.iter().flatten().flatten().copied();
        let own = std::iter::once(std::process::id()).chain(proxy).collect();
        Others { before: read(&server, &devices), own, server, devices }
    }

    /// Whether nothing has disturbed as much as makes a test disturbed since it was last looked, which it is now.
    pub(super) fn were_quiet(&mut self) -> bool {
        self.disturbed().is_none()
    }

    /// The worst disturbance since it was last looked, %, if it makes a test disturbed.
    fn disturbed(&mut self) -> Option<(&'static Disturbance, f64)> {
        let now = read(&self.server, &self.devices);
        let before = std::mem::replace(&mut self.before, now.clone());
        let seconds = now.0.at_ns.saturating_sub(before.0.at_ns) as f64 / 1e9;
        let disks = before.1.iter().zip(&now.1);
        let rates = disks.filter_map(|(a, b)| DiskRates::between(a.as_ref()?, b.as_ref()?, seconds));
        let util_pct = rates.map(|rates| rates.util_pct).reduce(f64::max);
        let (server, own) = (self.server.clone(), self.own.clone());
        let mut seen = Test::default();
        let around = Around { readings: [before.0, now.0], server, own };
        shares(&mut seen, &around, None, util_pct);
        let kinds = DISTURBANCES.iter().filter_map(|kind| Some((kind, seen.figure(kind.column)?)));
        let disturbing = kinds.filter(|(kind, pct)| kind.is_disturbing(*pct));
        disturbing
            .max_by(|(a, x), (b, y)| a.severity(*x).partial_cmp(&b.severity(*y)).unwrap_or(std::cmp::Ordering::Equal))
    }
}

fn read(server: &Server, devices: &[Option<String>; 2]) -> Reading {
    (Surroundings::read(server), devices.each_ref().map(|d| DiskCounters::local(d.as_deref()?).ok()))
}

/// The instruments of a test whose window may be held back.
pub(super) struct WhenQuiet<'a>(pub(super) &'a mut [Box<dyn Instrument>], pub(super) &'a mut Hold);

impl TestHooks for WhenQuiet<'_> {
    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        self.0.iter_mut().try_for_each(|instrument| instrument.start(request, shared))
    }

    fn holds(&self) -> bool {
        self.1.most_s > 0.0
    }

    fn may_open(&mut self) -> bool {
        self.1.may_open()
    }

    fn opens_again(&mut self) -> bool {
        self.1.repeats()
    }

    fn stop(&mut self, jobs: &[JobResult]) {
        self.0.iter_mut().for_each(|instrument| instrument.stop(jobs));
    }
}

/// Holds the window back at the end of a warm-up until others are quiet, and lets another one follow if they were not in it: the jobs go
/// on running, which takes far less time than to start the test again. The disturbance alone decides, and no figure.
pub(super) struct Hold {
    others: Others,
    most_s: f64,
    /// When a look was first not quiet.
    began: Option<Instant>,
    /// How long the window has been held, with a window that did not count, s.
    pub(super) waited_s: f64,
    /// Whether another window may follow.
    pub(super) may_repeat: bool,
    /// Disturbance, %, of a window that does not count, if there was one.
    pub(super) repeated: Option<(&'static Disturbance, f64)>,
    /// When it was last looked whether others are quiet: the last look let the window go.
    looked: Option<Instant>,
    /// Whether it was let go although others were not quiet.
    pub(super) in_vain: bool,
    /// State, for whoever shows it.
    pub(super) shown: Rc<Cell<Option<Held>>>,
}

impl Hold {
    /// For at most `most_s`; without any, no window is held.
    pub(super) fn new(others: Others, most_s: f64) -> Hold {
        Hold {
            others,
            most_s,
            began: None,
            waited_s: 0.0,
            may_repeat: false,
            repeated: None,
            looked: None,
            in_vain: false,
            shown: Rc::default(),
        }
    }

    /// Whether others disturbed since the last look, which is when the window was let go.
    pub(super) fn was_disturbed(&mut self) -> bool {
        !self.others.were_quiet()
    }

    /// Waits as long as a window would be held back; `says` that it waits.
    pub(super) fn wait(&mut self, interrupted: &AtomicBool, mut says: impl FnMut()) {
        while self.most_s > 0.0 && !interrupted.load(Ordering::Relaxed) && !self.may_open() {
            if self.shown.take().is_some() {
                says();
            }
            std::thread::sleep(LOOK);
        }
    }

    fn may_open(&mut self) -> bool {
        let is_quiet = self.others.were_quiet();
        self.decide(is_quiet)
    }

    /// Whether the window may start, if others were quiet since the last look. The first one is only where the next begins.
    fn decide(&mut self, is_quiet: bool) -> bool {
        if self.looked.replace(Instant::now()).is_none() {
            return false;
        }
        if !is_quiet && self.began.is_none() {
            self.began = Some(Instant::now());
            self.shown.set(Some(Held::Waits));
        }
        self.waited_s = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        self.in_vain = !is_quiet && self.waited_s >= self.most_s;
        let opens = is_quiet || self.in_vain;
        if opens {
            self.shown.set(self.repeated.map(|(by, pct)| Held::Again { by: by.check, pct }));
        }
        opens
    }

    /// Whether another window follows one that is over: others disturbed it, and it took no more than may still be waited.
    fn repeats(&mut self) -> bool {
        let looked = if self.may_repeat && !self.in_vain { self.looked } else { None };
        let Some(opened) = looked else { return false };
        let waited_s = self.began.unwrap_or(opened).elapsed().as_secs_f64();
        if waited_s >= self.most_s {
            return false;
        }
        let Some(disturbed) = self.others.disturbed() else { return false };
        self.repeated = Some(disturbed);
        self.began.get_or_insert(opened);
        self.shown.set(Some(Held::Waits));
        (self.waited_s, self.looked) = (waited_s, None);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_held_back_until_a_whole_look_is_quiet_or_patience_is_gone() {
        let none = [None, None];
        let others =
            Others { before: read(&Server::Inside, &none), server: Server::Inside, own: Vec::new(), devices: none };
        let mut hold = Hold::new(others, 600.0);
        hold.wait(&AtomicBool::new(true), || panic!("a user who stops is not kept waiting"));
        assert!(WhenQuiet(&mut [], &mut hold).holds());
        assert!(!hold.decide(true), "the first look only begins");
        assert_eq!(hold.shown.get(), None);
        assert!(!hold.decide(false) && hold.shown.take() == Some(Held::Waits));
        assert!(!hold.decide(false) && hold.shown.get().is_none(), "it is told once that it waits");
        assert!(hold.decide(true) && !hold.in_vain && hold.waited_s > 0.0);
        assert_eq!(hold.shown.get(), None, "a window that has begun waits no longer");
        hold.repeated = Some((&DISTURBANCES[0], 24.0));
        assert!(hold.decide(true) && hold.shown.get().unwrap().to_string().starts_with("measured again"));
        assert!(!hold.repeats(), "no other window follows where none may");
        hold.most_s = 0.0;
        assert!(!WhenQuiet(&mut [], &mut hold).holds());
        hold.wait(&AtomicBool::new(false), || panic!("without patience nothing is waited for"));
        assert!(hold.decide(false) && hold.in_vain, "a machine that is never quiet ends the wait");
    }
}
