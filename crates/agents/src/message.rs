//! What coordinator and agents say to each other: JSON, with the number of the protocol in front.
//!
//! The coordinator gives one order after the other, each with a number, and repeats an order until it is answered; an agent answers
//! a repeated order as before, or that it is under way. So lost messages and a hub that starts again do no harm. A message that is
//! longer than the hub takes goes in parts. Subjects: `loadline.all` for all agents, `loadline.agent.ID` for one, `loadline.run.RUN`
//! for answers.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use loadline_model::plan::WorkloadFile;
use loadline_model::{Driver, JobLoad};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::offset::Offset;

/// Number of this protocol. Agents of another one are named and not used.
pub(crate) const PROTOCOL: u32 = 4;
/// Subject of messages for all agents.
pub(crate) const TO_ALL: &str = "loadline.all";
/// Longest message, bytes: half of what a hub takes by default.
const MOST_BYTES: usize = 500_000;
/// What else is in a message with a part, bytes.
const AROUND: usize = 1024;
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

/// A message: who says it, and what. `run` and `number` are those of the order, also in an answer to it; number 0 has what an
/// agent says unasked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message<B> {
    protocol: u32,
    /// The run, or other asker.
    pub(crate) run: String,
    /// Number of the order in the run.
    pub(crate) number: u64,
    /// Id of the agent that answers; empty in orders.
    #[serde(default)]
    pub(crate) agent: String,
    /// Order or answer.
    pub(crate) body: B,
}

/// Why a message could not be read.
#[derive(Debug, PartialEq)]
pub(crate) enum MessageError {
    /// It is of another protocol.
    Protocol(Message<Value>),
    /// It is no message of loadline.
    Other,
}

/// In place of the body of a message that is too long: a part of it, packed.
#[derive(Serialize, Deserialize)]
struct Part {
    part: usize,
    of: usize,
    text: String,
}

impl<B: Serialize> Message<B> {
    /// A message of this protocol.
    pub(crate) fn new(run: &str, number: u64, agent: &str, body: B) -> Message<B> {
        Message { protocol: PROTOCOL, run: run.to_owned(), number, agent: agent.to_owned(), body }
    }

    /// As a hub takes it whose messages have at most `most` bytes: in one piece or in several.
    pub(crate) fn pieces(&self, most: usize) -> Vec<Vec<u8>> {
        let whole = json(self);
        let most = most.min(MOST_BYTES);
        if whole.len() <= most {
            return vec![whole];
        }
        let packed = pack(&self.body);
        let parts: Vec<&[u8]> = packed.as_bytes().chunks(most.saturating_sub(AROUND).max(AROUND)).collect();
        let piece = |(part, text): (usize, &&[u8])| {
            let part = Part { part, of: parts.len(), text: String::from_utf8_lossy(text).into_owned() };
            json(&Message::new(&self.run, self.number, &self.agent, part))
        };
        parts.iter().enumerate().map(piece).collect()
    }
}

/// Plain data with text keys: this cannot fail.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn pack(body: &impl Serialize) -> String {
    // Writing into memory cannot fail.
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let _ = packed.write_all(&json(body));
    STANDARD.encode(packed.finish().unwrap_or_default())
}

fn unpack(text: &str) -> Option<Value> {
    let packed = STANDARD.decode(text).ok()?;
    serde_json::from_reader(ZlibDecoder::new(packed.as_slice()).take(MOST_UNPACKED)).ok()
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
    /// Of each sender: number of the message, parts that came, their text.
    begun: BTreeMap<(String, String), (u64, usize, String)>,
}

impl Reader {
    /// The message that is complete with this piece; `None` if more of it follows, or a part is missing.
    ///
    /// # Errors
    /// [`MessageError`].
    pub(crate) fn read<B: DeserializeOwned>(&mut self, piece: &[u8]) -> Result<Option<Message<B>>, MessageError> {
        let raw: Message<Value> = serde_json::from_slice(piece).map_err(|_| MessageError::Other)?;
        if raw.protocol != PROTOCOL {
            return Err(MessageError::Protocol(raw));
        }
        let Message { protocol, run, number, agent, body } = raw;
        let body = match body.get("part") {
            None => Some(body),
            Some(_) => {
                let part = serde_json::from_value(body).map_err(|_| MessageError::Other)?;
                self.add((run.clone(), agent.clone()), number, part).map(|text| unpack(&text).unwrap_or_default())
            }
        };
        let Some(body) = body else { return Ok(None) };
        let body = serde_json::from_value(body).map_err(|_| MessageError::Other)?;
        Ok(Some(Message { protocol, run, number, agent, body }))
    }

    /// Parts that came of a message of `agent` that is under way.
    pub(crate) fn came(&self, run: &str, agent: &str) -> usize {
        self.begun.get(&(run.to_owned(), agent.to_owned())).map_or(0, |(_, came, _)| *came)
    }

    /// All parts, with this last one.
    fn add(&mut self, sender: (String, String), number: u64, Part { part, of, text }: Part) -> Option<String> {
        let (begun, came, all) = self.begun.entry(sender.clone()).or_default();
        if part == 0 {
            (*begun, *came) = (number, 0);
            all.clear();
        }
        if (*begun, *came) != (number, part) {
            return None;
        }
        *came += 1;
        all.push_str(&text);
        (*came == of).then(|| self.begun.remove(&sender).map(|(_, _, all)| all))?
    }
}

