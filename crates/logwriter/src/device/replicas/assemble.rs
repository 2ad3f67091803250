//! Opening a replica set: finds the members that are up to date, and makes all members equal before the log is
//! read.
//!
//! Members that are up to date hold prefixes of one log, of different lengths. The longest holds every
//! acknowledged commit, and perhaps some that were never acknowledged. What the others lack is copied to them, so
//! that afterwards any of them can be lost.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use super::label::Label;
use super::{Member, Opened, Position, ReplicaOptions, Rule, Scan};
use crate::device::{DeviceError, FileMaker, LogDevice};

const CHUNK: usize = 1 << 20;

/// A member whose device could be opened.
struct Present {
    label: Option<Label>,
    device: Box<dyn LogDevice>,
    maker: Box<dyn FileMaker>,
}

/// A device and what makes its files.
pub(super) type WithMaker = (Box<dyn LogDevice>, Box<dyn FileMaker>);

/// The assembled set: the device of each member that takes part, and the common label.
pub(super) struct Assembled {
    pub(super) devices: Vec<Option<WithMaker>>,
    pub(super) label: Label,
    pub(super) opened: Opened,
}

/// Assembles the set. Takes the devices out of `members`.
pub(super) fn assemble(
    what: &str,
    members: &mut [Member],
    options: &ReplicaOptions,
    scan: Scan<'_>,
) -> Result<Assembled, DeviceError> {
    let mut opened = Opened::default();
    let mut present = inspect(what, members, &mut opened)?;
    let before = newest_label(what, members, &present)?;
    let mut current: Vec<usize> = match &before {
        Some(newest) => (0..members.len())
            .filter(|i| matches!(present.get(*i), Some(Some(p)) if p.label.as_ref().is_some_and(|l| l.generation == newest.generation)))
            .collect(),
        None => (0..members.len()).filter(|i| matches!(present.get(*i), Some(Some(_)))).collect(),
    };
    if let Some(newest) = &before {
        heal(members, &mut present, &mut current, scan, &mut opened);
        if !options.accept_missing {
            check_complete(what, members, &present, newest, &current, &opened)?;
        }
        rebuild(members, &mut present, &mut current, &mut opened);
    } else if !opened.missing.is_empty() && !options.accept_missing {
        // All present members are empty: the log may be on the missing ones.
        return Err(too_few(what, members.len(), current.len(), members.len(), &opened));
    }
    let (left, needed) = (current.len(), options.needed(members.len(), &current));
    if left < needed {
        return Err(too_few(what, members.len(), left, needed, &opened));
    }
    let mut label = Label {
        set: before.as_ref().map_or_else(|| RandomState::new().build_hasher().finish(), |l| l.set),
        member: 0,
        members: members.len(),
        generation: before.as_ref().map_or(0, |l| l.generation).saturating_add(1),
        open: false,
        rule: options.rule,
        degrade: options.degrade,
        current: current.clone(),
    };
    for open in [false, true] {
        label.open = open;
        for i in &current {
            if let Some(member) = members.get_mut(*i) {
                member.label.store(&Label { member: *i, ..label.clone() }.encode())?;
            }
        }
    }
    opened.generation = label.generation;
    let devices = present
        .into_iter()
        .enumerate()
        .map(|(i, p)| p.filter(|_| current.contains(&i)).map(|p| (p.device, p.maker)))
        .collect();
    Ok(Assembled { devices, label, opened })
}

