//! The user's command that brings an arm about.

use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_database::TargetError;
use loadline_model::Letter;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::StudyError;
use crate::plan::variants::ARM_VARIABLE;

/// Longest time for a command.
const LONGEST: Duration = Duration::from_secs(600);
/// Most bytes of its output in an error.
const SHOWN: usize = 2000;

/// Runs `command`, which brings `arm` about, with `sh -c` until its end. If it fails, the error has its output; a user who stops the run
/// ends it as well.
pub(super) fn run(arm: Letter, command: &str, interrupted: &AtomicBool) -> Result<(), StudyError> {
    let failed = |why: String| TargetError::Local(format!("--switch-{}: {why}", arm.to_string().to_lowercase()));
    let io = |e: std::io::Error| failed(format!("'{command}' cannot be run: {e}"));
    // A file, because nobody reads a pipe while the command runs.
    let mut output = tempfile::tempfile().map_err(io)?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).env(ARM_VARIABLE, arm.to_string()).process_group(0);
    shell.stdin(Stdio::null()).stdout(output.try_clone().map_err(io)?).stderr(output.try_clone().map_err(io)?);
    let mut child = shell.spawn().map_err(io)?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(io)? {
            break status;
        }
        let (stop, late) = (interrupted.load(Ordering::Relaxed), began.elapsed() > LONGEST);
        if stop || late {
            let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
            let _ = child.wait();
            return Err(if stop {
                StudyError::Interrupted
            } else {
                failed(format!("'{command}' did not end within {} s", LONGEST.as_secs())).into()
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut text)).map_err(io)?;
    let said = String::from_utf8_lossy(&text[text.len().saturating_sub(SHOWN)..]).trim().to_owned();
    let said = if said.is_empty() { "it printed nothing".to_owned() } else { format!("it printed: {said}") };
    Err(failed(format!("'{command}' ended with {status}; {said}")).into())
}
