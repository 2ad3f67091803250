//! Tasks on the sources beside building them: `cargo run -p xtask -- dist`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod archive;
mod book;
mod build;
mod command;
mod image;
mod package;
mod tried;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use build::Source;

/// Any error ends the command, with its message.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Packages of loadline")]
enum Task {
    /// Build the static binary and all packages of it, with SBOM and SHA-256 sums, in target/dist
    Dist,
    /// Build all packages again, from a clone of HEAD in another directory, and compare them with those in target/dist
    Reproduce,
    /// Install the package in new Debian roots and run loadline there (as root; needs mmdebstrap and a Debian mirror)
    TryDeb {
        /// Releases of Debian
        #[arg(default_values = ["bookworm", "trixie"])]
        releases: Vec<String>,
    },
    /// Build the documentation as a book, in target/book (needs mdbook)
    Book,
    /// Export a run and have it read by pyarrow and hdrhistogram (needs python3 with venv, and PyPI)
    Readers,
}

fn main() -> ExitCode {
    match run(&Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    let source = Source::here()?;
    match task {
        Task::Dist => package::dist(&source).map(drop),
        Task::Reproduce => tried::reproduce(&source),
        Task::TryDeb { releases } => tried::try_deb(&source, releases),
        Task::Book => book::book(&source),
        Task::Readers => book::readers(&source),
    }
}
