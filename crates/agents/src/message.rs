//! Messages between coordinator and agents, in JSON.
//!
//! The coordinator numbers its orders and repeats each until it is answered; an agent answers a repeated order as before, or that it
//! is under way. So lost messages and a hub that starts again do no harm. A message that is longer than the hub takes is packed and
//! cut into parts; each part follows a line of JSON that tells where it belongs. Subjects: `loadline.all` for all agents,
//! `loadline.agent.ID` for one, `loadline.run.RUN` for answers.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Range;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use loadline_model::plan::{Payload, WorkloadFile};
use loadline_model::{Driver, JobLoad};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::offset::Offset;

/// Number of this protocol. In each protocol [`Order::Roll`] and [`Answer::Here`] are written as in this one, so that agents of another
/// can be named; they get no other order.
pub(crate) const PROTOCOL: u32 = 5;
/// Subject of messages for all agents.
pub(crate) const TO_ALL: &str = "loadline.all";
/// Longest message, bytes: half of what a hub takes by default.
const MOST_BYTES: usize = 500_000;
/// Longest line before a part, bytes.
const PART_HEAD: usize = 1024;
/// Most that is unpacked, bytes.
const MOST_UNPACKED: u64 = 4 << 30;

/// Subject of messages for the agent with this id.
pub(crate) fn to_agent(id: &str) -> String {
    format!("loadline.agent.{id}")
}

/// Subject of answers to the run (or other asker) with this id.
pub(crate) fn to_run(id: &str) -> String {
    format!("loadline.run.{id}")
}

/// An order, or an answer with the run and the number of its order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message<B> {
    /// The run, or other asker.
    pub(crate) run: String,
    /// Number of the order in the run; 0 has what an agent says unasked.
    pub(crate) number: u64,
    /// Id of the agent that answers; empty in orders.
    #[serde(default)]
    pub(crate) agent: String,
    /// Order or answer.
    pub(crate) body: B,
}

/// Where a part belongs: run, number and agent of its message, its place among the parts, and how many there are.
type PartHead = (String, u64, String, usize, usize);

impl<B: Serialize> Message<B> {
    pub(crate) fn new(run: &str, number: u64, agent: &str, body: B) -> Message<B> {
        Message { run: run.to_owned(), number, agent: agent.to_owned(), body }
    }

    /// The message as a hub takes it whose messages have at most `most` bytes: in one piece or in several.
    pub(crate) fn pieces(&self, most: usize) -> Vec<Vec<u8>> {
        // Plain data with text keys, written into memory: nothing here can fail.
        let whole = serde_json::to_vec(self).unwrap_or_default();
        let most = most.min(MOST_BYTES);
        if whole.len() <= most {
            return vec![whole];
        }
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        let _ = packed.write_all(&whole);
        let packed = packed.finish().unwrap_or_default();
        let parts = packed.chunks(most.saturating_sub(PART_HEAD).max(PART_HEAD));
        let count = parts.len();
        let piece = |(place, part): (usize, &[u8])| {
            let head = (&self.run, self.number, &self.agent, place, count);
            [&serde_json::to_vec(&head).unwrap_or_default(), &b"\n"[..], part].concat()
        };
        parts.enumerate().map(piece).collect()
    }
}

/// A piece of a message that came, not read yet.
#[derive(Debug)]
pub(crate) struct Received {
    /// When it came, ns on the clock of whom it came to.
    pub(crate) at_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads messages, and puts those in parts together. Parts come in their order. A message that lacks one is dropped: its order is
/// repeated.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// By run and agent: number of the message, parts that came, what is in them.
    begun: BTreeMap<(String, String), (u64, usize, Vec<u8>)>,
}

