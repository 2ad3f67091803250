//! What coordinator and agents say to each other: JSON, with the number of the protocol in front.
//!
//! The coordinator gives orders, each with a number, and repeats an order until it is answered; an agent answers a repeated order
//! as before. So lost messages and a hub that starts again do no harm. Subjects: `loadline.all` for all agents,
//! `loadline.agent.ID` for one, `loadline.run.RUN` for answers.

use std::collections::BTreeMap;

use loadline_model::plan::WorkloadFile;
use loadline_model::{Driver, JobLoad};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Number of this protocol. Agents of another one are named and not used.
pub const PROTOCOL: u32 = 3;
/// Subject of messages for all agents.
pub const TO_ALL: &str = "loadline.all";

/// Subject of messages for the agent with this id.
#[must_use]
pub fn to_agent(id: &str) -> String {
    format!("loadline.agent.{id}")
}

/// Subject of answers to the run (or other asker) with this id.
#[must_use]
pub fn to_run(id: &str) -> String {
    format!("loadline.run.{id}")
}

/// A message: who says it, and what. `run` and `number` are those of the order, also in an answer to it; number 0 has what an
/// agent says unasked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message<B> {
    /// [`PROTOCOL`] of the sender.
    pub protocol: u32,
    /// The run, or other asker.
    pub run: String,
    /// Number of the order in the run.
    pub number: u64,
    /// Id of the agent that answers; empty in orders.
    #[serde(default)]
    pub agent: String,
    /// Order or answer.
    pub body: B,
}

/// Why a message could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It is of another protocol.
    #[error("the message is of protocol {theirs}, this loadline has {PROTOCOL}")]
    Protocol {
        /// Theirs.
        theirs: u32,
        /// The run.
        run: String,
        /// Number of the order.
        number: u64,
    },
    /// It is no message of loadline.
    #[error("no message of loadline: {0}")]
    Other(String),
}

impl<B: Serialize + DeserializeOwned> Message<B> {
    /// A message of this protocol.
    #[must_use]
    pub fn new(run: &str, number: u64, agent: &str, body: B) -> Message<B> {
        Message { protocol: PROTOCOL, run: run.to_owned(), number, agent: agent.to_owned(), body }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // Plain data with text keys: this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn read(bytes: &[u8]) -> Result<Message<B>, MessageError> {
        let other = |e: serde_json::Error| MessageError::Other(e.to_string());
        let raw: Message<Value> = serde_json::from_slice(bytes).map_err(other)?;
        let Message { protocol, run, number, agent, body } = raw;
        if protocol != PROTOCOL {
            return Err(MessageError::Protocol { theirs: protocol, run, number });
        }
        Ok(Message { protocol, run, number, agent, body: serde_json::from_value(body).map_err(other)? })
    }
}

/// What a coordinator wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// To all: who is there? It is read by agents of every protocol, and answered with [`Answer::Here`].
    Roll,
    /// To all: the run goes on.
    Beat,
    /// Work for the run from now on; all else needs it.
    Enlist,
    /// What time is it?
    Ping,
    /// A part of the user's workload file of the order that follows ([`crate::pack`]), because the hub takes no message of any length.
    File {
        /// Number of the part, from 0.
        part: usize,
        /// Its text.
        text: String,
    },
    /// Open the sessions of these jobs.
    Open(Box<JobsOrder>),
    /// Start the jobs, at this time of the agent's clock.
    Start {
        /// Number of the test.
        test: u64,
        /// Common start, ns.
        start_ns: u64,
        /// Length of the window, ns.
        window_ns: u64,
    },
    /// The window, on the agent's clock.
    Window {
        /// Number of the test.
        test: u64,
        /// Window start, ns.
        open_ns: u64,
        /// Window end, ns.
        close_ns: u64,
    },
    /// End the jobs.
    Stop {
        /// Number of the test.
        test: u64,
    },
    /// A part of what the test counted.
    Part {
        /// Number of the test.
        test: u64,
        /// Number of the part, from 0.
        part: usize,
    },
    /// The run is over.
    Release,
}

