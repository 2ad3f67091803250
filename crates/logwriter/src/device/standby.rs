//! A log with a standby in this process: it is written here and sent through a stream. A commit is durable when this side has written
//! it, when the standby has received or written it, or when both have written it. The rule can be changed while the log is written.
//!
//! The standby writes what it receives in order, behind by at most its backlog. A lost standby stays lost.

mod frame;
mod link;
mod receiver;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::replicas::{Board, LaneState, Member, Replicas, Rule};
use crate::device::{DeviceError, LogDevice};
use link::Link;
use receiver::Receiver;

/// The standby of an open log, and the rule of commits, for any thread. Dropping it ends the standby after everything received is
/// written.
pub struct Standby {
    /// This side and the standby, as the log sees them.
    set: Arc<Board>,
    rule: Arc<Mutex<Rule>>,
    receiver: Receiver,
}

impl Standby {
    /// Makes `rule` the one of commits from now on. Those under way may follow the old or the new one. When the next
    /// commit returns, both sides have all earlier commits.
    pub fn set_rule(&self, rule: Rule) {
        let mut current = self.rule.lock().unwrap_or_else(PoisonError::into_inner);
        self.set.lock().wanted = Some(rule);
        *current = rule;
    }

    /// Rule in force: which copies a durable write waits for.
    pub fn rule(&self) -> Rule {
        *self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it does not receive or write any more, if so.
    pub fn lost(&self) -> Option<String> {
        let failed = |board: &Board, member: usize| board.lock().lanes.get(member).and_then(|lane| lane.failed.clone());
        failed(&self.set, 1).or_else(|| failed(&self.receiver.board, 0))
    }

    /// Log that it has not written, bytes.
    pub fn behind_bytes(&self) -> u64 {
        let first = |board: &Board, of: fn(&LaneState) -> u64| board.lock().lanes.first().map_or(0, of);
        let sent = first(&self.set, |own| own.bytes + own.behind as u64);
        sent.saturating_sub(first(&self.receiver.board, |lane| lane.bytes))
    }
}

/// Opens the log at `local` with its standby on `device`. `ends` are those of a stream, this side's and the standby's. A standby that does
/// not answer within `timeout` counts as lost.
///
/// # Errors
/// A thread cannot be started, or a side holds log files, or their sizes differ.
pub fn open_standby(
    local: Member,
    device: Box<dyn LogDevice>,
    ends: [UnixStream; 2],
    rule: Rule,
    timeout: Duration,
) -> Result<(Replicas, Standby), DeviceError> {
    let [here, there] = ends;
    let shared = Arc::new(Mutex::new(rule));
    let receiver = Receiver::start(there, device)?;
    let link = Link::open(here, timeout, &shared, &receiver.device)?;
    let remote = Member { name: link.describe(), device: Box::new(link), storage: None };
    let set = Replicas::open("log with a standby", rule, vec![local, remote])?;
    let standby = Standby { set: Arc::clone(&set.board), rule: shared, receiver };
    Ok((set, standby))
}

/// Both ends of a TCP connection within this process. Reads, writes and timeouts are the same for it as for a Unix socket.
///
/// # Errors
/// There is no free port.
pub fn over_tcp() -> io::Result<[UnixStream; 2]> {
    through(&TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?)
}

fn through(listener: &TcpListener) -> io::Result<[UnixStream; 2]> {
    let here = TcpStream::connect(listener.local_addr()?)?;
    // Everybody on this machine can connect.
    let there = loop {
        let (stream, from) = listener.accept()?;
        if from == here.local_addr()? {
            break stream;
        }
    };
    // What is written is sent without waiting for more.
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    Ok([here, there].map(|stream| OwnedFd::from(stream).into()))
}
