//! A set of replicas: the same log on several devices at once, each behind a thread of its own. The
//! mirror, the flash log and the standby are such sets and differ in their rule of durability.
//!
//! A member that fails drops out: it is counted and its cause kept, the others first catch up with
//! what was acknowledged, then the change is written to their labels, and only then the log goes on.
//! So whatever is opened later either holds every acknowledged commit or is refused (see `assemble`).

mod assemble;
mod label;
mod lane;
#[cfg(test)]
mod tests;
mod watch;

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

pub(crate) use label::{FileLabel, LabelStore};
pub(crate) use lane::{Blocks, Board, Lane, Op, Pool, State, close};

pub use watch::{MemberState, Watch};

use crate::device::{DeviceError, DeviceTimes, FileMaker, LogDevice};
use label::Label;

/// The place just behind the last whole record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The log file.
    pub file: u64,
    /// The offset in it, in bytes.
    pub offset: u64,
}

/// Finds where the log on one device ends; nothing if there is none. It is the log's own recovery:
/// only that can tell records from what else lies on a device.
pub type Scan<'a> = &'a dyn Fn(&dyn LogDevice) -> Result<Option<Position>, Box<dyn Error + Send + Sync>>;

/// When a commit is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Every member has it.
    All,
    /// So many members have it.
    Quorum(usize),
    /// This member has it.
    Member(usize),
}

/// How a set works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplicaOptions {
    pub(crate) rule: Rule,
    /// Whether the set goes on by what is left when the rule cannot be met any more (not for a quorum).
    pub(crate) degrade: bool,
    /// How far a member may be behind, in bytes, before writes wait for it.
    pub(crate) backlog_bytes: usize,
    /// Opens although members are missing that may hold acknowledged commits that no other has.
    pub(crate) accept_missing: bool,
}

impl ReplicaOptions {
    /// How many members must work for the rule to be met, while `current` do.
    fn needed(&self, members: usize, current: &[usize]) -> usize {
        match self.rule {
            Rule::Quorum(n) => n,
            Rule::Member(i) if current.contains(&i) => 1,
            Rule::All | Rule::Member(_) if self.degrade => 1,
            Rule::All | Rule::Member(_) => members,
        }
    }
}

/// A member of a set: a device and where its label is kept.
pub struct Member {
    pub(crate) name: String,
    pub(crate) device: Result<Box<dyn LogDevice>, String>,
    pub(crate) label: Box<dyn LabelStore>,
    pub(crate) disk: Option<(u64, String)>,
}

impl Member {
    /// A member whose label is kept in `dir`, the directory of its log files. `device` is the error
    /// that opening it met where it is not there: the set then tells whether it can do without.
    #[must_use]
    pub fn new(dir: &Path, device: Result<Box<dyn LogDevice>, DeviceError>) -> Member {
        Member {
            name: dir.display().to_string(),
            device: device.map_err(|e| e.to_string()),
            label: Box::new(FileLabel::in_dir(dir)),
            disk: super::twins::disk_of(dir),
        }
    }
}

/// What opening a set found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The set's generation: 1 for a new one, one more at each opening and each member lost.
    pub generation: u64,
    /// Members that lacked the newest records, and how many bytes they were given.
    pub healed: Vec<(String, u64)>,
    /// Members that were new or had been left behind, and how many bytes they were given.
    pub rebuilt: Vec<(String, u64)>,
    /// Members that are not there, and why.
    pub missing: Vec<(String, String)>,
    /// What else the user should know, in sentences.
    pub warnings: Vec<String>,
}

impl Opened {
    fn causes(&self) -> String {
        let causes: Vec<_> = self.missing.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        if causes.is_empty() { "their labels say so".to_owned() } else { causes.join("; ") }
    }
}

/// A set of replicas as a log device: what [`open_mirror`](super::open_mirror),
/// [`open_flash_log`](super::open_flash_log) and [`open_standby`](super::open_standby) open.
pub struct Replicas {
    what: &'static str,
    /// The rule of durability, for people.
    told: String,
    options: ReplicaOptions,
    board: Arc<Board>,
    lanes: Vec<Option<Lane>>,
    labels: Vec<Box<dyn LabelStore>>,
    label: Label,
    described: Vec<String>,
    block_bytes: usize,
    file_bytes: u64,
    makers: RefCell<Vec<Option<Box<dyn FileMaker>>>>,
    pool: Pool,
    ticket: u64,
    acked: u64,
    opened: Opened,
}

