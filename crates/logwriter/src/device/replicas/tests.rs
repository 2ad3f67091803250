//! Mirrors and flash logs whose members lag, fail, disappear and return: every acknowledged commit is found again, or
//! the set refuses to open.

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::device::fault::{DeviceCall, Failure, Fault, FaultDevice};
use crate::device::testing::{Disk, TinyLog, recover, scan};
use crate::device::{Durable, FlashOptions, MirrorOptions, open_flash_log, open_mirror};

const BLOCK: usize = 512;
const FILE: u64 = 16 * 512;

/// Disks and the directories of their labels.
struct Site {
    _root: tempfile::TempDir,
    disks: Vec<Disk>,
    dirs: Vec<PathBuf>,
}

impl Site {
    fn new(members: usize) -> Site {
        let root = tempfile::tempdir().unwrap();
        let dirs: Vec<_> = (0..members).map(|i| root.path().join(format!("member-{i}"))).collect();
        dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        Site { _root: root, disks: (0..members).map(|_| Disk::new(BLOCK, FILE)).collect(), dirs }
    }

    /// The members, those in `gone` missing.
    fn members(&self, gone: &[usize]) -> Vec<Member> {
        let device = |i: usize| match gone.contains(&i) {
            true => Err(DeviceError::Unsupported {
                what: "the disk".into(),
                wish: "be opened".into(),
                why: "it was pulled out".into(),
                advice: "Put it back".into(),
            }),
            false => Ok(self.disks[i].device()),
        };
        self.dirs.iter().enumerate().map(|(i, dir)| Member::new(dir, device(i))).collect()
    }

    fn mirror(&self, options: MirrorOptions, gone: &[usize]) -> Result<Replicas, DeviceError> {
        open_mirror(self.members(gone), options, &scan)
    }

    fn flash(&self, gone: &[usize]) -> Result<Replicas, DeviceError> {
        let members = <[Member; 2]>::try_from(self.members(gone)).ok().unwrap();
        open_flash_log(members, FlashOptions::default(), &scan)
    }

    fn power_cut(&self) {
        self.disks.iter().for_each(Disk::power_cut);
    }

    /// Replaces a member by an empty one.
    fn replace(&mut self, i: usize) {
        self.disks[i] = Disk::new(BLOCK, FILE);
        std::fs::remove_file(self.dirs[i].join("replica.label")).unwrap();
    }
}

fn quorum(n: usize) -> MirrorOptions {
    MirrorOptions { durable: Durable::Quorum(n), ..MirrorOptions::default() }
}

fn all(degrade: bool) -> MirrorOptions {
    MirrorOptions { degrade, ..MirrorOptions::default() }
}

fn commits(log: &mut TinyLog<Replicas>, n: u64) {
    for _ in 0..n {
        log.commit().unwrap();
    }
}

fn refused<T>(result: Result<T, DeviceError>, words: &[&str]) {
    let error = result.err().expect("this must be refused").to_string();
    words.iter().for_each(|w| assert!(error.contains(w), "`{w}` is not in: {error}"));
}

#[test]
fn a_mirror_writes_the_same_to_all_over_many_files() {
    let site = Site::new(3);
    let mut log = TinyLog::open(site.mirror(all(false), &[]).unwrap()).unwrap();
    commits(&mut log, 100);
    let watch = log.device.watch();
    assert_eq!(watch.members().iter().map(|m| m.bytes).collect::<Vec<_>>(), [100 * BLOCK as u64; 3]);
    assert_eq!(recover(&log.device).unwrap().len(), 100);
    assert!(log.device.describe().starts_with("mirror, durable when all have it: "), "{}", log.device.describe());
    drop(log);
    site.power_cut();
    assert_eq!(site.disks[0].durable(), site.disks[1].durable());
    assert_eq!(site.disks[0].durable(), site.disks[2].durable());
    assert_eq!(site.disks[0].durable().len(), 7);
}

