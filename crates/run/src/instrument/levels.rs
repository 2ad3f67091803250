//! Looks at the replicas of a database while a test runs: whether commits could wait for them in the whole window, how far
//! away they were, and how far behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use loadline_database::{Replica, ReplicaWatch, TargetError};
use loadline_load::{JobResult, Request, Shared};
use loadline_model::{CheckId, Column, column};
use loadline_storage::now_ns;

use super::{Beside, Instrument};
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, failed, require};

const EVERY: Duration = Duration::from_millis(100);
/// A replica that is behind and acknowledges nothing for this long, beside some round trips, hangs, ns.
const HANGS_NS: u64 = 2_000_000_000;
const COLUMNS: [&Column; 5] = [
    column::RTT_MS,
    column::REPLICAS_SYNCHRONOUS,
    column::REPLICA_BEHIND_MIB,
    column::REPLICA_BEHIND_MS,
    column::REPLICA_LINK_MIB_PER_S,
];
const NOT_SAID: &str = "the database does not say how far its replicas are (PostgreSQL: to roles with pg_monitor; MariaDB: in \
     bytes of one binary log)";

pub(crate) struct Levels {
    /// Name of the level in force, and replicas that a commit waits for in it.
    level: Option<(String, u32)>,
    /// Levels that receive, in the baseline as well.
    all: u32,
    /// Hears while the test still runs that a replica is gone.
    alarm: Sender<String>,
    looks: Beside<Seen>,
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    looks: u32,
    /// Fewest synchronous replicas, and what the database said of all then.
    fewest: Option<(u32, String)>,
    /// Fewest connected replicas, as above.
    fewest_at_all: Option<(u32, String)>,
    behind_bytes: Option<u64>,
    behind_s: Option<f64>,
    round_trips_ns: Vec<u64>,
    link_bytes: Option<u64>,
    /// How long a replica that was behind has acknowledged nothing, at most, ns, and its name.
    stalled: Option<(u64, String)>,
}

/// Acknowledged position of each replica, by its name, and since when, ns.
type Acknowledged = BTreeMap<String, ([u64; 2], u64)>;

impl Seen {
    fn add(&mut self, replicas: &[Replica]) {
        let synchronous = replicas.iter().filter(|r| r.synchronous).count() as u32;
        self.looks += 1;
        let counts = [(&mut self.fewest, synchronous), (&mut self.fewest_at_all, replicas.len() as u32)];
        for (fewest, count) in counts {
            if fewest.as_ref().is_none_or(|(fewest, _)| count < *fewest) {
                let said: Vec<String> = replicas.iter().map(|r| format!("{}: {}", r.name, r.state)).collect();
                let said = if said.is_empty() { "no replica is connected".to_owned() } else { said.join("; ") };
                *fewest = Some((count, said));
            }
        }
        self.behind_bytes = self.behind_bytes.max(replicas.iter().filter_map(|r| r.behind_bytes).max());
        self.behind_s = replicas.iter().filter_map(|r| r.behind_s).chain(self.behind_s).reduce(f64::max);
    }

    /// Notes replicas that are behind and acknowledge nothing; their state may still be that of one that does. Returns whether one of
    /// them may hang.
    fn add_stalls(&mut self, replicas: &[Replica], last: &mut Acknowledged, now_ns: u64) -> bool {
        let mut suspect = false;
        for replica in replicas {
            let Some(at) = replica.acknowledged else { continue };
            let known = last.entry(replica.name.clone()).or_insert((at, now_ns));
            if known.0 != at || replica.behind_bytes.is_none_or(|bytes| bytes == 0) {
                *known = (at, now_ns);
            }
            let stalled_ns = now_ns.saturating_sub(known.1);
            suspect |= stalled_ns >= HANGS_NS / 5;
            if stalled_ns > self.stalled.as_ref().map_or(0, |(most, _)| *most) {
                self.stalled = Some((stalled_ns, replica.name.clone()));
            }
        }
        suspect
    }

