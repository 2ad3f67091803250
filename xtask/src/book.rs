//! Products of the documentation and of exported runs by other programs. On demand: both need programs that few have.

use std::path::Path;
use std::process::Command;

use crate::build::Source;
use crate::{Result, command};

/// Builds the documentation as a book with `mdbook`, with what the program says of itself, and checks that each page of it is there.
pub(crate) fn book(source: &Source) -> Result<()> {
    let (docs, book) = (source.root.join("docs"), source.target.join("book"));
    write_reference(source, &docs.join("reference"))?;
    command::run(loadline(source).args(["workloads", "--pages"]).arg(docs.join("workloads")))?;
    let mut mdbook = Command::new("mdbook");
    mdbook.arg("build").arg(&docs).arg("--dest-dir").arg(&book);
    command::run(&mut mdbook).map_err(|e| format!("{e}\nneeds: cargo install --locked mdbook"))?;
    let chapters = std::fs::read_to_string(docs.join("SUMMARY.md"))?;
    let pages = chapters.split("](").skip(1).filter_map(|rest| rest.split_once(".md)"));
    for (page, _) in pages.filter(|(page, _)| !page.ends_with("README")) {
        let made = book.join(format!("{page}.html"));
        if !made.exists() {
            return Err(format!("{}: not made", made.display()).into());
        }
    }
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// Writes the pages of columns, checks, targets and commands, from what the program says.
fn write_reference(source: &Source, folder: &Path) -> Result<()> {
    let said = |arguments: &[&str]| Ok(String::from_utf8(command::output(loadline(source).args(arguments))?)?);
    std::fs::create_dir_all(folder)?;
    for (listing, about) in [
        ("columns", "The columns of the tables and of `--format csv`: what each means, and where it comes from."),
        ("checks", "A test is valid if none of its checks failed. A check that cannot be made says why."),
        ("audit --laws", "What `loadline audit` checks ([how](../audit.md))."),
        ("targets", "The forms of `--target`."),
    ] {
        let words: Vec<&str> = listing.split(' ').chain(["--format", "md"]).collect();
        let (table, name): (Result<String>, _) = (said(&words), listing.trim_start_matches("audit --"));
        let page = format!("# The {name}\n\n{about} From `loadline {listing}`.\n\n{}", table?);
        std::fs::write(folder.join(format!("{name}.md")), page)?;
    }
    let help: String = said(&["--help"])?;
    let listed =
        help.split_once("Commands:").and_then(|(_, rest)| rest.split_once("Options:")).map_or("", |(of, _)| of);
    // Two blanks, then a name: what is more indented explains it.
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|n| !n.is_empty()));
    let mut page =
        "# Commands\n\nWhat `loadline COMMAND --help` says, or `--help-all` where there is one.\n".to_owned();
    for name in names.filter(|name| *name != "help") {
        let mut text: String = said(&[name, "--help"])?;
        if text.contains("--help-all") {
            text = said(&[name, "--help-all"])?;
        }
        page += &format!("\n## loadline {name}\n\n```text\n{}\n```\n", text.trim_end());
    }
    Ok(std::fs::write(folder.join("commands.md"), page)?)
}

/// The program, with all that it can have.
fn loadline(source: &Source) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(&source.root)
        .args(["run", "--quiet", "--package", "loadline-cli", "--features", "oracle,hub,parquet", "--"]);
    cargo
}

/// Exports a run and has it read by pyarrow and HdrHistogram's package for Python (`docs/examples/read_exports.py`).
pub(crate) fn readers(source: &Source) -> Result<()> {
    let folder = tempfile::tempdir_in(&source.target)?;
    let at = |name: &str| folder.path().join(name);
    let python = at("venv").join("bin/python");
    command::run(Command::new("python3").args(["-m", "venv"]).arg(at("venv")))?;
    command::run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "pyarrow", "hdrhistogram"]))?;
    let results = at("runs");
    let plan = ["run", "--target", "null:?pause=1ms", "--workload", "LGWR-LAT1", "--jobs", "1,2", "--duration", "3s"];
    let said = command::output(
        loadline(source).args(plan).args(["--warmup", "300ms", "--no-probe", "--results"]).arg(&results),
    )?;
    let said = String::from_utf8(said)?;
    let run = said.lines().last().ok_or("the run does not say where it is")?;
    for (format, output) in [("parquet", "tables"), ("hlog", "run.hlog")] {
        command::run(loadline(source).args(["export", run, "--format", format, "--output"]).arg(at(output)))?;
    }
    let script = source.root.join("docs/examples/read_exports.py");
    command::run(Command::new(&python).arg(script).arg(run).arg(at("tables")).arg(at("run.hlog")))
}