/// What a coordinator wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// To all: who is there? It is answered with [`Answer::Here`] by agents of every protocol.
    Roll,
    /// To all: the run goes on.
    Beat,
    /// Work for the run from now on; all else needs it.
    Enlist,
    /// What time is it?
    Ping,
    /// Open the sessions of these jobs.
    Open(Box<JobsOrder>),
    /// What the jobs do next.
    Jobs(Command),
    /// What did the jobs count?
    Counts,
    /// The run is over.
    Release,
}

/// What jobs with open sessions do next.
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

    /// The same with the times of an agent's clock.
    pub(crate) fn on(self, clock: &Offset) -> Command {
        match self {
            Command::Start { start_ns, window_ns } => Command::Start { start_ns: clock.to_agent(start_ns), window_ns },
            Command::Window { open_ns, close_ns } => {
                Command::Window { open_ns: clock.to_agent(open_ns), close_ns: clock.to_agent(close_ns) }
            }
            Command::End { .. } => self,
        }
    }
}

/// The jobs of one agent, and all that makes them those of the same run from one process.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobsOrder {
    /// Number of the test.
    pub(crate) test: u64,
    /// The run, for names of sessions.
    pub(crate) run: String,
    /// URL of the target, with its password or without.
    pub(crate) url: String,
    /// URLs of further nodes.
    pub(crate) nodes: Vec<String>,
    /// Number of its first job in the test.
    pub(crate) first_job: u32,
    /// Number of its jobs.
    pub(crate) jobs: u32,
    /// Jobs of the test, of all agents.
    pub(crate) all_jobs: u32,
    /// Driver; `None`: the client.
    pub(crate) driver: Option<Driver>,
    /// Code of the workload.
    pub(crate) workload: String,
    /// Its file, if it is the user's own.
    pub(crate) file: Option<WorkloadFile>,
    /// All its parameters.
    pub(crate) parameters: BTreeMap<String, i64>,
    /// Size of the data set, bytes.
    pub(crate) size_bytes: u64,
    /// Seed of the rows that are loaded.
    pub(crate) seed: u64,
    /// Seed of what the jobs draw.
    pub(crate) draws: u64,
    /// Share of the payload that compresses away, 0…1.
    pub(crate) compressibility: f64,
    /// Nodes of the target over which all jobs are spread, the first ones.
    pub(crate) used_nodes: Option<u32>,
    /// How all jobs make load.
    pub(crate) load: JobLoad,
    /// Jobs on a thread, if that is asked for.
    pub(crate) sessions_per_thread: Option<u32>,
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
pub(crate) enum Answer {
    /// It is there.
    Here(Presence),
    /// The order was carried out.
    Done,
    /// The order is being carried out.
    UnderWay,
    /// The sessions are open.
    Opened(Opened),
    /// The time: when the order came and when this left, on the agent's clock, ns.
    Pong { received_ns: u64, answered_ns: u64 },
    /// The order cannot be carried out: why, also in words.
    Refused(Why, String),
    /// Unasked, every 0.1 s until the window is set: how far the jobs of a test are.
    Progress { test: u64, progress: Progress },
    /// Unasked, once all jobs have passed the window end: the number of the test.
    Closed(u64),
    /// What the jobs counted; empty if they never were.
    Counts(String),
}

/// Sessions that are open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// Fingerprint of the work.
    pub(crate) fingerprint: String,
    /// The sessions' ids on each server; empty if unknown.
    pub(crate) sessions: Vec<Vec<u32>>,
}

/// Why an agent refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Why {
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
}

/// How far the jobs of an agent are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Jobs that have completed their first transaction.
    pub(crate) started: u32,
    /// Jobs that have ended.
    pub(crate) ended: u32,
    /// Transactions completed so far.
    pub(crate) completed: u64,
}

/// An agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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

    fn whole<B: DeserializeOwned>(piece: &[u8]) -> Result<Option<Message<B>>, MessageError> {
        Reader::default().read(piece)
    }

    #[test]
    fn a_message_of_another_protocol_is_known_as_such() {
        let order = Message::new("r1", 7, "", Order::Ping);
        let bytes = order.pieces(8192).remove(0);
        assert_eq!(whole(&bytes), Ok(Some(order)));
        let text = String::from_utf8(bytes).unwrap();
        // Whatever else is in it.
        let newer = text.replace("\"protocol\":4", "\"protocol\":5").replace("\"ping\"", "{\"sing\":3}");
        let Err(MessageError::Protocol(raw)) = whole::<Order>(newer.as_bytes()) else { panic!("{newer}") };
        assert_eq!((raw.protocol, raw.run.as_str(), raw.number), (5, "r1", 7));
        assert_eq!(whole::<Order>(b"hello"), Err(MessageError::Other));
    }

    #[test]
    fn a_long_message_comes_whole_or_not_at_all() {
        let text: String = (0..9000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let long = |number, agent: &str| Message::new("r1", number, agent, Answer::Counts(text.clone()));
        let [first, again, other] = [long(3, "a"), long(3, "a"), long(4, "b")].map(|message| message.pieces(8192));
        assert!(first.len() > 3 && first.iter().all(|piece| piece.len() <= 8192));
        let mut reader = Reader::default();
        // Of two senders, by turns.
        let mut came = Vec::new();
        for piece in first.iter().zip(&other).flat_map(|(a, b)| [a, b]) {
            came.extend(reader.read::<Answer>(piece).unwrap());
        }
        assert_eq!(came, [long(3, "a"), long(4, "b")]);
        // The first time it lacks a part; it is repeated.
        let lossy = first.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, piece)| piece).chain(&again);
        let came: Vec<Message<Answer>> = lossy.filter_map(|piece| reader.read(piece).unwrap()).collect();
        assert_eq!(came, [long(3, "a")]);
    }
}
