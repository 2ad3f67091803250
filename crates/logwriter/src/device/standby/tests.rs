//! Logs with a standby that is slow, fails, disappears, sends garbage or does not answer.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::*;
use crate::device::LogDevice as _;
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

    fn receiver(&self) -> Receiver {
        Receiver::start(self.there.device(), None).unwrap()
    }

    fn set(&self, to: &str, rule: Rule, timeout: Duration) -> Result<(Replicas, StandbyControl), DeviceError> {
        let local = Member { name: "here".to_owned(), device: self.here.device(), storage: None };
        open_standby(local, to, rule, timeout)
    }

    fn open(&self, receiver: &Receiver, rule: Rule) -> TinyLog<Replicas> {
        let (set, _) = self.set(receiver.address(), rule, TIMEOUT).unwrap();
        TinyLog::open(set).unwrap()
    }
}

const RULES: [Rule; 3] = [Rule::Received, Rule::Written, Rule::Both];

#[test]
fn each_rule_waits_for_what_it_says_and_for_nothing_else() {
    for rule in RULES {
        let site = Site::new();
        let receiver = site.receiver();
        let mut log = site.open(&receiver, rule);
        log.commits(99);
        while log.device.watch().members().iter().any(|m| m.behind_bytes > 0) || receiver.behind_bytes() > 0 {
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
        assert!(log.device.describe().contains("standby at 127.0.0.1:"), "{}", log.device.describe());
        site.here.let_go();
        drop(log);
        site.there.let_go();
        // The standby writes what it received even after the log has ended.
        drop(receiver);
        assert_eq!(site.there.kept(), 100, "{rule:?}");
        assert_eq!(site.here.durable(), site.there.durable());
    }
}

#[test]
fn the_rule_can_be_changed_while_the_log_is_written() {
    let site = Site::new();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("standby.socket");
    let receiver = Receiver::start(site.there.device(), Some(&socket)).unwrap();
    assert_eq!(receiver.address(), socket.display().to_string());
    let (set, control) = site.set(receiver.address(), Rule::Local, TIMEOUT).unwrap();
    let mut log = TinyLog::open(set).unwrap();
    log.commit().unwrap();
    site.there.hold();
    log.commit().unwrap();
    assert_eq!(site.here.kept(), 2, "it waits for this side alone");
    for (rule, waits_for) in
        [(Rule::Both, &site.there), (Rule::Both, &site.here), (Rule::Written, &site.there), (Rule::Local, &site.here)]
    {
        control.set_rule(rule);
        assert!(waits_for.delays_a_commit(&mut log), "{rule:?}");
        assert_eq!(waits_for.kept(), log.next, "{rule:?}");
    }
    assert!(log.device.describe().contains("durable when it is written here:"), "{}", log.device.describe());
    control.set_rule(Rule::Received);
    log.commit().unwrap();
    site.here.hold();
    site.there.hold();
    log.commit().unwrap();
    site.here.let_go();
    site.there.let_go();
    drop((log, receiver));
    assert!(!socket.exists());
    assert_eq!((site.here.kept(), site.there.kept()), (8, 8));
}

#[test]
fn a_log_that_waits_for_itself_alone_outlives_its_standby() {
    let site = Site::new();
    let receiver = site.receiver();
    let (set, control) = site.set(receiver.address(), Rule::Local, TIMEOUT).unwrap();
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
    control.set_rule(Rule::Both);
    assert!(log.commit().is_err());
}

#[test]
fn a_standby_killed_in_mid_run_stops_the_log_and_nothing_acknowledged_is_missing() {
    for rule in RULES {
        let site = Site::new();
        let receiver = site.receiver();
        let mut log = site.open(&receiver, rule);
        log.commits(20);
        drop(receiver);
        let error = log.commit().unwrap_err().to_string();
        assert!(error.contains("log with a standby: 1 of 2 members left"), "{error}");
        assert!(error.contains("cannot reach the standby at 127.0.0.1:"), "{error}");
        drop(log);
        assert!(site.here.kept() >= 20 && site.there.kept() >= 20, "{rule:?}");
    }
}

#[test]
fn a_standby_whose_disk_fails_says_so() {
    for rule in RULES {
        let site = Site::new();
        let receiver = site.receiver();
        let mut log = site.open(&receiver, rule);
        log.commits(5);
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
    let to = silent.local_addr().unwrap().to_string();
    let begun = Instant::now();
    let error = site.set(&to, Rule::Both, Duration::from_millis(200)).err().unwrap().to_string();
    assert!(error.contains("did not answer in time"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    // A standby whose disk hangs during the run.
    let receiver = site.receiver();
    let (set, _) = site.set(receiver.address(), Rule::Both, Duration::from_secs(2)).unwrap();
    let mut log = TinyLog::open(set).unwrap();
    log.commit().unwrap();
    site.there.hold();
    let error = log.commit().unwrap_err().to_string();
    site.there.let_go();
    assert!(error.contains("did not answer in time"), "{error}");
}

#[test]
fn what_is_no_log_is_turned_away_and_disturbs_nobody() {
    let site = Site::new();
    let receiver = site.receiver();
    let mut log = site.open(&receiver, Rule::Both);
    log.commit().unwrap();
    for bytes in [&b"GET /index.html?q=1 HTTP/1.1\r\n"[..], b"", b"LLSB"] {
        let mut stranger = TcpStream::connect(receiver.address()).unwrap();
        stranger.write_all(bytes).unwrap();
        // It may have closed the connection already.
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        log.commit().unwrap();
        if bytes.len() == 30 {
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
fn a_second_log_is_refused() {
    let site = Site::new();
    let receiver = site.receiver();
    site.open(&receiver, Rule::Written).commit().unwrap();
    let second = Site { here: Site::new().here, ..site };
    let error = second.set(receiver.address(), Rule::Written, TIMEOUT).err().unwrap().to_string();
    assert!(error.contains("log files already"), "{error}");
}
