//! The command line. A URL or a setting with a password in it is seen by every user of the machine (`ps`): loadline then starts itself
//! again with the password taken out of its arguments and handed over in the environment, which only its owner can read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::{AskPassword, Secret};

use crate::exit::Failure;
use crate::secrets::{keep, shown};

/// Environment variable that carries the argument of this number.
const CARRIER: &str = "LOADLINE_ARGUMENT_";

/// The arguments of this process, passwords included, after they have been taken from sight.
pub(crate) fn arguments() -> Result<Vec<OsString>, Failure> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let without_secret = |a: &OsString| a.to_str().and_then(shown);
    if arguments.iter().any(|a| without_secret(a).is_some()) {
        let exe =
            std::env::current_exe().map_err(|e| Failure::failed(format!("cannot find the loadline program: {e}")))?;
        let mut command = std::process::Command::new(exe);
        for (i, argument) in arguments.iter().enumerate().skip(1) {
            match without_secret(argument) {
                Some(shown) => command.arg(shown).env(format!("{CARRIER}{i}"), argument),
                None => command.arg(argument),
            };
        }
        return Err(Failure::failed(format!("cannot start loadline again: {}", command.exec())));
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
            if i == 0 { "loadline".to_owned() } else { shown(&text).unwrap_or_else(|| text.into_owned()) }
        })
        .collect()
}

/// Asks for a password on the terminal, if there is one; for each user and place once.
pub(crate) fn ask() -> AskPassword {
    let typed = Mutex::new(BTreeMap::<String, Secret>::new());
    Arc::new(move |what| {
        let mut typed = typed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = typed.get(what) {
            return Some(known.clone());
        }
        use std::io::IsTerminal;
        // Without a terminal nobody would answer.
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let given = Secret::new(rpassword::prompt_password(format!("Password for {what}: ")).ok()?);
        typed.insert(what.to_owned(), given.clone());
        Some(given)
    })
}
