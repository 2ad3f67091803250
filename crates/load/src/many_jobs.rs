//! A thread that runs many jobs: each is a fiber of its event loop.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use loadline_database::TargetError;
use loadline_fibers::{Loop, park};

use crate::Request;
use crate::client_job::Timing;
use crate::job::{Tally, tallies};
use crate::schedule::Shared;
use crate::worker::{self, Ready, Worked};

/// Sessions that a loop opens at a time: servers refuse connections that come all at once.
const OPEN_AT_A_TIME: usize = 64;

/// What the fibers of a thread share.
#[derive(Default)]
struct Common {
    /// Set when the jobs may start.
    go: OnceCell<(Timing, Vec<RefCell<Tally>>)>,
    /// Jobs whose session is open, or could not be opened.
    tried: Cell<usize>,
    worked: RefCell<Worked>,
}

/// Opens the sessions of `jobs` and runs them when `go` says so.
pub(crate) fn run(
    jobs: &[u32],
    request: Request,
    shared: Arc<Shared>,
    ready: Sender<Ready>,
    go: &Receiver<Timing>,
) -> Worked {
    let mut on_loop = match Loop::new(jobs.len()) {
        Ok(on_loop) => on_loop,
        Err(e) => {
            let text = format!("one thread cannot run {} sessions: {e}", jobs.len());
            let _ = ready.send(Ready::new(Err(TargetError::Usage(text))));
            return Worked::default();
        }
    };
    let (common, request) = (Rc::new(Common::default()), Rc::new(request));
    let hurry = || shared.stopped();
    for some in jobs.chunks(OPEN_AT_A_TIME) {
        let until = common.tried.get() + some.len();
        for job in some.iter().copied() {
            let (common, request, shared, ready) =
                (Rc::clone(&common), Rc::clone(&request), Arc::clone(&shared), ready.clone());
            on_loop.spawn(move || fiber(job, &common, &request, &shared, ready));
        }
        let opened = on_loop.run(|| common.tried.get() >= until, hurry);
        if opened.is_err() || shared.any_ended() || shared.stopped() {
            break;
        }
    }
    drop(ready);
    if let Ok(timing) = go.recv() {
        let _ = common.go.set((timing, tallies(timing.window_ns, &request.load)));
    }
    on_loop.unpark_all();
    // What did not run is missing, and said to have crashed.
    let _ = on_loop.run(|| false, hurry);
    let mut worked = common.worked.take();
    if let Some((_, of_parts)) = common.go.get() {
        worked.tallies = of_parts.iter().map(RefCell::take).collect();
    }
    worked
}

/// One job.
fn fiber(job: u32, common: &Common, request: &Request, shared: &Shared, ready: Sender<Ready>) {
    let tried = || common.tried.set(common.tried.get() + 1);
    let opened = Cell::new(false);
    let result = worker::job(job, request, shared, ready, || {
        opened.set(true);
        tried();
        park();
        common.go.get().map(|(timing, of_parts)| (*timing, &of_parts[..]))
    });
    if !opened.get() {
        tried();
    }
    common.worked.borrow_mut().jobs.push((job, result));
}
