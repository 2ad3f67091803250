//! A replica set: the same log on several devices, each written by its own thread. The mirror, the flash log and
//! the standby are replica sets with different rules of durability. A flash log goes to two devices, and a commit is durable
//! when the first of them has it: so one that pauses (erasing, garbage collection) delays no commit.
//!
//! When a member fails, the others first catch up with every acknowledged commit; only then does the log continue. So
//! the longest log of those that work holds every acknowledged commit. A set is always a new log: its members must be
//! empty.

mod lane;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, MutexGuard};

pub(crate) use lane::{Board, Lane, LaneState, Op, Pool, State, close};

use super::shared_disk::{self, Storage};
use super::{DeviceError, DeviceTimes, FileMaker, LogDevice};

/// How far a member may be behind before writes wait for it, bytes.
pub(crate) const BACKLOG_BYTES: usize = 64 << 20;

/// When a commit is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Every member has it.
    All,
    /// This number of members has it; the others follow in order, behind by at most the backlog.
    Quorum(usize),
    /// This side, the first member, has written it; the standby, the second one, receives it later. A lost standby does not stop
    /// the log.
    Local,
    /// The standby has it in memory. It survives the loss of either host, not of both at once.
    Received,
    /// The standby has written it.
    Written,
    /// This side and the standby have written it.
    Both,
}

impl Rule {
    /// The member that decides alone.
    fn member(self) -> Option<usize> {
        match self {
            Rule::Local => Some(0),
            Rule::Received | Rule::Written => Some(1),
            Rule::All | Rule::Both | Rule::Quorum(_) => None,
        }
    }

    /// How many members must work to meet the rule, given those that do (`live`).
    fn needed(self, members: usize, live: &[usize]) -> usize {
        match (self, self.member()) {
            (Rule::Quorum(n), _) => n,
            (_, Some(i)) if live.contains(&i) => 1,
            _ => members,
        }
    }

    /// Who must have a commit, for people.
    fn text(self) -> String {
        let text = match self {
            Rule::All => "all have it",
            Rule::Quorum(1) => "the first has it",
            Rule::Quorum(n) => return format!("{n} have it"),
            Rule::Local => "it is written here",
            Rule::Received => "the standby has received it",
            Rule::Written => "the standby has written it",
            Rule::Both => "it is written here and at the standby",
        };
        text.to_owned()
    }
}

/// A device of a replica set, with its name and where its files are.
pub struct Member {
    pub(super) name: String,
    pub(super) device: Box<dyn LogDevice>,
    pub(super) storage: Option<Storage>,
}

impl Member {
    /// A member whose log files are in `dir`.
    pub fn new(dir: &Path, device: Box<dyn LogDevice>) -> Member {
        Member { name: dir.display().to_string(), device, storage: Storage::under(dir) }
    }
}

/// Checks that the members are empty and that their files have one size, which it returns.
fn check(what: &str, members: &[Member]) -> Result<u64, DeviceError> {
    let mut file_bytes = None;
    for member in members {
        let refuse = |why: String, advice: &str| DeviceError::Unsupported {
            what: what.to_owned(),
            wish: format!("take {} as a member", member.name),
            why,
            advice: advice.to_owned(),
        };
        if !member.device.files()?.is_empty() {
            return Err(refuse("it holds log files already".to_owned(), "Name an empty directory"));
        }
        let size = member.device.file_bytes();
        if *file_bytes.get_or_insert(size) != size {
            return Err(refuse(
                format!("its log files have {size} bytes, unlike those of the members before it"),
                "Use one file size for all members",
            ));
        }
    }
    Ok(file_bytes.unwrap_or_default())
}

/// A replica set as a log device. [`open_standby`](super::open_standby) opens one with a standby.
pub struct Replicas {
    what: &'static str,
    rule: Rule,
    backlog_bytes: usize,
    /// Progress of the members, for any thread.
    pub(super) board: Arc<Board>,
    lanes: Vec<Lane>,
    described: Vec<String>,
    block_bytes: usize,
    file_bytes: u64,
    pool: Pool,
    ticket: u64,
    acked: u64,
    /// Sentences for the user.
    pub warnings: Vec<String>,
}

impl Replicas {
    /// Opens the set, which is a `what`, on empty members, and starts their threads.
    ///
    /// # Errors
    /// The members cannot meet the rule, one of them holds log files, or their sizes differ.
    pub fn open(what: &'static str, rule: Rule, members: Vec<Member>) -> Result<Replicas, DeviceError> {
        let all: Vec<_> = (0..members.len()).collect();
        let possible = (1..=all.len()).contains(&rule.needed(all.len(), &all));
        if !possible || rule.member().is_some_and(|i| i >= all.len()) {
            return Err(DeviceError::Unsupported {
                what: what.to_owned(),
                wish: format!("be durable when {}", rule.text()),
                why: format!("it has {} members", all.len()),
                advice: "Name one of them, or a number of them from 1 on".to_owned(),
            });
        }
        let storage: Vec<_> = members.iter().map(|m| (m.name.as_str(), m.storage.as_ref())).collect();
        let warnings = shared_disk::warnings(&storage);
        let file_bytes = check(what, &members)?;
        let block_bytes = members.iter().map(|m| m.device.block_bytes()).max().unwrap_or(4096);
        let described = members.iter().map(|m| m.device.describe()).collect();
        let board = Arc::new(Board::new(members.iter().map(|m| m.name.clone())));
        let lanes = members.into_iter().enumerate().map(|(index, member)| Lane::start(&board, index, member.device));
        Ok(Replicas {
            what,
            rule,
            backlog_bytes: BACKLOG_BYTES,
            lanes: lanes.collect::<Result<_, _>>()?,
            board,
            described,
            block_bytes,
            file_bytes,
            pool: Pool::default(),
            ticket: 0,
            acked: 0,
            warnings,
        })
    }