/// The jobs of one agent, and all that makes them those of the same run from one process.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct JobsOrder {
    /// Number of the test.
    pub test: u64,
    /// The run, for names of sessions.
    pub run: String,
    /// URL of the target, with its password or without.
    pub url: String,
    /// URLs of further nodes.
    pub nodes: Vec<String>,
    /// Number of its first job in the test.
    pub first_job: u32,
    /// Number of its jobs.
    pub jobs: u32,
    /// Jobs of the test, of all agents.
    pub all_jobs: u32,
    /// Driver.
    pub driver: Driver,
    /// Code of the workload.
    pub workload: String,
    /// Its file, if it is the user's own; without its text, which went ahead.
    pub file: Option<WorkloadFile>,
    /// All its parameters.
    pub parameters: BTreeMap<String, i64>,
    /// Size of the data set, bytes.
    pub size_bytes: u64,
    /// Seed of the rows that are loaded.
    pub seed: u64,
    /// Seed of what the jobs draw.
    pub draws: u64,
    /// Share of the payload that compresses away, 0…1.
    pub compressibility: f64,
    /// Nodes of the target over which all jobs are spread, the first ones.
    pub used_nodes: Option<u32>,
    /// How all jobs make load.
    pub load: JobLoad,
    /// Jobs on a thread, if that is asked for.
    pub sessions_per_thread: Option<u32>,
}

impl std::fmt::Debug for JobsOrder {
    /// Without the URLs, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JobsOrder({} of test {}, jobs {}+{})", self.workload, self.test, self.first_job, self.jobs)
    }
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is there.
    Here(Presence),
    /// The order was carried out.
    Done,
    /// The sessions are open.
    Opened(Opened),
    /// The time: when the order came and when this left, on the agent's clock, ns.
    Pong {
        /// When the order came.
        received_ns: u64,
        /// When this left.
        answered_ns: u64,
    },
    /// The order cannot be carried out.
    Refused {
        /// Why.
        why: Why,
        /// In words.
        text: String,
    },
    /// Unasked, every 0.1 s until the window is set: how far the jobs are.
    Progress(Progress),
    /// Unasked, once all jobs have passed the window end: the number of the test.
    Closed(u64),
    /// The jobs have ended; what they counted has so many parts.
    Ended(usize),
    /// A part of what was counted, in base64.
    Part(String),
}

/// Sessions that are open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Fingerprint of the work.
    pub fingerprint: String,
    /// The sessions' ids on each server, packed ([`crate::pack`]); empty if unknown, or more than a message holds.
    pub sessions: String,
}

/// Why an agent refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It works for another run.
    Busy,
    /// It does not work for this run, or no longer.
    NotEnlisted,
    /// It has not the work that was sent, or an order does not fit where it stands.
    Work,
    /// It cannot reach the target.
    Target,
    /// The time of the order has passed.
    Late,
    /// It has another protocol.
    Version,
}

/// How far the jobs of an agent are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Number of the test.
    pub test: u64,
    /// Jobs that have completed their first transaction.
    pub started: u32,
    /// Jobs that have ended.
    pub ended: u32,
    /// Transactions completed so far.
    pub completed: u64,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    /// Its id, new at each start.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Version of its loadline.
    pub version: String,
    /// Its protocol.
    pub protocol: u32,
    /// Its machine.
    pub host: String,
    /// What only its machine has, so that agents of one machine are known.
    pub machine: String,
    /// Its process there.
    pub process: u32,
    /// Whether nobody between it and the hub can read what is said.
    pub private: bool,
    /// CPUs of its machine that it may use.
    pub cpus: u32,
    /// Most jobs that it runs.
    pub most_jobs: u32,
    /// Most sessions on servers: it may not open more files.
    #[serde(default)]
    pub most_sessions: u32,
    /// Whether it still looks if its name is free.
    #[serde(default)]
    pub starting: bool,
    /// The run that it works for.
    #[serde(default)]
    pub busy: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_another_protocol_is_known_as_such() {
        let order = Message::new("r1", 7, "", Order::Ping);
        assert_eq!(Message::read(&order.bytes()), Ok(order.clone()));
        let text = String::from_utf8(order.bytes()).unwrap();
        // Whatever else is in it.
        let newer = text.replace("\"protocol\":3", "\"protocol\":4").replace("\"ping\"", "{\"sing\":3}");
        let read: Result<Message<Order>, _> = Message::read(newer.as_bytes());
        assert_eq!(read, Err(MessageError::Protocol { theirs: 4, run: "r1".into(), number: 7 }));
        let other: Result<Message<Order>, _> = Message::read(b"hello");
        assert!(matches!(other, Err(MessageError::Other(_))));
    }
}