impl Reader {
    /// The message that is complete with this piece; `None` if more of it follows, a part is missing, or it is no message.
    pub(crate) fn read<B: DeserializeOwned>(&mut self, piece: &[u8]) -> Option<Message<B>> {
        if piece.starts_with(b"{") {
            return serde_json::from_slice(piece).ok();
        }
        let end = piece.iter().position(|byte| *byte == b'\n')?;
        let (head, part) = piece.split_at_checked(end + 1)?;
        let (run, number, agent, place, count): PartHead = serde_json::from_slice(head).ok()?;
        let sender = (run, agent);
        let (begun, came, packed) = self.begun.entry(sender.clone()).or_default();
        if place == 0 {
            (*begun, *came) = (number, 0);
            packed.clear();
        }
        if (*begun, *came) != (number, place) {
            return None;
        }
        *came += 1;
        packed.extend(part);
        if *came < count {
            return None;
        }
        let (_, _, packed) = self.begun.remove(&sender)?;
        serde_json::from_reader(ZlibDecoder::new(packed.as_slice()).take(MOST_UNPACKED)).ok()
    }

    /// Parts that came of a message of `agent` that is under way.
    pub(crate) fn came(&self, run: &str, agent: &str) -> usize {
        let mut begun = self.begun.iter();
        begun.find(|((of, by), _)| of == run && by == agent).map_or(0, |(_, (_, came, _))| *came)
    }
}

/// Order of a coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// To all: who is there?
    Roll,
    /// To all: the run goes on.
    Beat,
    /// Work for the run from now on; all else needs it.
    Enlist,
    Ping,
    /// Open the sessions of these jobs.
    Open(Box<JobsOrder>),
    /// Next step of the jobs.
    Jobs(Command),
    /// Question for the counts of the jobs.
    Counts,
    /// The run is over.
    Release,
}

/// Next step of jobs with open sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    /// They start at this time; the window will have this length, ns.
    Start { start_ns: u64, window_ns: u64 },
    /// The window, ns.
    Window { open_ns: u64, close_ns: u64 },
    /// They end. If it is urgent, because nobody waits for what they counted, sessions that are still busy after 2 s are cancelled.
    End { urgent: bool },
}

impl Command {
    /// The time before which it must be there.
    pub(crate) fn due_ns(self) -> Option<u64> {
        match self {
            Command::Start { start_ns: due_ns, .. } | Command::Window { open_ns: due_ns, .. } => Some(due_ns),
            Command::End { .. } => None,
        }
    }

    /// The command with the times of an agent's clock.
    pub(crate) fn on(self, clock: &Offset) -> Command {
        let at = |ns| clock.to_agent(ns);
        match self {
            Command::Start { start_ns, window_ns } => Command::Start { start_ns: at(start_ns), window_ns },
            Command::Window { open_ns, close_ns } => Command::Window { open_ns: at(open_ns), close_ns: at(close_ns) },
            Command::End { .. } => self,
        }
    }
}

/// The jobs of one agent, and all that makes them those of the same run from one process.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobsOrder {
    /// Number of the test; 0, with no jobs, if only asked whether the target can be reached.
    pub(crate) test: u64,
    /// The run, in which a target stays open.
    pub(crate) run: String,
    /// URL of the target, with its password or without.
    pub(crate) url: String,
    /// URLs of further nodes.
    pub(crate) nodes: Vec<String>,
    /// The agent's jobs, by their numbers in the test.
    pub(crate) jobs: Range<u32>,
    /// Jobs of the test, of all agents.
    pub(crate) all_jobs: u32,
    /// `None`: the client.
    pub(crate) driver: Option<Driver>,
    pub(crate) workload: String,
    /// File, if it is the user's own.
    pub(crate) file: Option<WorkloadFile>,
    pub(crate) parameters: BTreeMap<String, i64>,
    pub(crate) size_bytes: u64,
    /// Seed of the rows that are loaded.
    pub(crate) seed: u64,
    pub(crate) draws: u64,
    pub(crate) payload: Payload,
    /// Nodes of the target over which all jobs are spread, the first ones.
    pub(crate) used_nodes: Option<u32>,
    pub(crate) load: JobLoad,
}

impl std::fmt::Debug for JobsOrder {
    /// Without the URLs, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JobsOrder({} of test {}, jobs {:?})", self.workload, self.test, self.jobs)
    }
}

