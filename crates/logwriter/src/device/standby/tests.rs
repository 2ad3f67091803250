//! Logs with a standby that is slow, fails, disappears, sends garbage or does not answer.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;
use crate::device::testing::{Disk, TinyLog, recover, scan};

const BLOCK: usize = 512;

struct Site {
    root: tempfile::TempDir,
    here: Disk,
    there: Disk,
}

impl Site {
    fn new() -> Site {
        let root = tempfile::tempdir().unwrap();
        for name in ["here", "there"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let disk = || Disk::new(BLOCK, 16 * BLOCK as u64);
        Site { root, here: disk(), there: disk() }
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn power_cut(&self) {
        self.here.power_cut();
        self.there.power_cut();
    }

    fn receiver(&self) -> Receiver {
        Receiver::start(self.there.device(), &self.dir("there"), &ReceiverOptions::default()).unwrap()
    }

    fn open(&self, to: &str, options: StandbyOptions) -> Result<(TinyLog<Replicas>, LinkWatch), DeviceError> {
        let local = Member::new(&self.dir("here"), Ok(self.here.device()));
        let (set, watch, _) = open_standby(local, to, options, &scan)?;
        Ok((TinyLog::open(set)?, watch))
    }
}

fn options(rule: StandbyRule, degrade: bool) -> StandbyOptions {
    StandbyOptions { rule, degrade, timeout: Duration::from_secs(20), ..StandbyOptions::default() }
}

const RULES: [StandbyRule; 3] = [StandbyRule::Received, StandbyRule::Written, StandbyRule::Both];

fn found(disk: &Disk) -> usize {
    recover(disk.device().as_ref()).unwrap().len()
}

#[test]
fn a_log_and_its_standby_end_up_the_same_by_each_rule() {
    for rule in RULES {
        let site = Site::new();
        let receiver = site.receiver();
        let (mut log, watch) = site.open(receiver.address(), options(rule, false)).unwrap();
        let before = watch.figures();
        for _ in 0..100 {
            log.commit().unwrap();
        }
        let figures = watch.figures();
        assert_eq!(figures.round_trips - before.round_trips, 100, "{rule:?}");
        assert!(figures.bytes - before.bytes >= 100 * (BLOCK as u64 + 32), "{figures:?}");
        assert!(figures.round_trip_ns >= figures.round_trip_ns_max && figures.round_trip_ns_max > 0, "{figures:?}");
        assert!(log.device.describe().contains("standby at 127.0.0.1:"), "{}", log.device.describe());
        drop((log, receiver));
        site.power_cut();
        assert_eq!(site.here.durable(), site.there.durable());
        assert_eq!(found(&site.there), 100);
    }
}

#[test]
fn each_rule_waits_for_what_it_says_and_for_nothing_else() {
    for rule in RULES {
        let site = Site::new();
        let receiver = site.receiver();
        let (mut log, _) = site.open(receiver.address(), options(rule, false)).unwrap();
        log.commit().unwrap();
        while log.device.watch().members().iter().any(|m| m.behind_bytes > 0) || receiver.behind_bytes() > 0 {
            std::thread::yield_now();
        }
        if rule != StandbyRule::Both {
            site.here.hold();
        }
        if rule == StandbyRule::Received {
            site.there.hold();
        }
        log.commit().unwrap();
        let (here, there) = (found(&site.here.snapshot()), found(&site.there.snapshot()));
        match rule {
            StandbyRule::Local => unreachable!("it is not among RULES"),
            StandbyRule::Received => assert_eq!((here, there), (1, 1), "it is in memory only, in both places"),
            StandbyRule::Written => assert_eq!((here, there), (1, 2)),
            StandbyRule::Both => assert_eq!((here, there), (2, 2)),
        }
        site.here.let_go();
        drop(log);
        site.there.let_go();
        // The standby writes what it received even after the log has ended.
        drop(receiver);
        site.there.power_cut();
        assert_eq!(found(&site.there), 2, "{rule:?}");
    }
}

#[test]
fn a_commit_does_not_return_before_its_rule_is_met() {
    for (rule, held) in [(StandbyRule::Written, "there"), (StandbyRule::Both, "there"), (StandbyRule::Both, "here")] {
        let site = Site::new();
        let receiver = site.receiver();
        let (mut log, _) = site.open(receiver.address(), options(rule, false)).unwrap();
        log.commit().unwrap();
        let disk = if held == "here" { &site.here } else { &site.there };
        disk.hold();
        std::thread::scope(|scope| {
            let commit = scope.spawn(|| log.commit().unwrap());
            std::thread::sleep(Duration::from_millis(100));
            let early = commit.is_finished();
            disk.let_go();
            assert!(!early, "{rule:?}: it is not written {held}");
        });
        assert_eq!(found(&disk.snapshot()), 2);
    }
}

#[test]
fn the_rule_can_be_changed_while_the_log_is_written() {
    let site = Site::new();
    let socket = site.dir("standby.socket").display().to_string();
    let listen = ReceiverOptions { listen: socket.clone(), ..ReceiverOptions::default() };
    let receiver = Receiver::start(site.there.device(), &site.dir("there"), &listen).unwrap();
    assert_eq!(receiver.address(), socket);
    let local = Member::new(&site.dir("here"), Ok(site.here.device()));
    let (set, watch, control) = open_standby(local, &socket, options(StandbyRule::Local, false), &scan).unwrap();
    let mut log = TinyLog::open(set).unwrap();
    log.commit().unwrap();
    site.there.hold();
    log.commit().unwrap();
    assert_eq!(found(&site.here.snapshot()), 2, "it waits for this side alone");
    let sent = watch.figures().bytes;
    for (rule, waits_for) in
        [(StandbyRule::Both, &site.there), (StandbyRule::Written, &site.there), (StandbyRule::Local, &site.here)]
    {
        control.set_rule(rule);
        waits_for.hold();
        std::thread::scope(|scope| {
            let commit = scope.spawn(|| log.commit().unwrap());
            std::thread::sleep(Duration::from_millis(50));
            let early = commit.is_finished();
            waits_for.let_go();
            assert!(!early, "{rule:?}");
        });
    }
    assert!(log.device.describe().contains("durable when it is written here:"), "{}", log.device.describe());
    control.set_rule(StandbyRule::Received);
    log.commit().unwrap();
    site.here.hold();
    site.there.hold();
    log.commit().unwrap();
    assert!(watch.figures().bytes > sent);
    site.here.let_go();
    site.there.let_go();
    // The labels name the last rule: what only the standby may have is not given up.
    drop((log, receiver));
    assert!(!std::path::Path::new(&socket).exists());
    site.power_cut();
    assert_eq!((found(&site.here), found(&site.there)), (7, 7));
    let error = site.open(&socket, options(StandbyRule::Local, true)).err().unwrap().to_string();
    assert!(error.contains("1 of 2 members left"), "{error}");
}

#[test]
fn a_log_that_waits_for_itself_alone_outlives_its_standby() {
    let site = Site::new();
    let receiver = site.receiver();
    let local = Member::new(&site.dir("here"), Ok(site.here.device()));
    let opened = open_standby(local, receiver.address(), options(StandbyRule::Local, false), &scan);
    let (set, _, control) = opened.unwrap();
    let mut log = TinyLog::open(set).unwrap();
    log.commit().unwrap();
    drop(receiver);
    for _ in 0..1000 {
        log.commit().unwrap();
        if control.watch().dropped() == 1 {
            break;
        }
    }
    assert!(control.watch().members()[1].dropped.is_some());
    log.commit().unwrap();
    // A rule that needs the standby does not hold without it.
    control.set_rule(StandbyRule::Both);
    assert!(log.commit().is_err());
}

#[test]
fn a_standby_killed_in_mid_run_stops_a_strict_log_and_nothing_acknowledged_is_missing() {
    for rule in RULES {
        let site = Site::new();
        let receiver = site.receiver();
        let (mut log, _) = site.open(receiver.address(), options(rule, false)).unwrap();
        for _ in 0..20 {
            log.commit().unwrap();
        }
        drop(receiver);
        let error = log.commit().unwrap_err().to_string();
        assert!(error.contains("log with a standby: 1 of 2 members left"), "{error}");
        assert!(error.contains("cannot reach the standby at 127.0.0.1:"), "{error}");
        drop(log);
        site.power_cut();
        let receiver = site.receiver();
        let (log, _) = site.open(receiver.address(), options(rule, false)).unwrap();
        assert!(log.next >= 20, "{rule:?}: {}", log.next);
    }
}

#[test]
fn a_log_that_may_degrade_goes_on_and_brings_the_standby_up_to_date_later() {
    for rule in RULES {
        let site = Site::new();
        site.here.slow_down(Duration::from_millis(2));
        let receiver = site.receiver();
        let degrade = options(rule, true);
        let (mut log, _) = site.open(receiver.address(), degrade).unwrap();
        for _ in 0..20 {
            log.commit().unwrap();
        }
        drop(receiver);
        log.commit().unwrap();
        assert!(found(&site.here.snapshot()) >= 21, "{rule:?}: what only the standby had is written here first");
        for _ in 0..20 {
            log.commit().unwrap();
        }
        let members = log.device.watch().members();
        assert!(members[1].dropped.as_ref().is_some_and(|why| why.contains("cannot reach")), "{members:?}");
        drop(log);
        site.power_cut();
        assert!(found(&site.there) < 41);
        // Without the standby, which is known to be behind ...
        let (mut log, _) = site.open("127.0.0.1:1", degrade).unwrap();
        assert_eq!(log.next, 41);
        log.commit().unwrap();
        drop(log);
        // ... and with it again.
        let receiver = site.receiver();
        let (log, _) = site.open(receiver.address(), degrade).unwrap();
        assert_eq!((log.next, log.device.opened().rebuilt.len()), (42, 1));
        drop((log, receiver));
        assert_eq!(found(&site.there), 42);
    }
}

#[test]
fn the_local_disk_lost_in_mid_run_loses_nothing_that_the_standby_has() {
    for rule in [StandbyRule::Received, StandbyRule::Written] {
        let site = Site::new();
        let receiver = site.receiver();
        let (mut log, _) = site.open(receiver.address(), options(rule, false)).unwrap();
        for number in 0..20 {
            if number == 5 {
                // The next sync fails. How many commits share one is up to the local writer.
                site.here.fail_syncs_after(0);
            }
            log.commit().unwrap();
        }
        drop((log, receiver));
        site.power_cut();
        assert!(found(&site.here) <= 5);
        assert_eq!(found(&site.there), 20);
        let receiver = site.receiver();
        let (log, _) = site.open(receiver.address(), options(rule, false)).unwrap();
        assert_eq!(log.next, 20);
        drop((log, receiver));
        assert_eq!(found(&site.here), 20, "it was brought up to date");
    }
}

#[test]
fn a_standby_that_must_have_it_must_be_there_to_open() {
    for rule in [StandbyRule::Received, StandbyRule::Written] {
        let site = Site::new();
        site.here.hold();
        let receiver = site.receiver();
        let (mut log, _) = site.open(receiver.address(), options(rule, true)).unwrap();
        for _ in 0..20 {
            log.commit().unwrap();
        }
        let lagging = site.here.snapshot();
        assert_eq!(found(&lagging), 0);
        site.here.let_go();
        drop((log, receiver));
        // Power cut on this side before the log has caught up.
        site.here.set_durable(lagging.durable());
        site.here.power_cut();
        let error = site.open("127.0.0.1:1", options(rule, true)).err().unwrap().to_string();
        assert!(error.contains("1 of 2 members left") && error.contains("cannot reach"), "{error}");
        let receiver = site.receiver();
        assert_eq!(site.open(receiver.address(), options(rule, true)).unwrap().0.next, 20);
    }
}

#[test]
fn a_standby_whose_disk_fails_says_so() {
    for rule in RULES {
        let site = Site::new();
        let receiver = site.receiver();
        let (mut log, _) = site.open(receiver.address(), options(rule, false)).unwrap();
        for _ in 0..5 {
            log.commit().unwrap();
        }
        site.there.fail_writes_after(0);
        let error = (0..1000).find_map(|_| log.commit().err()).expect("it must come out").to_string();
        assert!(error.contains("the disk in memory") && error.contains("standby at"), "{rule:?}: {error}");
        assert!(receiver.failed().is_some());
    }
}

#[test]
fn a_standby_that_says_nothing_is_given_up_in_time() {
    let site = Site::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let wait = StandbyOptions { timeout: Duration::from_millis(200), ..options(StandbyRule::Both, false) };
    let begun = Instant::now();
    let error = site.open(&silent.local_addr().unwrap().to_string(), wait).err().unwrap().to_string();
    assert!(error.contains("did not answer in time"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    // A standby whose disk hangs during the run.
    let wait = StandbyOptions { timeout: Duration::from_secs(2), ..wait };
    let receiver = site.receiver();
    let (mut log, _) = site.open(receiver.address(), wait).unwrap();
    log.commit().unwrap();
    site.there.hold();
    let error = log.commit().unwrap_err().to_string();
    site.there.let_go();
    assert!(error.contains("did not answer in time"), "{error}");
}

#[test]
fn it_listens_where_others_reach_it_only_when_told() {
    let site = Site::new();
    let start = |listen: &str, allow_remote| {
        let options = ReceiverOptions { listen: listen.into(), allow_remote, ..ReceiverOptions::default() };
        Receiver::start(site.there.device(), &site.dir("there"), &options)
    };
    for address in ["0.0.0.0:0", "[::]:0"] {
        let error = start(address, false).err().unwrap().to_string();
        assert!(error.contains("there is no password"), "{error}");
    }
    assert!(start("0.0.0.0:0", true).is_ok());
    assert!(start("no such host:1", false).is_err());
    let taken = start("127.0.0.1:0", false).unwrap();
    assert!(start(taken.address(), false).is_err());
}

#[test]
fn what_is_no_log_is_turned_away_and_disturbs_nobody() {
    let site = Site::new();
    let receiver = site.receiver();
    let (mut log, _) = site.open(receiver.address(), options(StandbyRule::Both, false)).unwrap();
    log.commit().unwrap();
    for bytes in [&b"GET /index.html?q=123 HTTP/1.1\r\n"[..], b"", b"LLSB"] {
        let mut stranger = TcpStream::connect(receiver.address()).unwrap();
        stranger.write_all(bytes).unwrap();
        // It may have closed the connection already.
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        log.commit().unwrap();
        if bytes.len() == 32 {
            assert!(String::from_utf8_lossy(&answer).contains("not the protocol of loadline"), "{answer:?}");
        }
    }
    // A frame damaged in transit is not written.
    let mut damaged = Vec::new();
    let head = frame::Head::new(frame::Kind::Hello);
    head.send(&[], &mut Vec::new(), &mut damaged).unwrap();
    damaged[12] ^= 1;
    let mut stranger = TcpStream::connect(receiver.address()).unwrap();
    stranger.write_all(&damaged).unwrap();
    let mut answer = Vec::new();
    stranger.read_to_end(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("checksum"), "{answer:?}");
    log.commit().unwrap();
}

#[test]
fn a_second_log_takes_over_and_the_first_is_told() {
    let site = Site::new();
    let receiver = site.receiver();
    let to = receiver.address();
    let (mut first, _) = site.open(to, options(StandbyRule::Written, false)).unwrap();
    for _ in 0..10 {
        first.commit().unwrap();
    }
    let (mut second, _) = site.open(to, options(StandbyRule::Written, false)).unwrap();
    assert!(second.next >= 10);
    let error = first.commit().unwrap_err().to_string();
    assert!(error.contains("another log has connected"), "{error}");
    second.commit().unwrap();
}
