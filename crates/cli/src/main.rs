//! loadline: finds the load line of a database platform.
//!
//! The only crate that prints and exits.

mod args;
mod arguments;
mod audit;
mod clean;
mod compare;
mod doctor;
mod dry_run;
mod exit;
mod export;
mod forecast;
#[cfg(feature = "hub")]
mod hub_run;
#[cfg(not(feature = "hub"))]
#[path = "no_hub.rs"]
mod hub_run;
mod import;
mod listing;
mod live;
mod note;
mod output;
mod pages;
mod paired;
mod pdf;
mod probe;
mod progress;
mod references;
mod report;
mod run;
mod secrets;
mod signals;
mod snapshot;
mod source;
mod target;
mod template;
mod trend;
mod workloads;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches};
use log::LevelFilter;

use args::{Cli, Command};
use exit::Failure;

fn main() -> ExitCode {
    let given = match arguments::arguments() {
        Ok(a) => a,
        Err(e) => return exit::show(&e),
    };
    let cli = match parse(&given) {
        Ok(cli) => cli,
        Err(e) => return usage(&e),
    };
    logging(cli.verbose);
    let result = match cli.command {
        Command::Run(args) => run::run(&args, arguments::command(&given)),
        Command::Paired(command) => paired::measure(&command, arguments::command(&given)),
        Command::Compare(args) => compare::compare(&args),
        Command::Trend(args) => trend::trend(&args),
        Command::Audit(args) => audit::check(&args),
        Command::Forecast(args) => forecast::forecast(&args),
        Command::Report(args) => report::report(&args),
        Command::Note(args) => note::note(&args),
        Command::Import(args) => import::import(&args, arguments::command(&given)),
        Command::Export(args) => export::export(&args),
        Command::Watch(args) => live::watch(&args),
        Command::Serve(args) => live::serve(&args),
        Command::Snapshot(args) => snapshot::snapshot(&args),
        Command::Workloads(args) => workloads::workloads(&args),
        Command::References(args) => references::references(&args),
        Command::Plans(args) => listing::plans(&args),
        Command::Columns(args) => listing::columns(&args),
        Command::Checks(args) => listing::checks(&args),
        Command::Targets(args) => listing::targets(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Probe(args) => probe::probe(&args),
        Command::Hub(command) => hub_run::command(&command),
        Command::Clean(args) => clean::clean(&args),
        Command::Completions { shell } => completions(shell),
        Command::Man { directory } => man(&directory),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => exit::show(&failure),
    }
}

/// Reads the command line. With `--help-all`, help has all options; with `--help`, those that have a heading are left out.
fn parse(given: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    if !given.iter().any(|word| word == "--help-all") {
        let usual = |arg: Arg| if arg.get_help_heading().is_some() { arg.hide(true) } else { arg };
        let has_all = |c: &clap::Command| c.get_arguments().any(|arg| arg.get_id() == "help_all");
        command = command.mut_subcommands(|c| if has_all(&c) { c.mut_args(usual) } else { c });
    }
    let mut matches = command.try_get_matches_from_mut(given)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut command))
}

/// Prints clap's message.
fn usage(e: &clap::Error) -> ExitCode {
    // Help and version are not errors.
    if !e.use_stderr() {
        let _ = e.print();
        return ExitCode::SUCCESS;
    }
    let text = e.render().to_string();
    let hidden = secrets::hide(&text);
    if hidden == text {
        let _ = e.print();
    } else {
        output::say(hidden.trim_end());
    }
    if let Some(ContextValue::String(found)) = e.get(ContextKind::InvalidArg)
        && e.kind() == ErrorKind::UnknownArgument
        && found.contains("://")
    {
        output::say("\nwrite a URL after --target");
    }
    ExitCode::from(exit::USAGE)
}

fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "loadline", &mut text);
    output::stdout(&text)?;
    Ok(0)
}

/// Writes a page of each command into a directory.
fn man(directory: &Path) -> Result<u8, Failure> {
    clap_mangen::generate_to(Cli::command(), directory).map_err(|e| {
        Failure::usage(format!("{}: {e}; the directory must exist and be writable", directory.display()))
    })?;
    Ok(0)
}

/// Writes the libraries' messages to standard error.
struct ToStderr;

impl log::Log for ToStderr {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        output::say(&format!("{}: {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

fn logging(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        2 => LevelFilter::Debug,
        _ => LevelFilter::Trace,
    };
    log::set_max_level(std::env::var("LOADLINE_LOG").ok().and_then(|text| text.parse().ok()).unwrap_or(level));
    // Fails only if a logger is already set.
    let set = log::set_logger(&ToStderr);
    debug_assert!(set.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_the_usual_options_and_help_all_the_others() {
        Cli::command().debug_assert();
        for command in ["run", "ab", "replica-cost"] {
            let help = |flag: &str| parse(&["loadline", command, flag].map(OsString::from)).unwrap_err().to_string();
            let (usual, all) = (help("--help"), help("--help-all"));
            for flag in ["--jobs", "--parameter", "--resume", "--dry-run", "--help-all"] {
                assert!(usual.contains(flag) && all.contains(flag), "{command}: {flag}: {usual}");
            }
            for flag in ["--hub", "--think", "--patience", "--limits", "--define", "--reload"] {
                assert!(!usual.contains(&format!("{flag} ")) && all.contains(flag), "{command}: {flag}: {usual}");
            }
        }
    }
}
