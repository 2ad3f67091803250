//! How long a session waits for its server outside the timed window, and what it says when it gives up.
//!
//! A statement may work for hours, but must not wait in silence for what will not come: a lock that somebody holds, a standby that is
//! away, a server that is stopped. At its deadline a session asks, through another one, what the server does. If it works, there is
//! another deadline; else the session gives up.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::TargetError;
use crate::role::Canceller;

/// After this time in which a read or write did not get on, the user's wish to stop is looked at.
pub(crate) const PIECE: Duration = Duration::from_millis(200);
/// A session waits this many times the time to connect for a server that is silent or waits itself.
pub(crate) const PATIENCE: u32 = 3;
/// Time to connect for a session that asks.
pub(crate) const HASTY: Duration = Duration::from_secs(2);
/// Time to connect for a session that ends another one's statement, which the user wants at once.
pub(crate) const ENDING: Duration = Duration::from_secs(1);
/// Time that a statement has to end once the user wants to stop; one that cleans up begins later.
const GRACE: Duration = Duration::from_secs(2);

/// Of a session that nobody can ask about: it is given up.
pub(crate) fn unanswered() -> Canceller {
    Canceller::new(|| ()).asking(|| Some(TargetError::Lost("no answer in time".to_owned())))
}

/// Of a session whose statement waited for `what`.
pub(crate) fn waited_for(what: impl Display) -> TargetError {
    TargetError::Lost(format!("its statement waited for {what}"))
}

/// Answer to a session that asked about another. A server that answers with an error, such as too many connections, is not silent.
pub(crate) fn told(asked: Result<Option<TargetError>, TargetError>) -> Option<TargetError> {
    asked.unwrap_or_else(|e| match e {
        TargetError::Unreachable(why) | TargetError::Lost(why) | TargetError::NoSpace(why) => {
            Some(TargetError::Lost(format!("the server did not answer ({why}): is it stopped, or out of disk?")))
        }
        _ => None,
    })
}

/// Patience of a session: a deadline, and the question at it.
#[derive(Clone)]
pub(crate) struct Patience {
    interrupted: Arc<AtomicBool>,
    /// How long it waits for a server that does not work for it.
    at_most: Duration,
    /// Asks about the session, and ends a statement that is given up: the server would go on with it.
    call: Canceller,
    /// When waiting began, and its deadline; `None`: it has got on.
    wait: Option<(Instant, Instant)>,
    interrupted_at: Option<Instant>,
    /// Why it was given up. Its socket is shut down, and TLS drops the error of a write that was not waited for.
    gave_up: Option<TargetError>,
}

impl Patience {
    /// Ends when `interrupted` is set, or after `at_most` without an answer, unless `call` finds the server at work.
    pub(crate) fn new(interrupted: &Arc<AtomicBool>, at_most: Duration, call: Canceller) -> Patience {
        let interrupted = Arc::clone(interrupted);
        Patience { interrupted, at_most, call, wait: None, interrupted_at: None, gave_up: None }
    }

    /// Whether a call of the socket ended with `done`, not with a [`PIECE`] without progress.
    #[inline]
    pub(crate) fn ends(&mut self, done: &io::Result<usize>) -> io::Result<bool> {
        if let Some(why) = &self.gave_up {
            return Err(io::Error::new(io::ErrorKind::TimedOut, why.clone()));
        }
        if done.as_ref().is_err_and(|e| matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)) {
            return self.still().map(|()| false);
        }
        self.wait = None;
        Ok(true)
    }

    fn still(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let (since, deadline) = *self.wait.get_or_insert((now, now + self.at_most.saturating_sub(PIECE)));
        if self.interrupted.load(Ordering::Relaxed) {
            self.interrupted_at.get_or_insert(now);
        }
        let hindrance = if self.interrupted_at.is_some_and(|at| now - at.max(since) >= GRACE) {
            Some(TargetError::Lost("interrupted".to_owned()))
        } else if now < deadline {
            return Ok(());
        } else {
            self.call.hindrance()
        };
        let Some(hindrance) = hindrance else {
            self.wait = Some((since, Instant::now() + self.at_most));
            return Ok(());
        };
        self.call.cancel();
        let waited = format!("after {:.0} s: ", (now - since + PIECE).as_secs_f64());
        let why = self.gave_up.insert(hindrance.after(&waited));
        Err(io::Error::new(io::ErrorKind::TimedOut, why.clone()))
    }
}

/// The error of a session with the server at `place`, if it was given up.
pub(crate) fn given_up(error: &io::Error, place: &str) -> Option<TargetError> {
    let why: &TargetError = error.get_ref()?.downcast_ref()?;
    Some(why.clone().after(&format!("the session with {place} was given up ")))
}

/// Fails if the user wants to stop: for loops of short statements, each of which ends.
pub(crate) fn go_on(interrupted: &AtomicBool, what: &str) -> Result<(), TargetError> {
    if interrupted.load(Ordering::Relaxed) {
        return Err(TargetError::Lost(format!("{what} was interrupted")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_refuses_to_tell_is_not_silent() {
        let no = || "too many connections".to_owned();
        assert_eq!(told(Err(TargetError::Refused(no()))), None);
        assert!(told(Err(TargetError::Unreachable(no()))).unwrap().to_string().contains(&no()));
        assert_eq!(told(Ok(Some(TargetError::NoSpace(no())))), Some(TargetError::NoSpace(no())));
    }
}
