//! Recovery after a power loss at every point of a log's life: it returns a prefix of what was appended, with everything
//! reported durable, and the log continues from there.

use std::sync::{Arc, Mutex};

use crate::common::{Disk, Event, Fate, MemDevice, config, payload};
use crate::log;
use crate::log::{CommitMode, Keep, LogConfig, LogWriter, Lsn, Record, recover};
use proptest::prelude::*;

const BLOCK: usize = 512;

/// One step of a job: a record of some size, then perhaps a commit.
#[derive(Clone, Debug)]
struct Step {
    session: usize,
    len: usize,
    commit: Option<CommitMode>,
}

fn step() -> impl Strategy<Value = Step> {
    // Few sizes, so that what one opening lost lies where the next one writes.
    let len = prop_oneof![Just(16), Just(200), Just(448), Just(480), Just(1000), 16..2200_usize];
    let commit = prop_oneof![Just(None), Just(Some(CommitMode::Wait)), Just(Some(CommitMode::Nowait))];
    (0..3_usize, len, commit).prop_map(|(session, len, commit)| Step { session, len, commit })
}

fn read(disk: &Disk) -> (Vec<Record>, log::Recovered) {
    let device = MemDevice::new(&Arc::new(Mutex::new(disk.clone())), BLOCK);
    let mut records = recover(&device).unwrap();
    let entries = records.by_ref().map(|record| record.unwrap()).collect();
    (entries, records.so_far())
}

/// Runs a log on `disk` until the steps are done, without closing it. What it appended is added to
/// `model`; the disk's events say when how much of that was reported durable.
fn live(disk: &Arc<Mutex<Disk>>, config: &LogConfig, steps: &[Step], model: &mut Vec<Record>) {
    let (writer, recovered) = LogWriter::open(config, Box::new(MemDevice::new(disk, BLOCK))).unwrap();
    let epoch = recovered.epoch + 1;
    let mut sessions: Vec<_> = (0..3).map(|_| writer.session().unwrap()).collect();
    for (number, step) in steps.iter().enumerate() {
        let session = &mut sessions[step.session];
        // Session 1 is the one that opening used itself.
        let id = step.session as u32 + 2;
        let bytes = payload(u64::from(epoch), number as u64, step.len);
        let lsn = session.append(&bytes).unwrap();
        model.push(Record { lsn, epoch, session: id, redo: Some(bytes) });
        if let Some(mode) = step.commit {
            session.commit(mode).unwrap();
            // Its position is known when it is read back.
            model.push(Record { lsn: Lsn(0), epoch, session: id, redo: None });
            if mode == CommitMode::Wait {
                disk.lock().unwrap().apply(Event::Ack { records: model.len() });
            }
        }
    }
    // Threads end; what they would still write is written, and then cut off by the test.
    drop(sessions);
    drop(writer);
}

fn same(read: &Record, model: &Record) -> bool {
    let lsn = read.lsn == model.lsn || model.redo.is_none();
    lsn && (read.epoch, read.session, &read.redo) == (model.epoch, model.session, &model.redo)
}

/// Where in `model` what was read lies: it must be a run of it without holes.
fn check(
    read: &[Record],
    recovered: log::Recovered,
    model: &[Record],
    acked: usize,
    cut: usize,
) -> Result<usize, TestCaseError> {
    // Recycled files no longer hold the start: find the first record by its content.
    let from = match read.iter().find(|entry| entry.redo.is_some()) {
        Some(first) => {
            let at = model.iter().position(|entry| same(first, entry));
            let ahead = read.iter().position(|entry| entry == first).unwrap_or(0);
            match at {
                Some(at) if at >= ahead => at - ahead,
                _ => return Err(TestCaseError::fail(format!("cut {cut}: {first:?} was never appended"))),
            }
        }
        None => model.len().min(acked).saturating_sub(read.len()),
    };
    for (number, entry) in read.iter().enumerate() {
        let Some(expected) = model.get(from + number) else {
            return Err(TestCaseError::fail(format!("cut {cut}: more than was appended: {entry:?}")));
        };
        prop_assert!(same(entry, expected), "cut {}: read {:?}, appended {:?}", cut, entry, expected);
    }
    let end = from + read.len();
    prop_assert!(end >= acked, "cut {}: {} read back, {} were reported durable", cut, end, acked);
    if recovered.start == Lsn(0) {
        prop_assert!(from == 0 || read.is_empty(), "cut {}: the beginning is missing", cut);
    }
    Ok(end)
}

fn fates(seed: u64, lost: u64, garbled: u64) -> impl FnMut() -> Fate {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state % 100 {
            share if share < lost => Fate::Lost,
            share if share < lost + garbled => Fate::Garbled,
            _ => Fate::Kept,
        }
    }
}

