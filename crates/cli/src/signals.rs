//! Signals that end a command.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{self, Failure};
use crate::output;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// A command that has not ended this long after the first signal is ended.
const AT_MOST: Duration = Duration::from_millis(4500);
/// Time between looks for a second signal.
const LOOK: Duration = Duration::from_millis(50);
/// A terminal that takes no text for this long gets none.
const TO_SAY: Duration = Duration::from_secs(1);

/// The first signal sets `flag`, so that the command ends cleanly, within five seconds; the second ends it at once. What is
/// ended so says `left`: what it may have left, and what removes that.
pub(crate) fn interruptible(flag: &Arc<AtomicBool>, left: String) -> Result<(), Failure> {
    set_by(flag, SIGNALS)?;
    let signals = Signals::new(SIGNALS).map_err(failed)?;
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || end(signals, left)).map(drop).map_err(failed)
}

pub(crate) fn set_by(flag: &Arc<AtomicBool>, signals: impl IntoIterator<Item = i32>) -> Result<(), Failure> {
    for signal in signals {
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed)?;
    }
    Ok(())
}

fn failed(e: std::io::Error) -> Failure {
    Failure::failed(format!("signals cannot be handled: {e}"))
}

/// Ends the process if it does not end by itself after an interrupt: the server may be gone, or busy with one statement.
fn end(mut signals: Signals, left: String) {
    signals.forever().next();
    let deadline = Instant::now() + AT_MOST;
    while Instant::now() < deadline && signals.pending().next().is_none() {
        std::thread::sleep(LOOK);
    }
    let (said, done) = channel();
    let _ = std::thread::Builder::new().spawn(move || {
        output::say(&format!("interrupted: {left}"));
        let _ = said.send(());
    });
    let _ = done.recv_timeout(TO_SAY);
    signal_hook::low_level::exit(i32::from(exit::INTERRUPTED));
}
