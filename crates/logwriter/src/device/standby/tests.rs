//! Logs with a standby that is slow, fails, disappears or does not answer.

use std::time::{Duration, Instant};

use super::*;
use crate::device::testing::{Disk, TinyLog};

const BLOCK: usize = 512;
const TIMEOUT: Duration = Duration::from_secs(20);

struct Site {
    here: Disk,
    there: Disk,
}

impl Site {
    fn new() -> Site {
        let disk = || Disk::new(BLOCK, 16 * BLOCK as u64);
        Site { here: disk(), there: disk() }
    }

    fn open(&self, ends: [UnixStream; 2], rule: Rule, timeout: Duration) -> (TinyLog<Replicas>, Standby) {
        let local = Member { name: "here".to_owned(), device: self.here.device(), storage: None };
        let (set, standby) = open_standby(local, self.there.device(), ends, rule, timeout).unwrap();
        (TinyLog::open(set).unwrap(), standby)
    }

    fn log(&self, rule: Rule) -> (TinyLog<Replicas>, Standby) {
        self.open(over_tcp().unwrap(), rule, TIMEOUT)
    }
}

const RULES: [Rule; 3] = [Rule::Received, Rule::Written, Rule::Both];

#[test]
fn each_rule_waits_for_what_it_says_and_for_nothing_else() {
    for rule in RULES {
        let site = Site::new();
        let (mut log, standby) = site.log(rule);
        log.commits(99);
        while log.device.board.lock().lanes.iter().any(|lane| lane.behind > 0) || standby.behind_bytes() > 0 {
            std::thread::yield_now();
        }
        if rule != Rule::Both {
            site.here.hold();
        }
        if rule == Rule::Received {
            site.there.hold();
        }
        log.commit().unwrap();
        let kept = (site.here.kept(), site.there.kept());
        match rule {
            Rule::Received => assert_eq!(kept, (99, 99), "it is in memory only, in both places"),
            Rule::Written => assert_eq!(kept, (99, 100)),
            Rule::Both => assert_eq!(kept, (100, 100)),
            _ => unreachable!("it is not among RULES"),
        }
        assert!(log.device.describe().contains("| standby: a device in memory"), "{}", log.device.describe());
        site.here.let_go();
        drop(log);
        site.there.let_go();
        // The standby writes what it received even after the log has ended.
        drop(standby);
        assert_eq!(site.there.kept(), 100, "{rule:?}");
        assert_eq!(site.here.durable(), site.there.durable());
    }
}

#[test]
fn the_rule_can_be_changed_while_the_log_is_written() {
    let site = Site::new();
    let (mut log, standby) = site.open(UnixStream::pair().unwrap().into(), Rule::Local, TIMEOUT);
    log.commit().unwrap();
    site.there.hold();
    log.commit().unwrap();
    assert_eq!(site.here.kept(), 2, "it waits for this side alone");
    for (rule, waits_for) in
        [(Rule::Both, &site.there), (Rule::Both, &site.here), (Rule::Written, &site.there), (Rule::Local, &site.here)]
    {
        standby.set_rule(rule);
        assert!(waits_for.delays_a_commit(&mut log), "{rule:?}");
        assert_eq!(waits_for.kept(), log.next, "{rule:?}");
    }
    assert!(log.device.describe().contains("durable when it is written here:"), "{}", log.device.describe());
    standby.set_rule(Rule::Received);
    log.commit().unwrap();
    site.here.hold();
    site.there.hold();
    log.commit().unwrap();
    site.here.let_go();
    site.there.let_go();
    drop((log, standby));
    assert_eq!((site.here.kept(), site.there.kept()), (8, 8));
}

#[test]
fn a_log_that_waits_for_itself_alone_outlives_its_standby() {
    let site = Site::new();
    let (mut log, standby) = site.log(Rule::Local);
    log.commit().unwrap();
    standby.receiver.stream.shutdown(std::net::Shutdown::Both).unwrap();
    for _ in 0..1000 {
        log.commit().unwrap();
        if standby.lost().is_some() {
            break;
        }
    }
    assert!(standby.lost().is_some());
    log.commit().unwrap();
    // A rule that needs the standby does not hold without it.
    standby.set_rule(Rule::Both);
    assert!(log.commit().is_err());
}

#[test]
fn a_standby_killed_in_mid_run_stops_the_log_and_nothing_acknowledged_is_missing() {
    for rule in RULES {
        let site = Site::new();
        let (mut log, standby) = site.log(rule);
        log.commits(20);
        drop(standby);
        let error = log.commit().unwrap_err().to_string();
        assert!(error.contains("log with a standby: 1 of 2 members left"), "{error}");
        assert!(error.contains("cannot reach the standby: "), "{error}");
        drop(log);
        assert!(site.here.kept() >= 20 && site.there.kept() >= 20, "{rule:?}");
    }
}

#[test]
fn a_standby_whose_disk_fails_says_so() {
    for rule in RULES {
        let site = Site::new();
        let (mut log, standby) = site.log(rule);
        log.commits(5);
        site.there.fail_writes_after(0);
        let error = (0..1000).find_map(|_| log.commit().err()).expect("it must come out").to_string();
        assert!(error.contains("the disk in memory") && error.contains("the standby"), "{rule:?}: {error}");
        assert!(standby.lost().is_some());
    }
}

#[test]
fn a_standby_whose_disk_hangs_is_given_up_in_time() {
    let site = Site::new();
    let (mut log, _standby) = site.open(over_tcp().unwrap(), Rule::Both, Duration::from_secs(2));
    log.commit().unwrap();
    site.there.hold();
    let begun = Instant::now();
    let error = log.commit().unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(15));
    site.there.let_go();
    assert!(error.contains("did not answer in time"), "{error}");
}