/// Inspects each member: device, label, sizes.
fn inspect(what: &str, members: &mut [Member], opened: &mut Opened) -> Result<Vec<Option<Present>>, DeviceError> {
    let count = members.len();
    let mut present = Vec::with_capacity(count);
    let mut file_bytes = None;
    for (i, member) in members.iter_mut().enumerate() {
        let device = match std::mem::replace(&mut member.device, Err("taken".to_owned())) {
            Ok(device) => device,
            Err(cause) => {
                opened.missing.push((member.name.clone(), cause));
                present.push(None);
                continue;
            }
        };
        let refuse = |why: String, advice: &str| DeviceError::Unsupported {
            what: what.to_owned(),
            wish: format!("take {} as its member {i}", member.name),
            why,
            advice: advice.to_owned(),
        };
        let label = match member.label.load()? {
            Some(text) => Some(Label::decode(&text).ok_or_else(|| {
                refuse("its label is damaged".to_owned(), "Empty its directory to rebuild it from the others")
            })?),
            None if device.files()?.is_empty() => None,
            None => {
                return Err(refuse(
                    "it holds log files that were not written as part of a replica set".to_owned(),
                    "Name an empty directory",
                ));
            }
        };
        if let Some(label) = &label
            && (label.member, label.members) != (i, count)
        {
            return Err(refuse(
                format!("it was member {} of {}", label.member, label.members),
                "Name the members in the same order as the first time",
            ));
        }
        let size = device.file_bytes();
        if *file_bytes.get_or_insert(size) != size {
            return Err(refuse(
                format!("its log files have {size} bytes, unlike those of the members before it"),
                "Use one file size for all members",
            ));
        }
        let maker = device.file_maker();
        present.push(Some(Present { label, device, maker }));
    }
    Ok(present)
}

/// The newest label. An error unless all labels belong to one history.
fn newest_label(what: &str, members: &[Member], present: &[Option<Present>]) -> Result<Option<Label>, DeviceError> {
    let labels = || present.iter().enumerate().filter_map(|(i, p)| Some((i, p.as_ref()?.label.as_ref()?)));
    let Some((first, newest)) = labels().max_by_key(|(_, l)| (l.generation, l.open)) else { return Ok(None) };
    for (i, label) in labels() {
        let name = |i: usize| members.get(i).map_or_else(String::new, |m| m.name.clone());
        let why = if label.set != newest.set {
            "they belong to different sets"
        } else if (label.generation == newest.generation && label.current != newest.current)
            || !label.current.iter().any(|m| newest.current.contains(m))
        {
            "each has continued without the other"
        } else {
            continue;
        };
        return Err(DeviceError::Unsupported {
            what: what.to_owned(),
            wish: format!("combine {} and {}", name(first), name(i)),
            why: why.to_owned(),
            advice: "Decide which one holds the valid log, and empty the directory of the other to rebuild it"
                .to_owned(),
        });
    }
    Ok(Some(newest.clone()))
}

/// Checks that the present members hold every acknowledged commit.
///
/// Two questions: can the missing members have continued by themselves, which only they would know? And are the
/// commits acknowledged in the newest generation on the present members?
fn check_complete(
    what: &str,
    members: &[Member],
    present: &[Option<Present>],
    newest: &Label,
    current: &[usize],
    opened: &Opened,
) -> Result<(), DeviceError> {
    let label = |i: &usize| present.get(*i).and_then(|p| p.as_ref()?.label.as_ref());
    let there: Vec<usize> = newest.current.iter().copied().filter(|i| label(i).is_some()).collect();
    let all = newest.current.len();
    let (to_go_on, to_hold) = match newest.rule {
        Rule::Quorum(n) => ((all + 1).saturating_sub(n).max(1), (all + 1).saturating_sub(n).max(1)),
        Rule::All | Rule::Member(_) if newest.degrade => (all, 1),
        Rule::All | Rule::Member(_) => (1, 1),
    };
    // If some member never saw this generation open, nothing was written in it, and all members were equal before.
    let unused = current.iter().filter_map(label).any(|l| !l.open);
    let held = if unused { 1 } else { to_hold };
    if there.len() < to_go_on || current.len() < held {
        let mut opened = opened.clone();
        for (member, there) in members.iter().zip(present) {
            if there.as_ref().is_some_and(|p| p.label.is_none()) {
                opened.missing.push((member.name.clone(), "it is empty".to_owned()));
            }
        }
        return Err(too_few(what, members.len(), there.len().min(current.len()), to_go_on.max(held), &opened));
    }
    match newest.rule {
        Rule::Member(i) if newest.current.contains(&i) && !unused && !current.contains(&i) => {
            let name = members.get(i).map_or("", |m| m.name.as_str());
            Err(DeviceError::TooFew {
                what: what.to_owned(),
                left: current.len(),
                members: members.len(),
                needed: members.len(),
                cause: format!("commits were durable when {name} had them, and it is missing: {}", opened.causes()),
                advice: "Bring it back, or accept that the commits that only it has are lost".to_owned(),
            })
        }
        _ => Ok(()),
    }
}

