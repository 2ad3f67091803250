//! Keeps passwords out of the process list: a URL with a password on the command line is seen by
//! every user of the machine (`ps`). loadline then starts itself anew with the password taken out
//! of its arguments and handed over in the environment, which only its owner can read.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::{AskPassword, Secret, redact};

use crate::exit::Failure;

/// Environment variable that carries the argument of this number.
const CARRIER: &str = "LOADLINE_ARGUMENT_";

/// Arguments and values of the plan with a password in them.
static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Hides what of `texts` has a password in it from all that is printed from now on.
pub(crate) fn keep<'a>(texts: impl Iterator<Item = &'a str>) {
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.extend(texts.filter(|t| is_secret(t)).map(str::to_owned));
}

/// `text` without the passwords of the command line and of the plan, whatever quotes them: a URL that stands where none
/// belongs is quoted by whoever looks for something else there.
pub(crate) fn hide(text: &str) -> String {
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.iter().fold(text.to_owned(), |text, secret| loadline_database::hide(&text, secret))
}

fn is_secret(argument: &str) -> bool {
    argument.contains("://") && redact(argument) != argument
}

/// The arguments of this process, passwords included, after they have been taken from sight.
pub(crate) fn arguments() -> Result<Vec<OsString>, Failure> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let secret = |a: &OsString| a.to_str().is_some_and(is_secret);
    if arguments.iter().any(secret) {
        let exe =
            std::env::current_exe().map_err(|e| Failure::failed(format!("cannot find the loadline program: {e}")))?;
        let mut command = std::process::Command::new(exe);
        for (i, argument) in arguments.iter().enumerate().skip(1) {
            match argument.to_str().filter(|a| is_secret(a)) {
                Some(text) => command.arg(redact(text)).env(format!("{CARRIER}{i}"), text),
                None => command.arg(argument),
            };
        }
        return Err(Failure::failed(format!("cannot start anew: {}", command.exec())));
    }
    for (i, argument) in arguments.iter_mut().enumerate() {
        let carrier = format!("{CARRIER}{i}");
        if let Some(value) = std::env::var_os(&carrier) {
            *argument = value;
            forget(&carrier);
        }
    }
    keep(arguments.iter().filter_map(|a| a.to_str()));
    Ok(arguments)
}

/// Takes a variable out of the environment, so that no child process gets it.
#[allow(unsafe_code)]
fn forget(name: &str) {
    // SAFETY: called first thing in `main`, while there is one thread only.
    unsafe { std::env::remove_var(name) };
}

/// The command line for the manifest, without secrets.
pub(crate) fn command(arguments: &[OsString]) -> Vec<String> {
    arguments
        .iter()
        .enumerate()
        .map(|(i, a)| {
            let text = a.to_string_lossy();
            if i == 0 {
                "loadline".to_owned()
            } else if text.contains("://") {
                redact(&text)
            } else {
                text.into_owned()
            }
        })
        .collect()
}

/// Asks for a password on the terminal, if there is one.
pub(crate) fn ask() -> AskPassword {
    Arc::new(|what| {
        use std::io::IsTerminal;
        // Without a terminal nobody would answer.
        if !std::io::stderr().is_terminal() {
            return None;
        }
        rpassword::prompt_password(format!("Password for {what}: ")).ok().map(Secret::new)
    })
}
