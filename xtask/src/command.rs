//! Programs that are run.

use std::process::{Command, Stdio};

use crate::Result;

/// `cargo SUBCOMMAND`, which is installed first if it is missing.
pub(crate) fn cargo(subcommand: &str) -> Result<Command> {
    let there = Command::new("cargo").args([subcommand, "--version"]).output()?.status.success();
    if !there {
        let crate_name = format!("cargo-{subcommand}");
        println!("{crate_name} is missing: cargo install --locked {crate_name}");
        run(Command::new("cargo").args(["install", "--locked", &crate_name]))?;
    }
    let mut cargo = Command::new("cargo");
    cargo.arg(subcommand);
    Ok(cargo)
}

/// Runs a program to its end. Fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|e| format!("{}: {e}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command)).into()) }
}

/// The standard output of a program. Fails if the program does.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let out = command.stderr(Stdio::inherit()).output().map_err(|e| format!("{}: {e}", shown(command)))?;
    if out.status.success() { Ok(out.stdout) } else { Err(format!("{}: {}", shown(command), out.status).into()) }
}

fn shown(command: &Command) -> String {
    let arguments = command.get_args().map(|a| a.to_string_lossy().into_owned());
    let words = std::iter::once(command.get_program().to_string_lossy().into_owned()).chain(arguments);
    words.collect::<Vec<_>>().join(" ")
}
