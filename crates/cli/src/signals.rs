//! Signals that end a command.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{self, Failure};

/// The first signal sets `flag`, so that the command ends cleanly; the second exits at once.
pub(crate) fn interruptible(flag: &Arc<AtomicBool>) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("signals cannot be handled: {e}"));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), Arc::clone(flag))
            .map_err(failed)?;
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed)?;
    }
    Ok(())
}