#[test]
fn a_mirror_lost_in_mid_run_stops_a_strict_log_and_nothing_acknowledged_is_missing() {
    let site = Site::new(2);
    let mut log = TinyLog::open(site.mirror(all(false), &[]).unwrap()).unwrap();
    commits(&mut log, 20);
    site.disks[1].fail_writes_after(0);
    refused(log.commit(), &["mirror: 1 of 2 members left, 2 needed", "member-1", "Repair the one that failed"]);
    refused(log.commit(), &["1 of 2"]);
    drop(log);
    site.power_cut();
    let log = TinyLog::open(site.mirror(all(false), &[]).unwrap()).unwrap();
    assert!(log.next >= 20);
}

#[test]
fn a_mirror_that_may_degrade_goes_on_and_the_one_that_was_left_behind_is_rebuilt() {
    for fault in [Disk::fail_writes_after, Disk::fail_syncs_after] {
        let site = Site::new(2);
        let mut log = TinyLog::open(site.mirror(all(true), &[]).unwrap()).unwrap();
        commits(&mut log, 20);
        fault(&site.disks[0], 3);
        commits(&mut log, 20);
        let (watch, members) = (log.device.watch(), log.device.watch().members());
        assert_eq!(watch.dropped(), 1);
        assert!(members[0].dropped.as_ref().is_some_and(|why| why.contains("the disk in memory")), "{members:?}");
        assert_eq!(members[1].dropped, None);
        drop(log);
        site.power_cut();
        assert!(recover(site.disks[0].device().as_ref()).unwrap().len() < 40, "the fault did not happen");
        // The outdated member alone must not be taken for the log ...
        refused(site.mirror(all(true), &[1]), &["1 of 2", "member-1", "it was pulled out"]);
        // ... and is rebuilt from the other.
        let set = site.mirror(all(true), &[]).unwrap();
        assert_eq!(set.opened().rebuilt.len(), 1, "{:?}", set.opened());
        let mut log = TinyLog::open(set).unwrap();
        assert_eq!(log.next, 40);
        commits(&mut log, 20);
        drop(log);
        site.power_cut();
        assert_eq!(site.disks[0].durable(), site.disks[1].durable());
        assert_eq!(recover(site.disks[0].device().as_ref()).unwrap().len(), 60);
    }
}

#[test]
fn a_quorum_does_not_wait_for_a_slow_mirror_and_it_catches_up() {
    let site = Site::new(3);
    site.disks[2].hold();
    let mut log = TinyLog::open(site.mirror(quorum(2), &[]).unwrap()).unwrap();
    commits(&mut log, 60);
    let members = log.device.watch().members();
    assert!(members[2].behind_bytes > 0 && members[2].dropped.is_none(), "{members:?}");
    let now: Vec<_> = site.disks.iter().map(|d| recover(d.snapshot().device().as_ref()).unwrap().len()).collect();
    assert_eq!(now, [60, 60, 0], "two must have all");
    site.disks[2].let_go();
    drop(log);
    site.power_cut();
    assert_eq!(recover(site.disks[2].device().as_ref()).unwrap().len(), 60, "closing lets it catch up");
    assert!(site.disks[2].syncs() < 60, "and it makes one sync of several");
}

#[test]
fn what_waits_for_a_slow_member_is_bounded() {
    let site = Site::new(2);
    site.disks[0].slow_down(Duration::from_millis(5));
    let options = MirrorOptions { backlog_bytes: 4 * BLOCK, ..quorum(1) };
    let mut log = TinyLog::open(site.mirror(options, &[]).unwrap()).unwrap();
    for _ in 0..40 {
        log.commit().unwrap();
        assert!(log.device.watch().members()[0].behind_bytes <= 4 * BLOCK as u64);
    }
    assert!(log.device.watch().stalls() > 0);
}

#[test]
fn a_quorum_loses_nothing_whichever_mirror_is_gone_afterwards() {
    for gone in 0..3 {
        let site = Site::new(3);
        site.disks[gone].slow_down(Duration::from_millis(2));
        let mut log = TinyLog::open(site.mirror(quorum(2), &[]).unwrap()).unwrap();
        commits(&mut log, 30);
        drop(log);
        site.power_cut();
        for (lost, ok) in [(vec![gone], true), (vec![gone, (gone + 1) % 3], false)] {
            match site.mirror(quorum(2), &lost) {
                Ok(set) if ok => assert!(recover(&set).unwrap().len() >= 30),
                result => refused(result, &["1 of 3 members left, 2 needed", "it was pulled out"]),
            }
        }
    }
}

