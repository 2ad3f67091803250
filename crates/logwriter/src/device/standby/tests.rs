//! Logs with a standby that is slow, fails, disappears or does not answer.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use super::frame::{Head, Kind};
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
        assert!(error.contains("cannot reach the standby (a device in memory): "), "{error}");
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

#[test]
fn a_standby_whose_disk_hangs_while_it_prepares_a_file_is_given_up_in_time() {
    let site = Site::new();
    let [here, there] = UnixStream::pair().unwrap().into();
    let receiver = Receiver::start(there, site.there.device()).unwrap();
    let mut link = Link::open(here, TIMEOUT, &Arc::new(Mutex::new(Rule::Both)), &receiver.device).unwrap();
    assert_eq!(link.file_limit, Duration::from_secs(60));
    link.file_maker().make(0, None).unwrap();
    link.file_limit = Duration::from_millis(50);
    site.there.hold();
    let mut maker = link.file_maker();
    for _ in 0..2 {
        let error = maker.make(1, None).unwrap_err().to_string();
        assert!(error.contains("the standby (a device in memory): it did not prepare a log file in time"), "{error}");
    }
    site.there.let_go();
}

#[test]
fn a_standby_that_holds_files_is_refused() {
    let site = Site::new();
    site.log(Rule::Both).0.commit().unwrap();
    let local = Member { name: "here".to_owned(), device: Site::new().here.device(), storage: None };
    let opened = open_standby(local, site.there.device(), over_tcp().unwrap(), Rule::Both, TIMEOUT);
    let error = opened.map(drop).unwrap_err().to_string();
    assert!(error.contains("take standby: a device in memory as a member: it holds log files already"), "{error}");
}

#[test]
fn a_stranger_who_connects_first_is_not_the_standby() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let _stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let [mut here, mut there] = through(&listener).unwrap();
    here.write_all(b"ours").unwrap();
    there.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut read = [0; 4];
    there.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"ours");
}

#[test]
fn a_damaged_frame_is_refused_and_not_written() {
    let site = Site::new();
    let [mut here, there] = UnixStream::pair().unwrap().into();
    here.set_read_timeout(Some(TIMEOUT)).unwrap();
    let receiver = Receiver::start(there, site.there.device()).unwrap();
    let (mut memory, mut wire) = (Vec::new(), Vec::new());
    Head::new(Kind::Open).send(&[], &mut memory, &mut here).unwrap();
    assert_eq!(Head::receive(&mut here).unwrap().kind, Kind::Done);
    Head::new(Kind::WriteSync).send(&[1; BLOCK], &mut memory, &mut wire).unwrap();
    *wire.last_mut().unwrap() ^= 1;
    here.write_all(&wire).unwrap();
    let answer = Head::receive(&mut here).unwrap();
    let why = String::from_utf8(answer.body(&mut here).unwrap()).unwrap();
    assert!(answer.kind == Kind::Failed && why.contains("damaged in transit"), "{answer:?}: {why}");
    drop(receiver);
    assert!(site.there.durable()[&0].iter().all(|byte| *byte == 0));
}
