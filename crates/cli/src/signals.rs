//! Signals that end a command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{self, Failure};
use crate::output;

/// A command that has not ended this long after the first signal is ended.
const AT_MOST: Duration = Duration::from_millis(4500);
/// Time between looks at the flag.
const LOOK: Duration = Duration::from_millis(100);

/// The first signal sets `flag`, so that the command ends cleanly, within five seconds; the second exits at once.
pub(crate) fn interruptible(flag: &Arc<AtomicBool>) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("signals cannot be handled: {e}"));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), Arc::clone(flag))
            .map_err(failed)?;
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed)?;
    }
    let flag = Arc::clone(flag);
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || end(&flag)).map(drop).map_err(failed)
}

/// Ends the process if it does not end by itself after an interrupt: the server may be gone, or busy with one statement.
fn end(flag: &AtomicBool) {
    while !flag.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    std::thread::sleep(AT_MOST);
    output::say(
        "interrupted: what was measured is on disk (--resume goes on); what loadline made on a server may still be there \
         (loadline clean removes it)",
    );
    signal_hook::low_level::exit(i32::from(exit::INTERRUPTED));
}