#[test]
fn a_quorum_goes_on_without_one_and_stops_without_two() {
    let site = Site::new(3);
    let mut log = TinyLog::open(site.mirror(quorum(2), &[]).unwrap()).unwrap();
    commits(&mut log, 10);
    site.disks[1].fail_syncs_after(0);
    commits(&mut log, 10);
    // The writer sees the failure at the next commit at the latest.
    while log.device.watch().dropped() == 0 {
        log.commit().unwrap();
    }
    let acknowledged = log.next;
    site.disks[0].fail_syncs_after(0);
    refused(log.commit(), &["1 of 3 members left, 2 needed"]);
    drop(log);
    site.power_cut();
    // The mirror that dropped out does not count: it lacks the later commits.
    refused(site.mirror(quorum(2), &[0, 2]), &["members left"]);
    assert!(recover(&site.mirror(quorum(2), &[]).unwrap()).unwrap().len() as u64 >= acknowledged);
}

#[test]
fn a_flash_log_is_as_fast_as_its_faster_half_and_either_may_be_the_newer() {
    let site = Site::new(2);
    site.disks[0].hold();
    let mut log = TinyLog::open(site.flash(&[]).unwrap()).unwrap();
    commits(&mut log, 20);
    let members = log.device.watch().members();
    assert_eq!((members[0].first, members[1].first), (0, 20), "{members:?}");
    // Power cut: the slower half has almost nothing.
    let halves: Vec<_> = site.disks.iter().map(Disk::snapshot).collect();
    site.disks[0].let_go();
    drop(log);
    assert_eq!(recover(halves[0].device().as_ref()).unwrap().len(), 0);
    let again = Site { _root: tempfile::tempdir().unwrap(), disks: halves, dirs: site.dirs.clone() };
    refused(again.flash(&[1]), &["flash log: 1 of 2 members left, 2 needed", "it was pulled out"]);
    let set = again.flash(&[]).unwrap();
    assert_eq!(set.opened().healed.len(), 1, "{:?}", set.opened());
    assert!(recover(&set).unwrap().len() >= 20);
}

#[test]
fn when_the_faster_half_dies_the_slower_one_has_all_before_the_log_goes_on() {
    let site = Site::new(2);
    site.disks[0].slow_down(Duration::from_millis(30));
    let mut log = TinyLog::open(site.flash(&[]).unwrap()).unwrap();
    commits(&mut log, 20);
    site.disks[1].fail_writes_after(0);
    let acknowledged = log.commit().unwrap() + 1;
    let alone = site.disks[0].snapshot();
    assert!(recover(alone.device().as_ref()).unwrap().len() as u64 >= acknowledged);
    drop(log);
    site.power_cut();
    // Its label says that it is alone, so it may be opened alone.
    let mut log = TinyLog::open(site.flash(&[1]).unwrap()).unwrap();
    assert_eq!(log.next, acknowledged);
    commits(&mut log, 5);
    drop(log);
    refused(site.flash(&[0]), &["members left"]);
    assert_eq!(TinyLog::open(site.flash(&[]).unwrap()).unwrap().next, acknowledged + 5);
}

#[test]
fn a_label_says_that_one_is_alone_only_once_it_has_all_that_was_acknowledged() {
    let site = Site::new(2);
    site.disks[0].hold();
    let mut log = TinyLog::open(site.flash(&[]).unwrap()).unwrap();
    commits(&mut log, 20);
    site.disks[1].fail_writes_after(0);
    let current = || {
        let text = std::fs::read_to_string(site.dirs[0].join("replica.label")).unwrap();
        Label::decode(&text).unwrap().current
    };
    let watch = log.device.watch();
    std::thread::scope(|scope| {
        scope.spawn(|| log.commit().unwrap());
        while watch.dropped() == 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(recover(site.disks[0].snapshot().device().as_ref()).unwrap().len(), 0);
        let then = current();
        site.disks[0].let_go();
        assert_eq!(then, [0, 1], "the only one with acknowledged commits was left out");
    });
    assert_eq!(current(), [0]);
    assert_eq!(recover(site.disks[0].snapshot().device().as_ref()).unwrap().len(), 21);
}