impl Replicas {
    /// Opens the set: makes its members alike, takes in new ones, and starts their threads.
    pub(crate) fn open(
        what: &'static str,
        told: String,
        mut members: Vec<Member>,
        options: ReplicaOptions,
        scan: Scan<'_>,
    ) -> Result<Replicas, DeviceError> {
        let warnings = super::twins::warnings(&members);
        let mut assembled = assemble::assemble(what, &mut members, &options, scan)?;
        assembled.opened.warnings = warnings;
        let board = Arc::new(Board::new(members.iter().map(|m| m.name.clone())));
        let devices = || assembled.devices.iter().flatten().map(|(device, _)| device);
        let block_bytes = devices().map(|d| d.block_bytes()).max().unwrap_or(4096);
        let file_bytes = devices().map(|d| d.file_bytes()).next().unwrap_or_default();
        let described = devices().map(|d| d.describe()).collect();
        let (mut lanes, mut makers) = (Vec::new(), Vec::new());
        for (index, device) in assembled.devices.into_iter().enumerate() {
            if let Some((device, maker)) = device {
                lanes.push(Some(Lane::start(&board, index, device)?));
                makers.push(Some(maker));
            } else {
                let name = members.get(index).map_or("", |m| m.name.as_str());
                let cause = assembled.opened.missing.iter().find(|(n, _)| n == name);
                board.fail(index, cause.map_or_else(|| "it was not there".to_owned(), |(_, why)| why.clone()));
                if let Some(lane) = board.lock().lanes.get_mut(index) {
                    lane.dropped = true;
                }
                lanes.push(None);
                makers.push(None);
            }
        }
        let labels = members.into_iter().map(|m| m.label).collect();
        let (label, opened) = (assembled.label, assembled.opened);
        let makers = RefCell::new(makers);
        let (pool, ticket, acked) = (Pool::default(), 0, 0);
        Ok(Replicas {
            what,
            told,
            options,
            board,
            lanes,
            labels,
            label,
            described,
            block_bytes,
            file_bytes,
            makers,
            pool,
            ticket,
            acked,
            opened,
        })
    }

    /// Looks at the set while its log is written.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.board))
    }

    /// What opening it found and did.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// A copy of `blocks` that the lanes share: one may still need it when others are done.
    fn copy(&mut self, blocks: &[u8]) -> Result<Blocks, DeviceError> {
        self.pool.blocks(blocks.len(), |to| {
            to.copy_from_slice(blocks);
            Ok(())
        })
    }

    /// Hands `op` over, once no member is too far behind for `bytes` more.
    fn hand_over(&mut self, op: &Op, bytes: usize) -> Result<(), DeviceError> {
        let board = Arc::clone(&self.board);
        let mut state = self.notice(board.lock(), &board)?;
        let full = |state: &State| {
            let behind = |lane: &lane::LaneState| lane.failed.is_none() && lane.behind > 0;
            state.lanes.iter().any(|lane| behind(lane) && lane.behind + bytes > self.options.backlog_bytes)
        };
        if bytes > 0 && full(&state) {
            state.stalls += 1;
            while full(&state) {
                state = board.wait(state);
            }
        }
        board.hand_over(&mut state, op);
        Ok(())
    }

    /// Waits until `ticket` is durable by the rule.
    fn wait(&mut self, ticket: u64) -> Result<(), DeviceError> {
        let board = Arc::clone(&self.board);
        let mut state = board.lock();
        loop {
            state = self.notice(state, &board)?;
            if self.covered(&state, ticket) {
                self.acked = ticket;
                return Ok(());
            }
            state = board.wait(state);
        }
    }

    /// Whether the rule is met for `ticket` by those that work.
    fn covered(&self, state: &State, ticket: u64) -> bool {
        let mut live = state.lanes.iter().filter(|lane| lane.failed.is_none());
        let has = |lane: &lane::LaneState| lane.done >= ticket;
        match self.options.rule {
            Rule::All => live.all(has),
            Rule::Quorum(n) => live.filter(|lane| has(lane)).count() >= n,
            Rule::Member(i) => match state.lanes.get(i) {
                Some(lane) if lane.failed.is_none() => has(lane),
                _ => live.all(has),
            },
        }
    }

    /// Takes note of members that failed: goes on without them if that can be, and then only after
    /// the others have all that was acknowledged and know of it.
    fn notice<'a>(
        &mut self,
        mut state: MutexGuard<'a, State>,
        board: &'a Board,
    ) -> Result<MutexGuard<'a, State>, DeviceError> {
        loop {
            let failed: Vec<usize> = (0..state.lanes.len())
                .filter(|i| state.lanes.get(*i).is_some_and(|lane| lane.failed.is_some() && !lane.dropped))
                .collect();
            let Some(last) = failed.last() else { return Ok(state) };
            let live: Vec<usize> = (0..state.lanes.len())
                .filter(|i| state.lanes.get(*i).is_some_and(|lane| lane.failed.is_none()))
                .collect();
            let needed = self.options.needed(state.lanes.len(), &live);
            if live.len() < needed {
                let lane = state.lanes.get(*last);
                return Err(DeviceError::TooFew {
                    what: self.what.to_owned(),
                    left: live.len(),
                    members: state.lanes.len(),
                    needed,
                    cause: lane.map_or_else(String::new, |lane| {
                        format!("{}: {}", lane.name, lane.failed.as_deref().unwrap_or_default())
                    }),
                    advice: "Look at the one that failed, then open the log again".to_owned(),
                });
            }
            if !self.covered(&state, self.acked) {
                state = board.wait(state);
                continue;
            }
            drop(state);
            self.relabel(&live, board);
            state = board.lock();
            // Another one may have failed in the meantime, then all begins anew.
            let same = live.iter().all(|i| state.lanes.get(*i).is_some_and(|lane| lane.failed.is_none()));
            if same {
                for i in failed {
                    if let Some(lane) = state.lanes.get_mut(i) {
                        lane.dropped = true;
                    }
                }
            }
        }
    }

    /// Writes to all that are left that they are all that is left. One that cannot take it is lost too.
    fn relabel(&mut self, live: &[usize], board: &Board) {
        self.label.generation = self.label.generation.saturating_add(1);
        self.label.current = live.to_vec();
        for open in [false, true] {
            self.label.open = open;
            for i in live {
                let text = Label { member: *i, ..self.label.clone() }.encode();
                if let Some(Err(e)) = self.labels.get_mut(*i).map(|label| label.store(&text)) {
                    board.fail(*i, e.to_string());
                    return;
                }
            }
        }
    }

    /// Asks the members in order until one has an answer.
    fn ask<T>(&self, question: impl Fn(&dyn LogDevice) -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        let mut refused = None;
        for (index, lane) in self.lanes.iter().enumerate() {
            let works = self.board.lock().lanes.get(index).is_some_and(|lane| lane.failed.is_none());
            if let Some(lane) = lane.as_ref().filter(|_| works) {
                let device = lane.device.lock().unwrap_or_else(PoisonError::into_inner);
                match question(device.as_ref()) {
                    Ok(answer) => return Ok(answer),
                    Err(e) => refused = Some(e),
                }
            }
        }
        Err(refused.unwrap_or_else(|| DeviceError::TooFew {
            what: self.what.to_owned(),
            left: 0,
            members: self.lanes.len(),
            needed: 1,
            cause: "all have failed".to_owned(),
            advice: "Open the log again".to_owned(),
        }))
    }
}

