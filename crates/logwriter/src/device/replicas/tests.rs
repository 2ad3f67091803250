//! Mirrors and flash logs whose members lag and fail: every acknowledged commit is found again on those that work.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::device::testing::{Disk, TinyLog, recover};

const BLOCK: usize = 512;
const FILE: u64 = 16 * 512;

fn disks(members: usize) -> Vec<Disk> {
    (0..members).map(|_| Disk::new(BLOCK, FILE)).collect()
}

fn members(disks: &[Disk]) -> Vec<Member> {
    let member =
        |(i, disk): (usize, &Disk)| Member { name: format!("member-{i}"), device: disk.device(), storage: None };
    disks.iter().enumerate().map(member).collect()
}

fn open(disks: &[Disk], rule: Rule) -> Result<Replicas, DeviceError> {
    Replicas::open("mirror", rule, members(disks))
}

fn mirror(disks: &[Disk], rule: Rule) -> TinyLog<Replicas> {
    TinyLog::open(open(disks, rule).unwrap()).unwrap()
}

fn refused<T>(result: Result<T, DeviceError>, words: &[&str]) {
    let error = result.err().expect("this must be refused").to_string();
    words.iter().for_each(|w| assert!(error.contains(w), "`{w}` is not in: {error}"));
}

#[test]
fn a_rule_that_the_members_cannot_meet_is_refused() {
    for (members, rule) in [(2, Rule::Quorum(0)), (2, Rule::Quorum(3)), (0, Rule::All), (1, Rule::Written)] {
        refused(open(&disks(members), rule), &["mirror cannot be durable when", &format!("it has {members} members")]);
    }
}

#[test]
fn a_mirror_writes_the_same_to_all_over_many_files() {
    let disks = disks(3);
    let mut log = mirror(&disks, Rule::All);
    log.commits(100);
    let bytes: Vec<u64> = log.device.board.lock().lanes.iter().map(|lane| lane.bytes).collect();
    assert_eq!(bytes, [100 * BLOCK as u64; 3]);
    let synced = || disks.iter().map(Disk::syncs).collect::<Vec<_>>();
    let before = synced();
    log.device.sync().unwrap();
    assert_eq!(synced(), before.iter().map(|syncs| syncs + 1).collect::<Vec<_>>(), "a sync alone reaches all");
    assert_eq!(recover(&log.device).unwrap().len(), 100);
    assert!(log.device.describe().starts_with("mirror, durable when all have it: "), "{}", log.device.describe());
    drop(log);
    assert!(disks.iter().all(|disk| disk.durable() == disks[0].durable()));
    assert_eq!(disks[0].durable().len(), 7);
}

#[test]
fn a_mirror_lost_in_mid_run_stops_the_log_and_nothing_acknowledged_is_missing() {
    for fault in [Disk::fail_writes_after, Disk::fail_syncs_after] {
        let disks = disks(2);
        let mut log = mirror(&disks, Rule::All);
        log.commits(20);
        fault(&disks[1], 0);
        refused(log.commit(), &["mirror: 1 of 2 members left, 2 needed", "member-1", "Repair the one that failed"]);
        refused(log.commit(), &["1 of 2"]);
        let failed = |member: usize| log.device.board.lock().lanes[member].failed.clone();
        assert!(failed(1).is_some_and(|why| why.contains("the disk in memory")));
        assert_eq!(failed(0), None);
        assert!(disks[0].kept() >= 20);
    }
}

#[test]
fn a_quorum_does_not_wait_for_a_slow_mirror_and_it_catches_up() {
    let disks = disks(3);
    disks[2].hold();
    let mut log = mirror(&disks, Rule::Quorum(2));
    log.commits(60);
    let slow = |of: fn(&LaneState) -> bool| of(&log.device.board.lock().lanes[2]);
    assert!(slow(|lane| lane.behind > 0 && lane.failed.is_none()));
    assert_eq!(disks.iter().map(Disk::kept).collect::<Vec<_>>(), [60, 60, 0], "two must have all");
    disks[2].let_go();
    drop(log);
    assert_eq!(disks[2].kept(), 60, "closing lets it catch up");
    assert!(disks[2].syncs() < 60, "and it makes one sync of several");
}