#[test]
fn a_member_replaced_by_an_empty_one_is_rebuilt() {
    let mut site = Site::new(3);
    let mut log = TinyLog::open(site.mirror(quorum(2), &[]).unwrap()).unwrap();
    commits(&mut log, 50);
    drop(log);
    site.replace(1);
    let set = site.mirror(quorum(2), &[]).unwrap();
    assert_eq!((set.opened().rebuilt.len(), set.opened().missing.len()), (1, 0), "{:?}", set.opened());
    drop(set);
    assert_eq!(recover(site.disks[1].device().as_ref()).unwrap().len(), 50);
}

#[test]
fn what_rotted_on_one_is_taken_from_the_other_even_if_that_one_is_behind() {
    let site = Site::new(2);
    let mut log = TinyLog::open(site.flash(&[]).unwrap()).unwrap();
    commits(&mut log, 10);
    while log.device.watch().members()[1].behind_bytes > 0 {
        std::thread::yield_now();
    }
    site.disks[1].hold();
    commits(&mut log, 10);
    let disks: Vec<_> = site.disks.iter().map(Disk::snapshot).collect();
    site.disks[1].let_go();
    drop(log);
    assert_eq!(recover(disks[1].device().as_ref()).unwrap().len(), 10);
    disks[0].rot(0, 5 * BLOCK + 100);
    assert_eq!(recover(disks[0].device().as_ref()).unwrap().len(), 5);
    let again = Site { _root: tempfile::tempdir().unwrap(), disks, dirs: site.dirs.clone() };
    assert_eq!(recover(&again.flash(&[]).unwrap()).unwrap().len(), 20);
    assert_eq!(again.disks[0].durable(), again.disks[1].durable());
}

#[test]
fn members_that_do_not_belong_together_are_refused() {
    let (one, other) = (Site::new(2), Site::new(2));
    for site in [&one, &other] {
        commits(&mut TinyLog::open(site.mirror(all(false), &[]).unwrap()).unwrap(), 3);
    }
    let mut mixed = one.members(&[]);
    mixed[1] = other.members(&[]).remove(1);
    refused(open_mirror(mixed, all(false), &scan), &["different sets"]);
    let mut swapped = one.members(&[]);
    swapped.swap(0, 1);
    refused(open_mirror(swapped, all(false), &scan), &["it was member 1 of 2", "in the same order"]);
    std::fs::remove_file(one.dirs[0].join("replica.label")).unwrap();
    refused(
        one.mirror(all(false), &[]),
        &["holds log files that were not written as part of a replica set", "empty directory"],
    );
    std::fs::write(other.dirs[0].join("replica.label"), "loadline replica 1\n").unwrap();
    refused(other.mirror(all(false), &[]), &["its label is damaged"]);
    refused(open_mirror(Site::new(1).members(&[]), all(false), &scan), &["two or three"]);
    refused(Site::new(2).mirror(quorum(3), &[]), &["it has 2 members"]);
    let mut sizes = Site::new(2);
    sizes.disks[1] = Disk::new(BLOCK, 2 * FILE);
    refused(sizes.mirror(all(false), &[]), &["one file size"]);
}

#[test]
fn empty_members_alone_are_no_new_log() {
    let mut site = Site::new(2);
    commits(&mut TinyLog::open(site.mirror(all(true), &[]).unwrap()).unwrap(), 3);
    site.replace(1);
    refused(site.mirror(all(true), &[0]), &["1 of 2 members left, 2 needed", "it was pulled out"]);
    // The member replaced by the empty one may have continued alone: the user must accept its loss.
    refused(site.mirror(all(true), &[]), &["1 of 2 members left", "member-1: it is empty", "only they have are lost"]);
    let lost = MirrorOptions { accept_missing: true, ..all(true) };
    assert_eq!(TinyLog::open(site.mirror(lost, &[]).unwrap()).unwrap().next, 3);
}

