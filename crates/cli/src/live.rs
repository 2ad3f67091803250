//! `loadline watch`, `loadline serve`, and the process of `loadline run --metrics`.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use loadline_live::serve::{ServeError, ServeOptions};
use loadline_live::{Ended, WatchOptions, now};
use loadline_store::runs_in;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::{self, Failure};
use crate::live_args::{ServeArgs, TOKEN_VARIABLE, WatchArgs};
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
    let with_token = token.is_some();
    let options = ServeOptions {
        dir: args.dir.clone(),
        listen: args.listen,
        token,
        names: args.name.clone(),
        until_stdin_ends: args.until_stdin_ends,
        audited: report::audited,
    };
    let ready = |at: std::net::SocketAddr| {
        if !at.ip().is_loopback() {
            output::say(
                "note: without TLS the token can be read on the way: use a tunnel (ssh -L) or a proxy with TLS",
            );
        }
        let asked = if with_token { "; browsers are asked for the token" } else { "" };
        output::say(&format!("serving {} at http://{at}/{asked}; Ctrl-C ends it", args.dir.display()));
    };
    // Not by the end of the terminal: a server may outlive it (nohup).
    let stop = Arc::new(AtomicBool::new(false));
    signals::set_by(&stop, [SIGINT, SIGTERM])?;
    loadline_live::serve::serve(options, &stop, ready).map_err(|e| match e {
        ServeError::Failed(_) => Failure::failed(e.to_string()),
        _ => Failure::usage(e.to_string()),
    })?;
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

/// A `loadline serve` that ends with this process, however that ends.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    process: Child,
    /// Passes on what it says.
    said: Option<JoinHandle<()>>,
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        let _ = self.said.take().map(JoinHandle::join);
    }
}

/// Starts `loadline serve` of the runs in `results` at `listen`, and returns once it listens.
///
/// # Errors
/// It does not listen: the address is taken, or others could connect and there is no token.
pub(crate) fn start_metrics(results: &Path, listen: SocketAddr) -> Result<MetricsServer, Failure> {
    if !listen.ip().is_loopback() && token(None)?.is_none() {
        return Err(Failure::usage(format!(
            "--metrics {listen} can be reached from other machines: set LOADLINE_TOKEN to a token of 16 characters or more, or listen \
             on 127.0.0.1"
        )));
    }
    let failed = |e: std::io::Error| Failure::failed(format!("--metrics: its process cannot start: {e}"));
    std::fs::create_dir_all(results)
        .map_err(|e| Failure::usage(format!("'{}' cannot be made: {e}", results.display())))?;
    let mut process = Command::new(std::env::current_exe().map_err(failed)?)
        .arg("serve")
        .arg(results)
        .args(["--listen", &listen.to_string(), "--until-stdin-ends"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C ends the run first, which is seen until its end.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let mut said = process.stderr.take().map(BufReader::new);
    let mut server = MetricsServer { process, said: None };
    let mut text = String::new();
    loop {
        let mut line = String::new();
        let read = said.as_mut().map_or(Ok(0), |said| said.read_line(&mut line)).map_err(failed)?;
        if read == 0 {
            let text = text.trim().trim_start_matches("loadline: ").replace("--listen", "--metrics");
            return Err(Failure::usage(format!("--metrics: {text}")));
        }
        if let Some((_, rest)) = line.split_once("http://") {
            let at = rest.split('/').next().unwrap_or_default();
            output::say(&format!("metrics at http://{at}/metrics until the run ends"));
            // What else it says must not fill the pipe.
            server.said = Some(std::thread::spawn(move || {
                said.into_iter().flat_map(BufRead::lines).map_while(Result::ok).for_each(|line| output::say(&line));
            }));
            return Ok(server);
        }
        text.push_str(&line);
    }
}