fn acked(events: &[Event]) -> usize {
    events
        .iter()
        .filter_map(|event| if let Event::Ack { records } = event { Some(*records) } else { None })
        .max()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Every cut point of one life, each with a loss of any unsynced sectors.
    #[test]
    fn any_cut_with_any_torn_write_leaves_a_prefix_with_all_that_was_durable(
        steps in prop::collection::vec(step(), 1..40),
        file_blocks in 8..24_usize,
        buffer_blocks in 16..40_usize,
        at_bytes in prop::option::of(512..4096_u64),
        seed in any::<u64>(),
        lost in 0..60_u64,
    ) {
        let file_blocks = file_blocks.max(8);
        let empty = Disk::new(file_blocks * BLOCK);
        let disk = Arc::new(Mutex::new(empty.clone()));
        let mut model = Vec::new();
        live(&disk, &config(buffer_blocks, at_bytes, Keep::All), &steps, &mut model);
        let events = disk.lock().unwrap().events.clone();
        for cut in 0..=events.len() {
            let at_cut = Disk::replayed(&empty, &events[..cut]);
            let acked = acked(&events[..cut]);
            let mut ends = Vec::new();
            for (number, mut fate) in [fates(1, 0, 0), fates(1, 100, 0), fates(1, 0, 100)].into_iter().enumerate() {
                let (entries, recovered) = read(&at_cut.after_power_loss(&mut fate));
                ends.push(check(&entries, recovered, &model, acked, cut)?);
                if number == 0 && cut == events.len() {
                    prop_assert_eq!(entries.len(), model.len(), "nothing lost, all read back");
                }
            }
            // Losing all that was not synced or having it garbled comes to the same end, and no
            // loss in between ends earlier or later than the two.
            prop_assert_eq!(ends[1], ends[2]);
            let mut fate = fates(seed.wrapping_add(cut as u64), lost, 10);
            let (entries, recovered) = read(&at_cut.after_power_loss(&mut fate));
            let end = check(&entries, recovered, &model, acked, cut)?;
            prop_assert!((ends[1]..=ends[0]).contains(&end), "{} of {:?}", end, ends);
        }
    }

    /// Several lives, each ended by a power loss somewhere, each going on from what is left: what
    /// was once read back stays, and nothing of what was lost ever comes back.
    #[test]
    fn lives_after_power_losses_go_on_from_what_is_left(
        lives in prop::collection::vec((prop::collection::vec(step(), 1..20), any::<prop::sample::Index>(), any::<u64>()), 2..6),
        file_blocks in 8..20_usize,
        keep in prop_oneof![Just(Keep::All), Just(Keep::Newest(2)), Just(Keep::Newest(3))],
        at_bytes in prop::option::of(512..4096_u64),
        lost in 0..70_u64,
    ) {
        let mut disk = Disk::new(file_blocks * BLOCK);
        let mut model: Vec<Record> = Vec::new();
        for (steps, cut, seed) in lives {
            let base = disk.clone();
            let running = Arc::new(Mutex::new(disk));
            let durable_before = model.len();
            live(&running, &config(16, at_bytes, keep), &steps, &mut model);
            let events = running.lock().unwrap().events.clone();
            let cut = cut.index(events.len() + 1);
            let mut fate = fates(seed, lost, 10);
            disk = Disk::replayed(&base, &events[..cut]).after_power_loss(&mut fate);
            let (entries, recovered) = read(&disk);
            let acked = acked(&events[..cut]).max(durable_before);
            let end = check(&entries, recovered, &model, acked, cut)?;
            model.truncate(end);
            prop_assert_eq!(&read(&disk).0, &entries, "read twice, read the same");
        }
    }
}

#[test]
fn a_record_whose_group_was_torn_does_not_come_back_after_the_next_opening() {
    // One group of three blocks: the first sector is lost, the others are not.
    let disk = Arc::new(Mutex::new(Disk::new(32 * BLOCK)));
    let mut model = Vec::new();
    let steps = [480, 480, 480].map(|len| Step { session: 0, len, commit: None });
    live(&disk, &config(16, None, Keep::All), &steps, &mut model);
    let events = disk.lock().unwrap().events.clone();
    let last_write = events.iter().rposition(|event| matches!(event, Event::Write { .. })).unwrap();
    let cut = Disk::replayed(&Disk::new(32 * BLOCK), &events[..=last_write]);
    let mut number = 0;
    let torn = cut.after_power_loss(|| {
        number += 1;
        if number == 1 { Fate::Lost } else { Fate::Kept }
    });
    assert!(read(&torn).0.is_empty());
    // The next life writes records of the same sizes over the lost one, and no more.
    let disk = Arc::new(Mutex::new(torn));
    let mut model = Vec::new();
    live(&disk, &config(16, None, Keep::All), &steps[..1], &mut model);
    let (entries, recovered) = read(&disk.lock().unwrap().after_power_loss(|| Fate::Kept));
    assert_eq!(entries.len(), 1);
    assert!(same(&entries[0], &model[0]));
    assert_eq!(recovered.epoch, 2);
}
