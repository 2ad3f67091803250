//! What is done with the sources beside building them: `cargo run -p xtask -- dist`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod archive;
mod book;
mod build;
mod command;
mod deb;
mod files;
mod image;
mod reproduce;
mod rpm;
mod sbom;
mod try_deb;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use build::Source;

/// Any error ends the command, with its message.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Packages of loadline")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
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
    /// Check that all crates build with the Rust version that Cargo.toml names
    Msrv,
}

fn main() -> ExitCode {
    match run(&Args::parse().task) {
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
        Task::Dist => dist(&source).map(|_| ()),
        Task::Reproduce => reproduce::reproduce(&source),
        Task::TryDeb { releases } => try_deb::try_deb(&source, releases),
        Task::Book => book::book(&source),
        Task::Readers => book::readers(&source),
        Task::Msrv => source.check_msrv(),
    }
}

/// Makes all packages and returns their folder.
fn dist(source: &Source) -> Result<PathBuf> {
    let binary = source.binary()?;
    let files = files::installed(source, &binary)?;
    let name = format!("loadline-{}-x86_64-linux", source.version);
    let products = [
        (format!("{name}.tar.gz"), archive::gzip(&archive::tar(&files, &name, source.epoch)?)?),
        (deb::name(source), deb::deb(source, &files)?),
        (rpm::name(source), rpm::rpm(source, &files)?),
        (format!("{name}.oci.tar"), image::image(source, &binary)?),
        (format!("{name}.cdx.json"), sbom::sbom(source)?),
    ];
    let folder = source.target.join("dist");
    // Packages of another version would be taken for products of this build.
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let mut sums = String::new();
    for (name, bytes) in products {
        std::fs::write(folder.join(&name), &bytes)?;
        sums += &format!("{}  {name}\n", archive::sha256(&bytes));
    }
    std::fs::write(folder.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    println!("{}", folder.display());
    Ok(folder)
}
