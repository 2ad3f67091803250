//! `loadline watch`, `loadline serve`, and the process of `loadline run --metrics`.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_live::serve::{self, ServeError, ServeOptions};
use loadline_live::{Ended, WatchOptions, now};
use loadline_store::runs_in;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::{ServeArgs, TOKEN_VARIABLE, WatchArgs};
use crate::exit::{self, Failure};
use crate::target::run_folder;
use crate::{output, report, signals};

pub(crate) fn watch(args: &WatchArgs) -> Result<u8, Failure> {
    let run = match &args.run {
        Some(run) => existing(&run_folder(run, &args.results))?,
        None => newest(&args.results)?,
    };
    // https://no-color.org: set and not empty.
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let stop = Arc::new(AtomicBool::new(false));
    signals::interruptible(&stop, "nothing is left".to_owned())?;
    let newest_in = args.run.is_none().then(|| args.results.clone());
    let options = WatchOptions { run, newest_in, plain: args.plain, colours, stop };
    match loadline_live::watch(&options, &mut std::io::stdout()).map_err(|e| Failure::failed(e.to_string()))? {
        Ended::Done => Ok(0),
        Ended::Incomplete => Ok(exit::FAILED),
        Ended::Interrupted => Ok(exit::INTERRUPTED),
    }
}

/// The run folder at `path`, or why it is none. A run may still be without tests, and a damaged one is shown as it is.
fn existing(path: &Path) -> Result<PathBuf, Failure> {
    let path = if path.ends_with("manifest.json") { path.parent().unwrap_or(path) } else { path };
    if path.join("manifest.json").is_file() {
        return Ok(path.to_owned());
    }
    // Its error says what the folder is instead.
    loadline_store::StoredRun::open(path)?;
    Ok(path.to_owned())
}

fn newest(results: &Path) -> Result<PathBuf, Failure> {
    let none = || {
        Failure::usage(format!(
            "there is no run in '{}': name a run folder, or the folder of the runs with --results",
            results.display()
        ))
    };
    let runs = runs_in(results).map_err(|_| none())?;
    now::newest(&runs).cloned().ok_or_else(none)
}

pub(crate) fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    let token = token(args.token_file.as_deref())?;
    // Not by the end of the terminal: a server may outlive it (nohup).
    let stop = Arc::new(AtomicBool::new(false));
    signals::set_by(&stop, [SIGINT, SIGTERM])?;
    let listener = if args.until_stdin_ends {
        let ended = Arc::clone(&stop);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            ended.store(true, Ordering::Relaxed);
        });
        std::io::stdout().as_fd().try_clone_to_owned().map_err(ServeError::Failed)?.into()
    } else {
        serve::listen(args.listen, token.as_deref())?
    };
    let at = listener.local_addr().map_err(ServeError::Failed)?;
    let ready = || {
        if args.until_stdin_ends {
            return;
        }
        if !at.ip().is_loopback() {
            output::say(
                "note: without TLS the token can be read on the way: use a tunnel (ssh -L) or a proxy with TLS",
            );
        }
        let asked = if token.is_some() { "; browsers are asked for the token" } else { "" };
        output::say(&format!("serving {} at http://{at}/{asked}; Ctrl-C ends it", args.dir.display()));
    };
    let (dir, names) = (args.dir.clone(), args.name.clone());
    let options = ServeOptions { dir, token: token.clone(), names, audited: report::audited };
    serve::serve(options, listener, &stop, ready)?;
    Ok(0)
}

fn token(file: Option<&Path>) -> Result<Option<String>, Failure> {
    let given = match file {
        Some(file) => Some(
            std::fs::read_to_string(file)
                .map_err(|e| Failure::usage(format!("--token-file '{}' cannot be read: {e}", file.display())))?,
        ),
        None => std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()),
    };
    Ok(given.map(|token| token.trim().to_owned()))
}

/// A `loadline serve` that ends with this process, however that ends: with its standard input.
#[derive(Debug)]
pub(crate) struct MetricsServer(Child);

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Listens at `listen`, and starts `loadline serve` of the runs in `results` there.
///
/// # Errors
/// The address is taken, or others could connect and there is no token.
pub(crate) fn start_metrics(results: &Path, listen: SocketAddr) -> Result<MetricsServer, Failure> {
    let listener = serve::listen(listen, token(None)?.as_deref())
        .map_err(|e| Failure::usage(format!("--metrics: {}", e.to_string().replace("--listen", "--metrics"))))?;
    std::fs::create_dir_all(results)
        .map_err(|e| Failure::usage(format!("'{}' cannot be made: {e}", results.display())))?;
    let started = listener.local_addr().and_then(|at| {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg(results).arg("--until-stdin-ends");
        command.stdin(Stdio::piped()).stdout(OwnedFd::from(listener));
        // Ctrl-C ends the run first, which is seen until its end.
        Ok((at, command.process_group(0).spawn()?))
    });
    let (at, process) = started.map_err(|e| Failure::failed(format!("--metrics: its process cannot start: {e}")))?;
    output::say(&format!("metrics at http://{at}/metrics until the run ends"));
    Ok(MetricsServer(process))
}
