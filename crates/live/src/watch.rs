//! `loadline watch`: the loop that looks once a second and draws.

use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use loadline_model::manifest::RunState;
use loadline_store::{clock_s, id, parse_rfc3339, read_manifest, runs_in};

use crate::now::{Follower, Now, newest};
use crate::screen::{self, Said};
use crate::terminal::{Key, Terminal};

const LOOK_EVERY: Duration = Duration::from_millis(1000);
/// Looks at a run that goes on for one at its folder.
const LOOKS_PER_LISTING: u32 = 10;
const STOP_WITHIN: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct WatchOptions {
    pub run: PathBuf,
    /// The folder whose newest run is followed, from one to the next, if the user named none.
    pub newest_in: Option<PathBuf>,
    /// Lines of text in any case.
    pub plain: bool,
    pub colours: bool,
    /// Set when watching shall end.
    pub stop: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The user quit, the run is complete, or nobody reads any more.
    Done,
    /// The run is not complete and will not be: it was killed, interrupted, damaged or removed, or ended by an error.
    Incomplete,
    /// Ctrl-C or a signal.
    Interrupted,
}

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("the terminal cannot be drawn on: {0}; --plain prints lines instead")]
    Terminal(std::io::Error),
    #[error("standard output cannot be written: {0}")]
    Output(std::io::Error),
}

/// Shows the run until the user quits; as lines of text, until it ends.
pub fn watch(options: &WatchOptions, out: &mut dyn Write) -> Result<Ended, WatchError> {
    // Best effort: it needs little.
    let _ = loadline_storage::run_only_when_idle();
    let mut watched = Watched::new(options);
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if options.plain || dumb || !terminal {
        return match lines(&mut watched, out, &options.stop) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(Ended::Done),
            ended => ended.map_err(WatchError::Output),
        };
    }
    let terminal = Terminal::new(options.colours).map_err(WatchError::Terminal)?;
    screens(&terminal, &mut watched, &options.stop).map_err(WatchError::Terminal)
}

/// Watched runs: one, or the newest of a folder, from one to the next.
struct Watched {
    follower: Follower,
    newest_in: Option<PathBuf>,
    began: SystemTime,
    /// Whether watching ends with the run: it was named, or it was not over when watching began.
    ends: bool,
    looks: u32,
}

impl Watched {
    fn new(options: &WatchOptions) -> Watched {
        let newest_in = options.newest_in.clone();
        let ends = newest_in.is_none();
        Watched { follower: Follower::new(&options.run), newest_in, began: SystemTime::now(), ends, looks: 0 }
    }

    /// A newer run. One that goes on is left only for one that goes on, and a folder of many is not read each second meanwhile.
    fn newer(&mut self) -> Option<PathBuf> {
        let open = self.follower.now().is_open();
        self.looks = self.looks.wrapping_add(1);
        let is_due = !open || self.looks % LOOKS_PER_LISTING == 1;
        let dir = if is_due { self.newest_in.as_ref()? } else { return None };
        let runs = runs_in(dir).ok()?;
        let newer = newest(&runs).filter(|run| *run != self.follower.path())?;
        let goes_on = || read_manifest(newer).is_ok_and(|m| m.state == RunState::Started);
        (!open || self.looks == 1 || goes_on()).then(|| newer.clone())
    }

    /// Looks at the run, or at a newer one; `true` if it is another one than before.
    fn look(&mut self) -> (&Now, bool) {
        let newer = self.newer();
        let other = newer.is_some();
        if let Some(run) = newer {
            self.follower = Follower::new(&run);
        }
        let now = self.follower.look();
        let started = now.manifest.as_ref().and_then(|m| parse_rfc3339(&m.started_at));
        let goes_on = now.is_open() && now.problem.is_none() && !now.is_dead(clock_s());
        self.ends |= goes_on || started.is_some_and(|at| at >= self.began);
        (now, other)
    }
}

fn lines(watched: &mut Watched, out: &mut dyn Write, stop: &AtomicBool) -> std::io::Result<Ended> {
    let mut said = Said::default();
    let mut waits = false;
    loop {
        let (now, other) = watched.look();
        if other {
            (said, waits) = (Said::default(), false);
        }
        for line in said.lines(now, clock_s()) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        let over = !now.is_open() || now.problem.is_some() || now.is_dead(clock_s());
        let complete = now.problem.is_none() && now.manifest.as_ref().is_some_and(|m| m.state == RunState::Complete);
        if over && watched.ends {
            return Ok(if complete { Ended::Done } else { Ended::Incomplete });
        }
        if over && !std::mem::replace(&mut waits, true) {
            writeln!(out, "That run is over: waiting for one that begins now")?;
            out.flush()?;
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

fn screens(terminal: &Terminal, watched: &mut Watched, stop: &AtomicBool) -> std::io::Result<Ended> {
    loop {
        watched.look();
        let name = id(watched.follower.path());
        let size = Terminal::size();
        terminal.show(&screen::draw(watched.follower.now(), &name, clock_s(), size.0, size.1))?;
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
