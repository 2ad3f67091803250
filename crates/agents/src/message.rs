//! Messages between coordinator and agents, in JSON.
//!
//! The coordinator numbers its orders and repeats each until it is answered; an agent answers a repeated order as before, or that it
//! is under way. So lost messages and a hub that starts again do no harm. What jobs counted is asked for part by part, as a hub takes no
//! more than it is set to (`max_payload`) at once. Subjects: `loadline.all` for all agents, `loadline.agent.ID` for one, `loadline.run.RUN` for answers.

use std::collections::BTreeMap;
use std::ops::Range;

use loadline_model::plan::{Payload, WorkloadFile};
use loadline_model::{Driver, JobLoad};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::offset::Offset;

/// Number of this protocol. In each protocol [`Order::Roll`] and [`Answer::Here`] are written as in this one, so that agents of another
/// can be named; they get no other order.
pub(crate) const PROTOCOL: u32 = 6;
pub(crate) const TO_ALL: &str = "loadline.all";
/// Counts in one answer, bytes: escaped, they have twice as many at most.
const PART: usize = if cfg!(test) { 2000 } else { 16 << 10 };
/// Least size of messages that a hub must take, bytes: a part, and as much for the rest.
pub(crate) const NEEDED: usize = 4 * PART;

pub(crate) fn to_agent(id: &str) -> String {
    format!("loadline.agent.{id}")
}

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
    pub(crate) body: B,
}

impl<B: Serialize> Message<B> {
    pub(crate) fn new(run: &str, number: u64, agent: &str, body: B) -> Message<B> {
        Message { run: run.to_owned(), number, agent: agent.to_owned(), body }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Plain data with text keys, written into memory: this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl<B: DeserializeOwned> Message<B> {
    pub(crate) fn read(bytes: &[u8]) -> Option<Message<B>> {
        serde_json::from_slice(bytes).ok()
    }
}

/// A message that came, not read yet.
#[derive(Debug)]
pub(crate) struct Received {
    /// When it came, ns on the clock of whom it came to.
    pub(crate) at_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

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
    Open(Box<JobsOrder>),
    Jobs(Command),
    /// Question for the counts of the jobs, from this byte on.
    Counts(usize),
    /// The run is over.
    Release,
}

/// Next step of jobs with open sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    /// They start at this time; the window will have this length, ns.
    Start {
        start_ns: u64,
        window_ns: u64,
    },
    Window {
        open_ns: u64,
        close_ns: u64,
    },
    /// They end. If it is urgent, because nobody waits for what they counted, sessions that are still busy after 2 s are cancelled.
    End {
        urgent: bool,
    },
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
    pub(crate) nodes: Vec<String>,
    /// The agent's jobs, by their numbers in the test.
    pub(crate) jobs: Range<u32>,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Here(Presence),
    Done,
    UnderWay,
    Opened(Opened),
    /// The time: when the order came and when this left, on the agent's clock, ns.
    Pong {
        received_ns: u64,
        answered_ns: u64,
    },
    Refused(Refusal),
    /// Unasked, every 0.1 s until the window is set: how far the jobs of a test are.
    Progress {
        test: u64,
        progress: Progress,
    },
    /// Unasked, once all jobs have passed the window end: the number of the test.
    Closed(u64),
    /// Counts of the jobs; nothing if there are no more, or never were any. Jobs tell all at once, an agent part by part.
    Counts(String),
}

impl Answer {
    /// The part of `counts` from byte `from` on.
    pub(crate) fn part_of(counts: &str, from: usize) -> Answer {
        let end = (from..=from.saturating_add(PART)).rev().find(|end| counts.is_char_boundary(*end));
        Answer::Counts(counts.get(from..end.unwrap_or(from)).unwrap_or_default().to_owned())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) fingerprint: String,
    /// The sessions' ids on each server; empty if unknown.
    pub(crate) sessions: Vec<Vec<u32>>,
}

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
    #[error("{0}")]
    Work(String),
    #[error("{0}")]
    Target(String),
}

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
    pub name: String,
    pub version: String,
    pub protocol: u32,
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
        assert_eq!(Message::read(newer.as_bytes()), Some(Message::new("r1", 7, "x", Answer::Here(here))));
        let bytes = Message::new("r1", 7, "", Order::Roll).bytes();
        assert_eq!(String::from_utf8_lossy(&bytes), r#"{"run":"r1","number":7,"agent":"","body":"roll"}"#);
        assert_eq!(Message::<Order>::read(b"hello"), None);
    }

    #[test]
    fn parts_that_would_end_within_a_character_are_put_together_again() {
        let (counts, mut all) = (format!("1{}", "é".repeat(PART)), String::new());
        while let Answer::Counts(part) = Answer::part_of(&counts, all.len())
            && !part.is_empty()
        {
            assert!(part.len() <= PART, "{}", part.len());
            all += &part;
        }
        assert_eq!(all, counts);
    }
}
