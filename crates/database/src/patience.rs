//! How long a session waits for its server outside the timed window, and what it says when it gives up.
//!
//! A statement may work for hours (a key of a large table), but it must not wait in silence for what will not come: a
//! lock that somebody holds, a standby that is away, a server that is stopped. So a session has a deadline. When it has passed, the
//! session asks, through another one, what the server does. If it works, there is another deadline; else the session gives up.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::TargetError;
use crate::role::Hindrance;
use crate::stream::Stream;

/// After this time in which a read or write did not get on, the user's wish to stop is looked at.
const PIECE: Duration = Duration::from_millis(200);
/// A session waits this many times the time to connect for a server that is silent or waits itself.
pub(crate) const PATIENCE: u32 = 3;
/// Time to connect for a session that asks.
pub(crate) const HASTY: Duration = Duration::from_secs(2);
/// Time to connect for a session that ends another one's statement, which the user wants at once.
pub(crate) const ENDING: Duration = Duration::from_secs(1);
/// A statement that began before the user wanted to stop is ended after this time …
const GRACE: Duration = Duration::from_millis(800);
/// … and one that began later, which cleans up, after this one.
const CLEANING: Duration = Duration::from_secs(3);

/// What a server does for a session that waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It works.
    Works,
    /// It waits for this.
    Waits(String),
    /// It waits for space on a full disk.
    NoSpace,
    /// It does not answer another session either, for this reason.
    Silent(String),
}

impl Doing {
    /// Why a session gets no answer, if that is not the server's own work.
    pub(crate) fn hindrance(self) -> Option<Hindrance> {
        let full_disk = self == Doing::NoSpace;
        let why = match self {
            Doing::Works => return None,
            Doing::Waits(what) => format!("its statement waited for {what}"),
            Doing::NoSpace => format!("its statement waited for {FREE_SPACE}"),
            Doing::Silent(why) => format!("the server did not answer ({why}): is it stopped, or out of disk?"),
        };
        Some(Hindrance { why, full_disk })
    }

    /// Of a session that asked. A server that answers with an error, such as too many connections, is not silent.
    pub(crate) fn of(asked: Result<Doing, TargetError>) -> Doing {
        match asked {
            Ok(doing) => doing,
            Err(TargetError::Unreachable(why) | TargetError::Lost(why) | TargetError::NoSpace(why)) => {
                Doing::Silent(why)
            }
            Err(_) => Doing::Works,
        }
    }
}

/// Finds out what the server does for a session.
pub(crate) type Ask = Arc<dyn Fn() -> Doing + Send + Sync>;

/// Patience of a session.
pub(crate) struct Patience {
    interrupted: Arc<AtomicBool>,
    /// How long it waits for a server that does not work for it.
    at_most: Duration,
    ask: Option<Ask>,
    /// Ends the statement at the server, which would go on with it.
    end: Option<Box<dyn FnOnce() + Send>>,
    /// When waiting began, and its deadline; `None`: it has got on.
    wait: Option<(Instant, Instant)>,
    interrupted_at: Option<Instant>,
}

impl Patience {
    /// Ends when `interrupted` is set, or after `at_most` in which the server was silent or waited; without `ask`, in which
    /// it did not answer.
    pub(crate) fn new(interrupted: &Arc<AtomicBool>, at_most: Duration, ask: Option<Ask>) -> Patience {
        let interrupted = Arc::clone(interrupted);
        Patience { interrupted, at_most, ask, end: None, wait: None, interrupted_at: None }
    }

    /// Calls `end` when it gives up.
    pub(crate) fn ending(self, end: impl FnOnce() + Send + 'static) -> Patience {
        Patience { end: Some(Box::new(end)), ..self }
    }

    /// Called after each [`PIECE`] without progress.
    ///
    /// # Errors
    /// Why it no longer waits.
    fn still(&mut self) -> io::Result<()> {
        let Some(given_up) = self.given_up() else { return Ok(()) };
        if let Some(end) = self.end.take() {
            end();
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, given_up))
    }

    /// Why it no longer waits, if so.
    fn given_up(&mut self) -> Option<GivenUp> {
        let now = Instant::now();
        let (since, deadline) = *self.wait.get_or_insert((now, now + self.at_most.saturating_sub(PIECE)));
        if self.interrupted.load(Ordering::Relaxed) {
            let seen = *self.interrupted_at.get_or_insert(now);
            let (from, at_most) = if since < seen { (seen, GRACE) } else { (since, CLEANING) };
            if now.duration_since(from) >= at_most {
                return Some(GivenUp::new("interrupted"));
            }
        }
        if now < deadline {
            return None;
        }
        let Some(ask) = &self.ask else { return Some(GivenUp::new("the server did not answer in time")) };
        let s = (now.duration_since(since) + PIECE).as_secs();
        match ask() {
            Doing::Works => {
                self.wait = Some((since, Instant::now() + self.at_most));
                None
            }
            Doing::Waits(what) => Some(GivenUp::new(format!("its statement has waited {s} s for {what}"))),
            Doing::NoSpace => {
                let why = format!("its statement has waited {s} s for {FREE_SPACE}");
                Some(GivenUp(Hindrance { why, full_disk: true }))
            }
            Doing::Silent(why) => {
                let why = format!("the server has not answered for {s} s ({why}): is it stopped, or out of disk?");
                Some(GivenUp::new(why))
            }
        }
    }
}