impl LogDevice for Replicas {
    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        let makers = std::mem::take(&mut *self.makers.borrow_mut());
        Box::new(Makers { board: Arc::clone(&self.board), makers })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.hand_over(&Op::Open { file }, 0)
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let blocks = self.copy(blocks)?;
        let bytes = blocks.length;
        self.hand_over(&Op::Write { offset, blocks }, bytes)
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        self.ticket += 1;
        let ticket = self.ticket;
        self.hand_over(&Op::Sync { ticket }, 0)?;
        self.wait(ticket)
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        let blocks = self.copy(blocks)?;
        let bytes = blocks.length;
        self.ticket += 1;
        let ticket = self.ticket;
        self.hand_over(&Op::WriteSync { offset, blocks, ticket }, bytes)?;
        let handed = now();
        self.wait(ticket)?;
        Ok(DeviceTimes { write_ns: handed.saturating_sub(begun), sync_ns: now().saturating_sub(handed) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.ask(|device| device.files())
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let into = RefCell::new(into);
        self.ask(|device| device.read(file, offset, &mut into.borrow_mut()))
    }

    fn describe(&self) -> String {
        format!("{}, {}: {}", self.what, self.told, self.described.join(" | "))
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        close(&self.board, &mut self.lanes);
    }
}

/// Makes files ready at all members.
struct Makers {
    board: Arc<Board>,
    makers: Vec<Option<Box<dyn FileMaker>>>,
}

impl FileMaker for Makers {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let mut made = false;
        let mut refused = None;
        for (index, maker) in self.makers.iter_mut().enumerate() {
            let works = self.board.lock().lanes.get(index).is_some_and(|lane| lane.failed.is_none());
            if let Some(maker) = maker.as_mut().filter(|_| works) {
                match maker.make(file, recycle) {
                    Ok(()) => made = true,
                    // The writer finds out at its next call whether the set can do without it.
                    Err(e) => {
                        self.board.fail(index, e.to_string());
                        refused = Some(e);
                    }
                }
            }
        }
        match refused {
            Some(e) if !made => Err(e),
            _ => Ok(()),
        }
    }
}
