//! `loadline watch`: the loop that looks once a second and draws.

use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_model::manifest::RunState;
use loadline_store::clock_s;

use crate::now::Follower;
use crate::plain::Said;
use crate::screen;
use crate::terminal::{Key, Terminal};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(1000);
/// Watching ends within this time.
const STOP_WITHIN: Duration = Duration::from_millis(200);

/// What to watch and how.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// The run folder.
    pub run: PathBuf,
    /// Lines of text in any case.
    pub plain: bool,
    /// Whether colours are allowed.
    pub colours: bool,
    /// Set when watching shall end.
    pub stop: Arc<AtomicBool>,
}

/// How watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The user quit, the run is complete, or nobody reads any more.
    Done,
    /// The run is not complete and will not be: it was killed, interrupted, damaged or removed, or ended by an error.
    Incomplete,
    /// Ctrl-C or a signal.
    Interrupted,
}

/// Why watching failed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The terminal refuses.
    #[error("the terminal cannot be drawn on: {0}; --plain prints lines instead")]
    Terminal(std::io::Error),
    /// Standard output cannot be written.
    #[error("standard output cannot be written: {0}")]
    Output(std::io::Error),
}

/// Shows the run until the user quits; as lines of text, until it ends.
///
/// # Errors
/// [`WatchError`].
pub fn watch(options: &WatchOptions, out: &mut dyn Write) -> Result<Ended, WatchError> {
    // Best effort: it needs little.
    let _ = loadline_storage::run_only_when_idle();
    let mut follower = Follower::new(&options.run);
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if options.plain || dumb || !terminal {
        return match lines(&mut follower, out, &options.stop) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(Ended::Done),
            ended => ended.map_err(WatchError::Output),
        };
    }
    let name = name(&options.run);
    let terminal = Terminal::new(options.colours).map_err(WatchError::Terminal)?;
    pictures(&terminal, &mut follower, &name, &options.stop).map_err(WatchError::Terminal)
}

/// The run's id: the name of its folder.
fn name(run: &Path) -> String {
    let absolute = std::fs::canonicalize(run).unwrap_or_else(|_| run.to_owned());
    absolute.file_name().map_or_else(|| run.display().to_string(), |n| n.to_string_lossy().into_owned())
}

fn lines(follower: &mut Follower, out: &mut dyn Write, stop: &AtomicBool) -> std::io::Result<Ended> {
    let mut said = Said::default();
    loop {
        let now = follower.look();
        for line in said.lines(now, clock_s()) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        if !now.is_open() || now.problem.is_some() || now.is_dead(clock_s()) {
            let complete = now.manifest.as_ref().is_some_and(|m| m.state == RunState::Complete);
            return Ok(if complete && now.problem.is_none() { Ended::Done } else { Ended::Incomplete });
        }
        let next = Instant::now() + LOOK_EVERY;
        while Instant::now() < next {
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            std::thread::sleep(STOP_WITHIN);
        }
    }
}

fn pictures(terminal: &Terminal, follower: &mut Follower, name: &str, stop: &AtomicBool) -> std::io::Result<Ended> {
    loop {
        let now = follower.look();
        let size = Terminal::size();
        terminal.show(&screen::draw(now, name, clock_s(), size.0, size.1))?;
        let next = Instant::now() + LOOK_EVERY;
        // A key or a new size is answered at once.
        while Instant::now() < next && Terminal::size() == size {
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            match terminal.key(next.saturating_duration_since(Instant::now()).min(STOP_WITHIN))? {
                Some(Key::Quit) => return Ok(Ended::Done),
                Some(Key::Interrupt) => return Ok(Ended::Interrupted),
                None => {}
            }
        }
    }
}