    /// The replica that hangs, if one does, and for how long it has, s: far longer than a round trip.
    fn hangs(&self) -> Option<(&str, f64)> {
        let least_ns = HANGS_NS + 3 * self.round_trips_ns.iter().max().copied().unwrap_or(0);
        let (ns, name) = self.stalled.as_ref().filter(|(ns, _)| *ns >= least_ns)?;
        Some((name, *ns as f64 / 1e9))
    }

    /// Why not all of `all` replicas could be waited for, as far as it is known.
    fn unfit(&self, all: u32) -> impl Iterator<Item = String> {
        let hangs = self.hangs().map(|(name, s)| format!("{name} hangs: it acknowledged nothing for {s:.1} s"));
        let gone = self.fewest_at_all.as_ref().filter(|(fewest, _)| *fewest < all);
        let gone = gone.map(|(fewest, said)| {
            format!("fewest connected replicas in {} looks: {fewest} of {all} ({said})", self.looks)
        });
        hangs.into_iter().chain(gone)
    }

    /// The round trip that a share `q` of the probes did not exceed, ns.
    fn round_trip_ns(&self, q: f64) -> Option<u64> {
        let last = self.round_trips_ns.len().checked_sub(1)?;
        self.round_trips_ns.get((last as f64 * q).round() as usize).copied()
    }
}

impl Levels {
    /// `level`: the one in force, with the number of replicas that its commits wait for; `None` in the baseline. `all`: replicas of
    /// the run.
    pub(crate) fn new(level: Option<(String, u32)>, all: u32, alarm: Sender<String>) -> Levels {
        Levels { level, all, alarm, looks: Beside::default() }
    }

    /// Whether commits could wait for enough replicas in the whole window.
    fn connected(&self, seen: &Seen) -> Vec<Verdict> {
        let mut checks: Vec<Verdict> = seen.unfit(self.all).map(failed).collect();
        let Some((level, needed)) = self.level.as_ref().filter(|(_, needed)| *needed > 0) else { return checks };
        if let Some((fewest, said)) = &seen.fewest {
            let looks = seen.looks;
            let detail = format!(
                "a commit at level {level} waits for {needed}; fewest synchronous replicas in {looks} looks: {fewest} ({said})"
            );
            checks.push(require(fewest >= needed, detail));
        }
        checks
    }

    fn waited(&self, seen: &Seen, latency_ms: Option<f64>) -> Option<Verdict> {
        let (level, _) = self.level.as_ref().filter(|(_, needed)| *needed > 0)?;
        // The fastest probes: those in the middle may have waited for a CPU.
        let (round_trip_ms, latency_ms) = (seen.round_trip_ns(0.05)? as f64 / 1e6, latency_ms?);
        let detail = format!(
            "a commit at level {level} took {latency_ms:.3} ms, one round trip to a replica at least {round_trip_ms:.3} ms"
        );
        Some(require(latency_ms >= round_trip_ms, detail))
    }

    fn seen(&self) -> Result<&Seen, String> {
        self.looks.outcome.as_ref().map_err(|why| format!("the replicas could not be looked at in the window: {why}"))
    }
}

impl Instrument for Levels {
    fn follows_window(&self) -> bool {
        true
    }

    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        let levels = request.target.abilities().levels;
        let watch = levels.ok_or_else(|| TargetError::Unsupported("the target has no replicas".into()))?.watch()?;
        let (shared, alarm, all) = (Arc::clone(shared), self.alarm.clone(), self.all);
        let alarm = move |seen: &Seen| seen.unfit(all).next().map(|text| alarm.send(text)).is_some();
        self.looks.start("replicas", move || look(watch, &shared, alarm))
    }

    fn stop(&mut self, _: &[JobResult]) {
        self.looks.join();
    }

    fn reasons_first(&self, test: &mut Test) {
        match self.seen() {
            Ok(seen) => self.connected(seen).into_iter().for_each(|verdict| test.check(CheckId::Replicas, verdict)),
            Err(why) => test.check(CheckId::Replicas, failed(why)),
        }
    }

    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        let seen = match self.seen() {
            Ok(seen) => seen,
            Err(why) => return test.set_all_absent(&COLUMNS, &why),
        };
        let window_s = e.measured.schedule.window_s();
        let mut set = |column, value: Option<f64>, why| test.set_or_absent(column, value, why);
        const NO_RELAY: &str = "no relay of loadline's is between the database and its replicas";
        let no_rtt = if seen.link_bytes.is_some() { "no probe came back" } else { NO_RELAY };
        set(column::RTT_MS, seen.round_trip_ns(0.5).map(|ns| ns as f64 / 1e6), no_rtt);
        let fewest = seen.fewest.as_ref().map(|(n, _)| f64::from(*n));
        set(column::REPLICAS_SYNCHRONOUS, fewest, "nobody looked in the window");
        let behind = seen.behind_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
        set(column::REPLICA_BEHIND_MIB, behind, NOT_SAID);
        set(column::REPLICA_BEHIND_MS, seen.behind_s.map(|s| s * 1e3), NOT_SAID);
        let traffic = seen.link_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20) / window_s.max(1e-9));
        set(column::REPLICA_LINK_MIB_PER_S, traffic, NO_RELAY);
        test.check(CheckId::RoundTrip, self.waited(seen, test.figure(column::COMMIT_LATENCY_MS)));
    }
}