#[test]
fn what_waits_for_a_slow_member_is_bounded() {
    let disks = disks(2);
    disks[0].slow_down(Duration::from_millis(5));
    let mut log = mirror(&disks, Rule::Quorum(1));
    log.device.backlog_bytes = 4 * BLOCK;
    for _ in 0..40 {
        log.commit().unwrap();
        assert!(log.device.board.lock().lanes[0].behind <= 4 * BLOCK);
    }
}

#[test]
fn a_quorum_goes_on_without_one_and_stops_without_two() {
    let disks = disks(3);
    let mut log = mirror(&disks, Rule::Quorum(2));
    log.commits(10);
    disks[1].fail_syncs_after(0);
    log.commits(10);
    // The writer sees the failure at the next commit at the latest.
    while log.device.board.works(1) {
        log.commit().unwrap();
    }
    let acknowledged = log.next;
    while log.device.board.lock().lanes.iter().any(|lane| lane.behind > 0) {
        std::thread::yield_now();
    }
    disks[0].fail_syncs_after(0);
    refused(log.commit(), &["1 of 3 members left, 2 needed"]);
    assert!(disks[0].kept() >= acknowledged && disks[2].kept() >= acknowledged);
}

#[test]
fn when_the_faster_half_dies_the_slower_one_has_all_before_the_log_goes_on() {
    let disks = disks(2);
    disks[0].hold();
    let mut log = mirror(&disks, Rule::Quorum(1));
    log.commits(20);
    disks[1].fail_writes_after(0);
    let board = Arc::clone(&log.device.board);
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| log.commit().unwrap());
        while board.works(1) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(disks[0].kept(), 0);
        let early = commit.is_finished();
        disks[0].let_go();
        assert!(!early, "the only one with acknowledged commits was left out");
    });
    assert_eq!(disks[0].kept(), 21);
    log.commits(5);
    assert_eq!(disks[0].kept(), 26);
}

#[test]
fn members_that_do_not_belong_together_are_refused() {
    let used = disks(2);
    mirror(&used, Rule::All).commits(3);
    refused(open(&used, Rule::All), &["take member-0", "log files already", "empty directory"]);
    let sizes = [Disk::new(BLOCK, FILE), Disk::new(BLOCK, 2 * FILE)];
    refused(open(&sizes, Rule::All), &["one file size"]);
}

#[test]
fn a_member_whose_files_cannot_be_made_drops_out() {
    for rule in [Rule::Quorum(1), Rule::All] {
        let disks = disks(2);
        disks[1].fill_up();
        let mut set = open(&disks, rule).unwrap();
        let mut maker = set.file_maker();
        maker.make(0, None).unwrap();
        let result = set.open_file(0).and_then(|()| set.sync());
        assert_eq!(result.is_ok(), rule != Rule::All, "{result:?}");
        let state = set.board.lock();
        assert!(state.live() == [0] && state.lanes[1].failed.as_ref().unwrap().contains("No space left"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Members fail and slow down at random moments, the power is cut: as many members as the rule names have everything
    /// acknowledged, or all that work.
    #[test]
    fn nothing_acknowledged_is_ever_missing(
        members in 2_usize..4,
        rule in 0_usize..4,
        faults in prop::collection::vec((1_u64..12, 0_usize..4, 0_u64..8, any::<bool>()), 1..6),
    ) {
        let disks = disks(members);
        let rule = if rule == 0 { Rule::All } else { Rule::Quorum(rule.min(members)) };
        let mut log = mirror(&disks, rule);
        'lives: for (count, victim, after, slow) in faults {
            if victim < members {
                match slow {
                    true => disks[victim].slow_down(Duration::from_millis(2)),
                    false => disks[victim].fail_syncs_after(after),
                }
            }
            for _ in 0..count {
                if log.commit().is_err() {
                    break 'lives;
                }
            }
        }
        // Power cut now, before the slower members have caught up. `next` is the number of acknowledged commits.
        let have = disks.iter().filter(|disk| disk.kept() >= log.next).count();
        let wanted = if let Rule::Quorum(n) = rule { n } else { members };
        prop_assert!(have >= wanted, "{have} of {members} have {} commits", log.next);
    }
}