/// Answer of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Here(Presence),
    /// The order was carried out.
    Done,
    /// The order is being carried out.
    UnderWay,
    Opened(Opened),
    /// The time: when the order came and when this left, on the agent's clock, ns.
    Pong {
        received_ns: u64,
        answered_ns: u64,
    },
    /// The order cannot be carried out.
    Refused(Refusal),
    /// Unasked, every 0.1 s until the window is set: how far the jobs of a test are.
    Progress {
        test: u64,
        progress: Progress,
    },
    /// Unasked, once all jobs have passed the window end: the number of the test.
    Closed(u64),
    /// Counts of the jobs; empty if they never were.
    Counts(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) fingerprint: String,
    /// The sessions' ids on each server; empty if unknown.
    pub(crate) sessions: Vec<Vec<u32>>,
}

/// Why an agent refuses an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Refusal {
    #[error("it works for run {0}")]
    Busy(String),
    #[error("it still ends the jobs of another run")]
    Ending,
    /// It left the run that gives the order.
    #[error("nothing was heard of run {run} for {silent_s:.1} s")]
    Left { run: String, silent_s: f64 },
    #[error("it does not work for this run: it was started anew")]
    NotEnlisted,
    #[error("the order does not fit where its jobs are")]
    Unfit,
    #[error("the order came {by_ms} ms too late")]
    Late { by_ms: u64 },
    /// It cannot do the work that was sent.
    #[error("{0}")]
    Work(String),
    /// It cannot reach the target.
    #[error("{0}")]
    Target(String),
}

/// How far the jobs of an agent are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Jobs that have completed their first transaction.
    pub(crate) started: u32,
    pub(crate) ended: u32,
    /// Transactions completed so far.
    pub(crate) completed: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Presence {
    /// Id, new at each start.
    pub id: String,
    /// Name that the user gave it.
    pub name: String,
    pub version: String,
    pub protocol: u32,
    /// Name of its machine.
    pub host: String,
    /// Identity of its machine, so that agents of one machine are known.
    pub machine: String,
    pub process: u32,
    /// Whether nobody between it and the hub can read what is said.
    pub private: bool,
    /// CPUs of its machine that it may use.
    pub cpus: u32,
    pub most_jobs: u32,
    /// Most sessions on servers: it may not open more files.
    pub most_sessions: u32,
    /// The run that it works for.
    pub busy: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_other_protocols_are_understood_when_they_say_who_they_are() {
        let newer =
            r#"{"protocol":9,"run":"r1","number":7,"agent":"x","body":{"here":{"name":"a1","protocol":9,"mood":3}}}"#;
        let here = Presence { name: "a1".into(), protocol: 9, ..Presence::default() };
        assert_eq!(Reader::default().read(newer.as_bytes()), Some(Message::new("r1", 7, "x", Answer::Here(here))));
        let bytes = Message::new("r1", 7, "", Order::Roll).pieces(8192).remove(0);
        assert_eq!(String::from_utf8_lossy(&bytes), r#"{"run":"r1","number":7,"agent":"","body":"roll"}"#);
        assert_eq!(Reader::default().read::<Order>(b"hello"), None);
    }

    #[test]
    fn a_long_message_comes_whole_or_not_at_all() {
        let text: String = (0..9000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let long = |number, agent: &str| Message::new("r1", number, agent, Answer::Counts(text.clone()));
        let [first, other] = [long(3, "a"), long(4, "b")].map(|message| message.pieces(8192));
        assert!(first.len() > 3 && first.iter().all(|piece| piece.len() <= 8192));
        let mut reader = Reader::default();
        let mut come = |pieces: Vec<&Vec<u8>>| -> Vec<Message<Answer>> {
            pieces.into_iter().filter_map(|piece| reader.read(piece)).collect()
        };
        let by_turns = first.iter().zip(&other).flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(come(by_turns), [long(3, "a"), long(4, "b")]);
        // The first time it lacks a part; it is repeated.
        let lossy = first.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, piece)| piece).chain(&first);
        assert_eq!(come(lossy.collect()), [long(3, "a")]);
    }
}