fn too_few(what: &str, members: usize, left: usize, needed: usize, opened: &Opened) -> DeviceError {
    DeviceError::TooFew {
        what: what.to_owned(),
        left,
        members,
        needed,
        cause: opened.causes(),
        advice: "Bring the missing members back, or accept that the commits that only they have are lost".to_owned(),
    }
}

/// Copies the longest log of the members that are up to date to the others of them.
fn heal(
    members: &[Member],
    present: &mut [Option<Present>],
    current: &mut Vec<usize>,
    scan: Scan<'_>,
    opened: &mut Opened,
) {
    let name = |i: usize| members.get(i).map_or_else(String::new, |m| m.name.clone());
    loop {
        let mut ends = Vec::new();
        for i in current.clone() {
            let Some(Some(member)) = present.get(i) else { continue };
            match scan(member.device.as_ref()) {
                Ok(end) => ends.push((i, end)),
                Err(e) => drop_at_open(opened, current, name(i), i, e.to_string()),
            }
        }
        let Some((longest, end)) = ends.iter().copied().max_by_key(|(_, end)| *end) else { return };
        let Some((behind, from)) = ends.into_iter().find(|(_, e)| *e < end) else { return };
        // A copy can uncover records behind a gap, so all ends are searched again.
        match copy(present, longest, behind, from, end) {
            Ok(0) | Err(CopyFailed::Source(_)) => {
                let why = "the newest records of another member could not be copied to it".to_owned();
                drop_at_open(opened, current, name(behind), behind, why);
            }
            Ok(bytes) => opened.healed.push((name(behind), bytes)),
            Err(CopyFailed::Sink(e)) => drop_at_open(opened, current, name(behind), behind, e.to_string()),
        }
    }
}

/// Rebuilds members of an older generation, and new ones.
fn rebuild(members: &[Member], present: &mut [Option<Present>], current: &mut Vec<usize>, opened: &mut Opened) {
    let Some(source) = current.first().copied() else { return };
    for i in 0..members.len() {
        let Some(name) = members.get(i).map(|m| m.name.clone()) else { continue };
        if current.contains(&i)
            || !matches!(present.get(i), Some(Some(_)))
            || opened.missing.iter().any(|(n, _)| *n == name)
        {
            continue;
        }
        let copied = copy(present, source, i, None, None).and_then(|bytes| {
            blank_others(present, source, i)?;
            Ok(bytes)
        });
        match copied {
            Ok(bytes) => {
                opened.rebuilt.push((name, bytes));
                current.push(i);
            }
            Err(CopyFailed::Sink(e) | CopyFailed::Source(e)) => opened.missing.push((name, e.to_string())),
        }
    }
    current.sort_unstable();
}

fn drop_at_open(opened: &mut Opened, current: &mut Vec<usize>, name: String, index: usize, cause: String) {
    opened.missing.push((name, cause));
    current.retain(|i| *i != index);
}

enum CopyFailed {
    Source(DeviceError),
    Sink(DeviceError),
}

/// Mutable access to two members.
fn pair(present: &mut [Option<Present>], from: usize, to: usize) -> Option<(&mut Present, &mut Present)> {
    match present.get_disjoint_mut([from, to]) {
        Ok([Some(from), Some(to)]) => Some((from, to)),
        _ => None,
    }
}

