//! A replica set: the same log on several devices, each written by its own thread. The mirror, the flash log and
//! the standby are replica sets with different rules of durability.
//!
//! When a member fails, the others first catch up with every acknowledged commit, then record the loss in their
//! labels; only then does the log continue. So a set that is opened later either holds every acknowledged commit
//! or is refused (see `assemble`).

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

use super::shared_disk::{self, Storage};
use super::{DeviceError, DeviceTimes, FileMaker, LogDevice};
use label::Label;

/// The end of the last whole record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The log file.
    pub file: u64,
    /// The offset in it, bytes.
    pub offset: u64,
}

/// Finds the end of the log on one device; `None` if there is no log. Needs the log's own recovery, which alone
/// can recognise records.
pub type Scan<'a> = &'a dyn Fn(&dyn LogDevice) -> Result<Option<Position>, Box<dyn Error + Send + Sync>>;

/// When a commit is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Every member has it.
    All,
    /// This number of members has it.
    Quorum(usize),
    /// This member has it.
    Member(usize),
}

/// Settings of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplicaOptions {
    pub(crate) rule: Rule,
    /// Whether the set continues with the members left when the rule can no longer be met (not for a quorum).
    pub(crate) degrade: bool,
    /// How far a member may be behind before writes wait for it, bytes.
    pub(crate) backlog_bytes: usize,
    /// Open even if a missing member may be the only one with some acknowledged commits.
    pub(crate) accept_missing: bool,
}

impl ReplicaOptions {
    /// How many members must work to meet the rule, given those that do (`current`).
    fn needed(&self, members: usize, current: &[usize]) -> usize {
        match self.rule {
            Rule::Quorum(n) => n,
            Rule::Member(i) if current.contains(&i) => 1,
            Rule::All | Rule::Member(_) if self.degrade => 1,
            Rule::All | Rule::Member(_) => members,
        }
    }
}

/// A member of a set: a device and its label.
pub struct Member {
    pub(crate) name: String,
    pub(crate) device: Result<Box<dyn LogDevice>, String>,
    pub(crate) label: Box<dyn LabelStore>,
    pub(super) storage: Option<Storage>,
}

impl Member {
    /// A member whose label is in `dir`, the directory of its log files. `device` may be the error of opening it:
    /// the set then decides whether it can do without this member.
    #[must_use]
    pub fn new(dir: &Path, device: Result<Box<dyn LogDevice>, DeviceError>) -> Member {
        Member {
            name: dir.display().to_string(),
            device: device.map_err(|e| e.to_string()),
            label: Box::new(FileLabel::in_dir(dir)),
            storage: Storage::of(dir),
        }
    }
}

/// The result of opening a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// Generation of the set: 1 when new, plus one for each opening and each lost member.
    pub generation: u64,
    /// Members that lacked the newest records, and the bytes copied to them.
    pub healed: Vec<(String, u64)>,
    /// Members that were new or out of date, and the bytes copied to them.
    pub rebuilt: Vec<(String, u64)>,
    /// Missing members, and why.
    pub missing: Vec<(String, String)>,
    /// Sentences for the user.
    pub warnings: Vec<String>,
}

impl Opened {
    fn causes(&self) -> String {
        let causes: Vec<_> = self.missing.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        if causes.is_empty() { "according to the labels".to_owned() } else { causes.join("; ") }
    }
}

/// A replica set as a log device, opened by [`open_mirror`](super::open_mirror),
/// [`open_flash_log`](super::open_flash_log) and [`open_standby`](super::open_standby).
pub struct Replicas {
    what: &'static str,
    /// The rule of durability, for people.
    rule_text: String,
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
    /// Opens the set: makes the members equal, adds new ones, and starts their threads.
    pub(crate) fn open(
        what: &'static str,
        rule_text: String,
        mut members: Vec<Member>,
        options: ReplicaOptions,
        scan: Scan<'_>,
    ) -> Result<Replicas, DeviceError> {
        let storage: Vec<_> = members.iter().map(|m| (m.name.as_str(), m.storage.as_ref())).collect();
        let warnings = shared_disk::warnings(&storage);
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
                board.fail(index, cause.map_or_else(|| "it was missing".to_owned(), |(_, why)| why.clone()));
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
            rule_text,
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

    /// A handle to watch the set while its log is written.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.board))
    }

    /// The result of opening it.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// A copy of `blocks` that all lanes share, because they finish at different times.
    fn copy(&mut self, blocks: &[u8]) -> Result<Blocks, DeviceError> {
        self.pool.blocks(blocks.len(), |to| {
            to.copy_from_slice(blocks);
            Ok(())
        })
    }