/// Looks until the jobs have ended, which a replica that hangs may keep waiting; only what is seen in the window counts otherwise.
/// `alarm` says what is to be said at once; it returns whether there was anything, and is then not called again.
fn look(mut watch: ReplicaWatch, shared: &Shared, alarm: impl Fn(&Seen) -> bool) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let mut alarmed = false;
    let (mut bytes_at_start, mut bytes_at_end) = (None, None);
    let mut last = Acknowledged::new();
    // A short window may end before it is known whether a replica hangs.
    let mut suspect = false;
    while !(shared.all_ended() && (!suspect || seen.hangs().is_some())) && !shared.interrupted.load(Ordering::Relaxed) {
        let window = shared.window().filter(|window| !window.is_pending());
        let now = now_ns();
        if let Some(window) = window.filter(|window| now >= window.open_ns) {
            let is_over = now >= window.close_ns;
            if is_over {
                bytes_at_end = bytes_at_end.or_else(|| Some(watch.link_bytes()));
            }
            let replicas = match watch.look() {
                // The test may have ended well before an answer comes.
                Err(_) if is_over => break,
                looked => looked.map_err(|e| e.to_string())?,
            };
            suspect = seen.add_stalls(&replicas, &mut last, now);
            if !is_over {
                let round_trips = watch.round_trips_ns();
                // Those until the first look began before the window.
                match bytes_at_start {
                    None => bytes_at_start = Some(watch.link_bytes()),
                    Some(_) => seen.round_trips_ns.extend(round_trips),
                }
                seen.add(&replicas);
            }
            alarmed = alarmed || alarm(&seen);
        }
        let bounds = window.map_or([u64::MAX; 2], |w| [w.open_ns, w.close_ns]);
        let until = bounds.into_iter().find(|at| now < *at).unwrap_or(u64::MAX);
        std::thread::sleep(EVERY.min(Duration::from_nanos(until.saturating_sub(now_ns()).max(1))));
    }
    let close = bytes_at_end.unwrap_or_else(|| watch.link_bytes());
    seen.link_bytes = close.zip(bytes_at_start.flatten()).map(|(close, open)| close.saturating_sub(open));
    seen.round_trips_ns.sort_unstable();
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use loadline_load::Schedule;
    use loadline_model::Outcome;

    use super::*;

    fn watching(level: Option<(&str, u32)>, all: u32) -> Levels {
        Levels::new(level.map(|(name, needed)| (name.to_owned(), needed)), all, mpsc::channel().0)
    }

    fn replica(synchronous: bool, behind: u64) -> Replica {
        let state = if synchronous { "streaming, sync" } else { "streaming, async" };
        let (name, state) = ("a".to_owned(), state.to_owned());
        Replica { name, state, synchronous, behind_bytes: Some(behind), ..Replica::default() }
    }

    #[test]
    fn the_worst_moment_of_the_window_counts() {
        let mut seen = Seen::default();
        seen.add(&[replica(true, 5), replica(true, 50)]);
        seen.add(&[replica(false, 7), replica(true, 9)]);
        seen.add(&[replica(true, 0), replica(true, 0)]);
        assert_eq!((seen.fewest.as_ref().unwrap().0, seen.behind_bytes, seen.looks), (1, Some(50), 3));
        let of = |level: &str, needed| watching(Some((level, needed)), 2).connected(&seen);
        let outcomes = |checks: &[Verdict]| checks.iter().map(|c| c.outcome).collect::<Vec<_>>();
        assert_eq!(outcomes(&of("on", 1)), [Outcome::Passed]);
        let two = of("on:first-2", 2);
        assert_eq!(outcomes(&two), [Outcome::Failed]);
        assert!(two[0].detail.contains("async"), "{two:?}");
        assert!(of("local", 0).is_empty() && watching(None, 2).connected(&seen).is_empty());
        seen.add(&[]);
        let none = watching(Some(("on", 1)), 2).connected(&seen);
        assert!(none[0].detail.contains("no replica is connected") && none[0].outcome == Outcome::Failed, "{none:?}");
        let baseline = watching(None, 2).connected(&seen);
        assert!(baseline[0].detail.contains("0 of 2") && baseline[0].outcome == Outcome::Failed, "{baseline:?}");
    }

    #[test]
    fn a_replica_that_leaves_is_said_once_while_the_test_runs() {
        let shared = Shared::new(1, Arc::default());
        let open_ns = now_ns();
        let window = Schedule { start_ns: open_ns, open_ns, close_ns: open_ns + 2_000_000_000 };
        shared.set_window(window);
        // It is there at the first look only.
        let mut left = vec![replica(true, 0)];
        let leaving = ReplicaWatch::new(Vec::new(), move || Ok(std::mem::take(&mut left))).unwrap();
        let said = Mutex::new(Vec::new());
        let alarm = |seen: &Seen| {
            let gone = seen.fewest_at_all.as_ref().is_some_and(|(fewest, _)| *fewest == 0);
            gone.then(|| said.lock().unwrap().push(now_ns() < window.close_ns)).is_some()
        };
        let seen = std::thread::scope(|scope| {
            let looking = scope.spawn(|| look(leaving, &shared, alarm));
            std::thread::sleep(Duration::from_millis(2100));
            shared.ended.store(1, Ordering::Relaxed);
            looking.join().unwrap().unwrap()
        });
        assert!(seen.looks >= 2, "{seen:?}");
        assert_eq!(*said.lock().unwrap(), [true]);
    }

    #[test]
    fn a_replica_that_acknowledges_nothing_hangs() {
        let at = |applied, behind| Replica { acknowledged: Some([20, applied]), ..replica(true, behind) };
        let (mut seen, mut last) = (Seen::default(), Acknowledged::new());
        let mut look = |at_s: u64, replica: Replica| {
            seen.add_stalls(&[replica], &mut last, at_s * 1_000_000_000);
            seen.hangs().map(|(name, s)| (name.to_owned(), s))
        };
        assert_eq!((look(1, at(10, 5)), look(5, at(11, 5)), look(9, at(11, 0))), (None, None, None));
        assert_eq!((look(10, at(11, 7)), look(13, at(11, 7))), (None, Some(("a".to_owned(), 4.0))));
        let checks = watching(None, 1).connected(&seen);
        assert!(checks[0].outcome == Outcome::Failed && checks[0].detail.contains("a hangs"), "{checks:?}");
        // A round trip of 2 s is no stall.
        let far = Seen { round_trips_ns: vec![2_000_000_000], ..seen };
        assert_eq!(far.hangs(), None);
    }

    #[test]
    fn a_commit_that_is_faster_than_a_round_trip_did_not_wait() {
        let mut seen = Seen { round_trips_ns: (0..100).map(|n| 2_000_000 + n * 1000).collect(), ..Seen::default() };
        seen.add(&[replica(true, 0)]);
        let outcome = |ms| watching(Some(("on", 1)), 1).waited(&seen, Some(ms)).unwrap().outcome;
        assert_eq!((outcome(2.5), outcome(1.9)), (Outcome::Passed, Outcome::Failed));
        assert_eq!(seen.round_trip_ns(0.5), Some(2_050_000));
    }
}
