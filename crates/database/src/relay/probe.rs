//! Measures the round trip of a link: small messages on a connection of their own, sent back by an echo at the far end.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_storage::now_ns;

/// Time between the return of a probe and the next one.
const PAUSE: Duration = Duration::from_millis(10);
/// Round trips that are kept at most until somebody asks.
const KEPT: usize = 1 << 20;

/// Sends probes until it is dropped.
pub(crate) struct Prober {
    ends: [UnixStream; 2],
    round_trips_ns: Arc<Mutex<Vec<u64>>>,
}

impl Prober {
    /// Probes a connection that `join` makes between its two arguments.
    pub(super) fn start(join: impl FnOnce(UnixStream, UnixStream) -> io::Result<()>) -> io::Result<Prober> {
        let ((mut near, near_end), (far, far_end)) = (UnixStream::pair()?, UnixStream::pair()?);
        let ends = [near.try_clone()?, far.try_clone()?];
        join(near_end, far_end)?;
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("link echo").spawn(move || {
            let _ = io::copy(&mut &far, &mut &far);
        })?;
        let round_trips_ns = Arc::<Mutex<Vec<u64>>>::default();
        let kept = Arc::clone(&round_trips_ns);
        thread("link probe").spawn(move || {
            let mut message = [0];
            loop {
                let sent = now_ns();
                if near.write_all(&message).is_err() || near.read_exact(&mut message).is_err() {
                    return;
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < KEPT {
                    kept.push(now_ns() - sent);
                }
                drop(kept);
                std::thread::sleep(PAUSE);
            }
        })?;
        Ok(Prober { ends, round_trips_ns })
    }

    /// Round trips since the last call, ns.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.round_trips_ns.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}