    /// Queues `op` for all lanes, after waiting until no member is too far behind for `bytes` more.
    fn enqueue(&mut self, op: &Op, bytes: usize) -> Result<(), DeviceError> {
        let board = Arc::clone(&self.board);
        let state = self.adopt_rule(board.lock(), &board)?;
        let mut state = self.drop_failed(state, &board)?;
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
        board.enqueue(&mut state, op);
        Ok(())
    }

    /// Waits until `ticket` is durable under the rule.
    fn wait(&mut self, ticket: u64) -> Result<(), DeviceError> {
        let board = Arc::clone(&self.board);
        let mut state = board.lock();
        loop {
            state = self.drop_failed(state, &board)?;
            if self.covered(&state, ticket) {
                self.acked = ticket;
                return Ok(());
            }
            state = board.wait(state);
        }
    }

    /// Whether the working members meet the rule for `ticket`.
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

    /// Refuses to go on with too few members for the rule.
    fn require_enough(&self, state: &State, live: &[usize]) -> Result<(), DeviceError> {
        let needed = self.options.needed(state.lanes.len(), live);
        if live.len() >= needed {
            return Ok(());
        }
        let last = state.lanes.iter().rfind(|lane| lane.failed.is_some());
        let cause = |lane: &lane::LaneState| format!("{}: {}", lane.name, lane.failed.as_deref().unwrap_or_default());
        Err(DeviceError::TooFew {
            what: self.what.to_owned(),
            left: live.len(),
            members: state.lanes.len(),
            needed,
            cause: last.map_or_else(String::new, cause),
            advice: "Repair the one that failed, then open the log again".to_owned(),
        })
    }

    /// Makes the rule that was asked for that of the set, in all labels, once the members have all earlier commits.
    fn adopt_rule<'a>(
        &mut self,
        mut state: MutexGuard<'a, State>,
        board: &'a Board,
    ) -> Result<MutexGuard<'a, State>, DeviceError> {
        let Some((rule, text)) = state.wanted.take() else { return Ok(state) };
        loop {
            state = self.drop_failed(state, board)?;
            if state.lanes.iter().filter(|lane| lane.failed.is_none()).all(|lane| lane.done >= self.acked) {
                break;
            }
            state = board.wait(state);
        }
        let live = state.live();
        (self.options.rule, self.label.rule, self.rule_text) = (rule, rule, text.to_owned());
        self.require_enough(&state, &live)?;
        drop(state);
        self.relabel(&live, board);
        Ok(board.lock())
    }

    /// Drops failed members. Before it continues without them, the others catch up with every acknowledged commit
    /// and record the loss. An error if too few are left.
    fn drop_failed<'a>(
        &mut self,
        mut state: MutexGuard<'a, State>,
        board: &'a Board,
    ) -> Result<MutexGuard<'a, State>, DeviceError> {
        loop {
            let failed: Vec<usize> = (0..state.lanes.len())
                .filter(|i| state.lanes.get(*i).is_some_and(|lane| lane.failed.is_some() && !lane.dropped))
                .collect();
            if failed.is_empty() {
                return Ok(state);
            }
            let live = state.live();
            self.require_enough(&state, &live)?;
            if !self.covered(&state, self.acked) {
                state = board.wait(state);
                continue;
            }
            drop(state);
            self.relabel(&live, board);
            state = board.lock();
            // If another one has failed meanwhile, start over.
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

    /// Writes the remaining members to the labels of all of them. One that cannot be written is lost, too.
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

    /// Asks the members in order until one answers.
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
        Box::new(ReplicaMaker { board: Arc::clone(&self.board), makers })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.enqueue(&Op::Open { file }, 0)
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let blocks = self.copy(blocks)?;
        let bytes = blocks.length;
        self.enqueue(&Op::Write { offset, blocks }, bytes)
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        self.ticket += 1;
        let ticket = self.ticket;
        self.enqueue(&Op::Sync { ticket }, 0)?;
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
        self.enqueue(&Op::WriteSync { offset, blocks, ticket }, bytes)?;
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
        format!("{}, {}: {}", self.what, self.rule_text, self.described.join(" | "))
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        close(&self.board, &mut self.lanes);
    }
}

/// Prepares files on all members.
struct ReplicaMaker {
    board: Arc<Board>,
    makers: Vec<Option<Box<dyn FileMaker>>>,
}

impl FileMaker for ReplicaMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let mut made = false;
        let mut refused = None;
        for (index, maker) in self.makers.iter_mut().enumerate() {
            let works = self.board.lock().lanes.get(index).is_some_and(|lane| lane.failed.is_none());
            if let Some(maker) = maker.as_mut().filter(|_| works) {
                match maker.make(file, recycle) {
                    Ok(()) => made = true,
                    // The writer's next call decides whether the set can do without it.
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