/// Why a session no longer waits.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.why)]
pub(crate) struct GivenUp(Hindrance);

/// What a statement on a full disk waits for.
const FREE_SPACE: &str = "free space: a disk that it writes to is full";

impl GivenUp {
    fn new(why: impl Into<String>) -> GivenUp {
        GivenUp(Hindrance { why: why.into(), full_disk: false })
    }

    /// The error of the session with the server at `place`.
    pub(crate) fn error(&self, place: &str) -> TargetError {
        TargetError::lost(format!("the session with {place} was given up: {self}"), self.0.full_disk)
    }

    /// The reason, if `error` is of this kind.
    pub(crate) fn of(error: &io::Error) -> Option<&GivenUp> {
        error.get_ref().and_then(|e| e.downcast_ref())
    }
}

/// A stream that waits for its server with [`Patience`], or blocks.
pub(crate) struct Waiting {
    pub(crate) stream: Stream,
    patience: Option<Patience>,
}

impl Waiting {
    /// Blocks.
    pub(crate) fn new(stream: Stream) -> Waiting {
        Waiting { stream, patience: None }
    }

    /// Waits with `patience` from now on; `None`: blocks, which costs nothing.
    ///
    /// # Errors
    /// When the socket refuses a timeout.
    pub(crate) fn wait_with(&mut self, patience: Option<Patience>) -> io::Result<()> {
        self.stream.set_timeout(patience.as_ref().map(|_| PIECE))?;
        self.patience = patience;
        Ok(())
    }

    /// Repeats `step` until it gets on or patience ends.
    #[inline]
    fn repeat(&mut self, mut step: impl FnMut(&mut Stream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            let done = step(&mut self.stream);
            let Some(patience) = self.patience.as_mut() else { return done };
            match done {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    patience.still()?
                }
                done => {
                    patience.wait = None;
                    return done;
                }
            }
        }
    }
}

impl Read for Waiting {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.repeat(|stream| stream.read(buf))
    }
}

impl Write for Waiting {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.repeat(|stream| stream.write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.repeat(|stream| stream.flush().map(|()| 0)).map(drop)
    }
}

/// Fails if the user wants to stop: for loops of short statements, each of which ends.
///
/// # Errors
/// [`TargetError::Lost`] with what is given up.
pub(crate) fn go_on(interrupted: &AtomicBool, what: &str) -> Result<(), TargetError> {
    if interrupted.load(Ordering::Relaxed) {
        return Err(TargetError::Lost(format!("{what} was interrupted")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A session whose server says nothing until `answer_after`; how its read ends, and after how long.
    fn read(patience: Patience, answer_after: Option<Duration>) -> (io::Result<usize>, Duration) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut waiting = Waiting::new(Stream::unix(ours).unwrap());
        waiting.wait_with(Some(patience)).unwrap();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if let Some(after) = answer_after {
                    std::thread::sleep(after);
                    let _ = theirs.write_all(b"answer");
                } else {
                    std::thread::sleep(Duration::from_secs(5));
                }
            });
            (waiting.read(&mut [0; 16]), begin.elapsed())
        })
    }

    fn patience(interrupted: bool, doing: Doing) -> Patience {
        let ask = Arc::new(move || doing.clone());
        Patience::new(&Arc::new(AtomicBool::new(interrupted)), Duration::from_secs(2), Some(ask))
    }

    #[test]
    fn a_server_that_works_is_waited_for_and_one_that_waits_is_not() {
        let waits = Doing::Waits("a lock of session 7".into());
        std::thread::scope(|scope| {
            let works = scope.spawn(|| read(patience(false, Doing::Works), Some(Duration::from_secs(3))));
            let waits = scope.spawn(|| read(patience(false, waits), None));
            let silent = scope.spawn(|| read(patience(false, Doing::Silent("connection refused".into())), None));
            let interrupted = scope.spawn(|| read(patience(true, Doing::Works), Some(Duration::from_millis(4500))));
            assert_eq!(works.join().unwrap().0.unwrap(), 6);
            let why = waits.join().unwrap().0.unwrap_err().to_string();
            assert!(why.contains("for a lock of session 7"), "{why}");
            let why = silent.join().unwrap().0.unwrap_err().to_string();
            assert!(why.contains("not answered") && why.contains("connection refused"), "{why}");
            let (ended, took) = interrupted.join().unwrap();
            assert!(GivenUp::of(&ended.unwrap_err()).is_some() && took >= CLEANING, "{took:?}");
        });
    }

    #[test]
    fn a_server_that_refuses_to_tell_is_not_silent() {
        let no = || "too many connections".to_owned();
        assert_eq!(Doing::of(Err(TargetError::Refused(no()))), Doing::Works);
        assert_eq!(Doing::of(Err(TargetError::Unreachable(no()))), Doing::Silent(no()));
        assert_eq!(Doing::of(Ok(Doing::Waits(no()))), Doing::Waits(no()));
    }
}