#[test]
fn two_that_went_on_without_each_other_are_not_put_together() {
    let site = Site::new(2);
    commits(&mut TinyLog::open(site.mirror(all(true), &[]).unwrap()).unwrap(), 3);
    let alone = MirrorOptions { accept_missing: true, ..all(true) };
    for gone in [0, 1] {
        commits(&mut TinyLog::open(site.mirror(alone, &[gone]).unwrap()).unwrap(), 3);
    }
    refused(site.mirror(all(true), &[]), &["each has continued without the other", "Decide"]);
}

#[test]
fn an_opening_that_was_cut_short_between_labels_is_no_loss() {
    let site = Site::new(2);
    let mut log = TinyLog::open(site.flash(&[]).unwrap()).unwrap();
    commits(&mut log, 7);
    drop(log);
    let path = |i: usize| site.dirs[i].join("replica.label");
    let before: Vec<_> = (0..2).map(|i| std::fs::read_to_string(path(i)).unwrap()).collect();
    let mut opening = Label::decode(&before[0]).unwrap();
    opening.generation += 1;
    for open in [false, true] {
        opening.open = open;
        // The first member has the label of the new opening, the second has none or the first phase.
        std::fs::write(path(0), opening.encode()).unwrap();
        let second = Label { open: false, member: 1, ..opening.clone() };
        std::fs::write(path(1), if open { second.encode() } else { before[1].clone() }).unwrap();
        assert_eq!(recover(&site.flash(&[]).unwrap()).unwrap().len(), 7, "{open}");
        std::fs::write(path(1), &before[1]).unwrap();
    }
}

#[test]
fn a_member_whose_files_cannot_be_made_drops_out() {
    for degrade in [true, false] {
        let site = Site::new(2);
        let mut members = site.members(&[]);
        let full = Fault { call: DeviceCall::Make, at: 0, failure: Failure::Errno(libc::ENOSPC) };
        members[1].device = Ok(Box::new(FaultDevice::new(site.disks[1].device(), vec![full])));
        let mut set = open_mirror(members, all(degrade), &scan).unwrap();
        let mut maker = set.file_maker();
        maker.make(0, None).unwrap();
        let result = set.open_file(0).and_then(|()| set.sync());
        assert_eq!(result.is_ok(), degrade, "{result:?}");
        assert_eq!(set.watch().dropped(), 1);
        assert!(set.watch().members()[1].dropped.as_ref().unwrap().contains("No space left"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Members fail and slow down at random moments, the power is cut, members are missing at the next opening:
    /// everything acknowledged is there, or opening is refused.
    #[test]
    fn nothing_acknowledged_is_ever_missing(
        members in 2_usize..4,
        rule in 0_usize..4,
        lives in prop::collection::vec((1_u64..12, 0_usize..4, 0_u64..8, 0_usize..6, any::<bool>()), 1..6),
    ) {
        let site = Site::new(members);
        let options = match rule {
            0 => all(false),
            1 => all(true),
            n => quorum((n - 1).min(members)),
        };
        let mut acknowledged = 0;
        for (count, victim, after, gone, slow) in lives {
            let gone: Vec<usize> = if gone < members { vec![gone] } else { vec![] };
            let Ok(set) = site.mirror(options, &gone) else {
                site.power_cut();
                let set = site.mirror(options, &[]).expect("with all members there it must open");
                prop_assert!(recover(&set).unwrap().len() as u64 >= acknowledged);
                continue;
            };
            let mut log = TinyLog::open(set).unwrap();
            prop_assert!(log.next >= acknowledged, "{} of {acknowledged}", log.next);
            if victim < members {
                match slow {
                    true => site.disks[victim].slow_down(Duration::from_millis(2)),
                    false => site.disks[victim].fail_syncs_after(after),
                }
            }
            for _ in 0..count {
                match log.commit() {
                    Ok(number) => acknowledged = number + 1,
                    Err(_) => break,
                }
            }
            // Power cut now, before the slower members have caught up.
            let now: Vec<_> = site.disks.iter().map(|d| d.snapshot().durable()).collect();
            drop(log);
            for (disk, then) in site.disks.iter().zip(now) {
                disk.set_durable(then);
            }
            site.power_cut();
        }
        let set = site.mirror(options, &[]).unwrap();
        prop_assert!(recover(&set).unwrap().len() as u64 >= acknowledged);
    }
}