    /// Queues `op` for all lanes, after waiting until no member is too far behind for `bytes` more.
    fn enqueue(&mut self, op: &Op, bytes: usize) -> Result<(), DeviceError> {
        let board = Arc::clone(&self.board);
        let state = self.adopt_rule(board.lock(), &board)?;
        let mut state = self.without_failed(state, &board)?;
        let full = |state: &State| {
            let behind = |lane: &LaneState| lane.failed.is_none() && lane.behind > 0;
            state.lanes.iter().any(|lane| behind(lane) && lane.behind + bytes > self.backlog_bytes)
        };
        while bytes > 0 && full(&state) {
            state = board.wait(state);
        }
        board.enqueue(&mut state, op);
        Ok(())
    }

    /// Waits until `ticket` is durable under the rule.
    fn wait(&mut self, ticket: u64) -> Result<(), DeviceError> {
        let board = Arc::clone(&self.board);
        let mut state = board.lock();
        loop {
            state = self.without_failed(state, &board)?;
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
        let has = |lane: &LaneState| lane.done >= ticket;
        match (self.rule, self.rule.member()) {
            (Rule::Quorum(n), _) => live.filter(|lane| has(lane)).count() >= n,
            // If that one has failed, the set does not go on.
            (_, Some(i)) => state.lanes.get(i).is_some_and(has),
            _ => live.all(has),
        }
    }

    /// Refuses to go on with too few members for the rule.
    fn require_enough(&self, state: &State) -> Result<(), DeviceError> {
        let live = state.live();
        let needed = self.rule.needed(state.lanes.len(), &live);
        if live.len() >= needed {
            return Ok(());
        }
        let last = state.lanes.iter().rfind(|lane| lane.failed.is_some());
        let cause = |lane: &LaneState| format!("{}: {}", lane.name, lane.failed.as_deref().unwrap_or_default());
        Err(DeviceError::TooFew {
            what: self.what.to_owned(),
            left: live.len(),
            members: state.lanes.len(),
            needed,
            cause: last.map_or_else(String::new, cause),
            advice: "Repair the one that failed, then open the log again".to_owned(),
        })
    }

    /// Makes the rule that was asked for that of the set, once the members have all earlier commits.
    fn adopt_rule<'a>(
        &mut self,
        mut state: MutexGuard<'a, State>,
        board: &'a Board,
    ) -> Result<MutexGuard<'a, State>, DeviceError> {
        let Some(rule) = state.wanted.take() else { return Ok(state) };
        loop {
            state = self.without_failed(state, board)?;
            if state.lanes.iter().filter(|lane| lane.failed.is_none()).all(|lane| lane.done >= self.acked) {
                break;
            }
            state = board.wait(state);
        }
        self.rule = rule;
        self.require_enough(&state)?;
        Ok(state)
    }

    /// Goes on without members that have failed, once the others have every acknowledged commit. An error if too few
    /// are left.
    fn without_failed<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        board: &'a Board,
    ) -> Result<MutexGuard<'a, State>, DeviceError> {
        while state.lanes.iter().any(|lane| lane.failed.is_some()) {
            self.require_enough(&state)?;
            if self.covered(&state, self.acked) {
                break;
            }
            state = board.wait(state);
        }
        Ok(state)
    }

    /// Asks the members in order until one answers.
    fn ask<T>(&self, mut question: impl FnMut(&dyn LogDevice) -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        let mut refused = None;
        for (_, lane) in self.lanes.iter().enumerate().filter(|(index, _)| self.board.works(*index)) {
            match question(lane.device().as_ref()) {
                Ok(answer) => return Ok(answer),
                Err(e) => refused = Some(e),
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
        let makers = self.lanes.iter().map(|lane| lane.device().file_maker()).collect();
        Box::new(ReplicaMaker { board: Arc::clone(&self.board), makers })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.enqueue(&Op::Open { file }, 0)
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let bytes = blocks.len();
        let blocks = self.pool.blocks(bytes, |to| to.copy_from_slice(blocks))?;
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
        let bytes = blocks.len();
        let blocks = self.pool.blocks(bytes, |to| to.copy_from_slice(blocks))?;
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
        self.ask(|device| device.read(file, offset, into))
    }

    fn describe(&self) -> String {
        format!("{}, durable when {}: {}", self.what, self.rule.text(), self.described.join(" | "))
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
    makers: Vec<Box<dyn FileMaker>>,
}

impl FileMaker for ReplicaMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let mut made = false;
        let mut refused = None;
        for (index, maker) in self.makers.iter_mut().enumerate().filter(|(index, _)| self.board.works(*index)) {
            match maker.make(file, recycle) {
                Ok(()) => made = true,
                // The writer's next call decides whether the set can do without it.
                Err(e) => {
                    self.board.fail(index, e.to_string());
                    refused = Some(e);
                }
            }
        }
        match refused {
            Some(e) if !made => Err(e),
            _ => Ok(()),
        }
    }
}