/// Copies what differs, from `start` (`None`: the start of the log) to `end` (`None`: the end of the last file).
/// Returns the bytes written.
fn copy(
    present: &mut [Option<Present>],
    from: usize,
    to: usize,
    start: Option<Position>,
    end: Option<Position>,
) -> Result<u64, CopyFailed> {
    let Some((from, to)) = pair(present, from, to) else { return Ok(0) };
    let block = from.device.block_bytes().max(to.device.block_bytes()) as u64;
    let buffer = || loadline_device::AlignedBuf::new(CHUNK).map_err(|e| CopyFailed::Sink(e.into()));
    let (mut theirs, mut ours) = (buffer()?, buffer()?);
    let mut files = from.device.files().map_err(CopyFailed::Source)?;
    files.sort_unstable();
    let there = to.device.files().map_err(CopyFailed::Sink)?;
    let mut copied = 0;
    for file in files {
        if start.is_some_and(|s| file < s.file) || end.is_some_and(|e| file > e.file) {
            continue;
        }
        if !there.contains(&file) {
            to.maker.make(file, None).map_err(CopyFailed::Sink)?;
        }
        to.device.open_file(file).map_err(CopyFailed::Sink)?;
        let size = from.device.file_bytes();
        let last = end.filter(|e| e.file == file).map_or(size, |e| e.offset.next_multiple_of(block).min(size));
        // The first block holds the file's header.
        let mut at = start.filter(|s| s.file == file && s.offset > block).map_or(0, |s| s.offset / block * block);
        let mut wrote = false;
        while at < last {
            let length = usize::try_from(last - at).unwrap_or(CHUNK).min(CHUNK);
            let (Some(theirs), Some(ours)) = (theirs.get_mut(..length), ours.get_mut(..length)) else { break };
            let read = read_full(from.device.as_ref(), file, at, theirs).map_err(CopyFailed::Source)?;
            let whole = read / block as usize * block as usize;
            // What cannot be read is written again.
            let same = read_full(to.device.as_ref(), file, at, ours)
                .is_ok_and(|n| n >= whole && ours[..whole] == theirs[..whole]);
            if !same && whole > 0 {
                to.device.write(at, &theirs[..whole]).map_err(CopyFailed::Sink)?;
                (wrote, copied) = (true, copied + whole as u64);
            }
            if whole < length {
                break;
            }
            at += length as u64;
        }
        if wrote {
            to.device.sync().map_err(CopyFailed::Sink)?;
        }
    }
    Ok(copied)
}

/// Fills with zeros the files of a rebuilt member that its source does not have: they hold records of an old
/// history, and the files are reused.
fn blank_others(present: &mut [Option<Present>], from: usize, to: usize) -> Result<(), CopyFailed> {
    let Some((from, to)) = pair(present, from, to) else { return Ok(()) };
    let files = from.device.files().map_err(CopyFailed::Source)?;
    let zeros = loadline_device::AlignedBuf::new(CHUNK).map_err(|e| CopyFailed::Sink(e.into()))?;
    for file in to.device.files().map_err(CopyFailed::Sink)? {
        if files.contains(&file) {
            continue;
        }
        to.device.open_file(file).map_err(CopyFailed::Sink)?;
        let (mut at, size) = (0, to.device.file_bytes());
        while at < size {
            let length = usize::try_from(size - at).unwrap_or(CHUNK).min(CHUNK);
            to.device.write(at, zeros.get(..length).unwrap_or_default()).map_err(CopyFailed::Sink)?;
            at += length as u64;
        }
        to.device.sync().map_err(CopyFailed::Sink)?;
    }
    Ok(())
}

/// Reads until `into` is full or the file ends: one device read may return less.
fn read_full(device: &dyn LogDevice, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match device.read(file, offset + done as u64, rest)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}
