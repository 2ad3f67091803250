//! What other programs make of the documentation and of exported runs. On demand: both need programs that few have.

use std::process::Command;

use crate::build::Source;
use crate::{Result, command};

/// Builds the documentation as a book with `mdbook`, and checks that each page of it is there.
pub(crate) fn book(source: &Source) -> Result<()> {
    let (docs, book) = (source.root.join("docs"), source.target.join("book"));
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

/// Exports a run and has it read by pyarrow and HdrHistogram's package for Python (`docs/examples/read_exports.py`).
pub(crate) fn readers(source: &Source) -> Result<()> {
    let folder = tempfile::tempdir_in(&source.target)?;
    let at = |name: &str| folder.path().join(name);
    let python = at("venv").join("bin/python");
    command::run(Command::new("python3").args(["-m", "venv"]).arg(at("venv")))?;
    command::run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "pyarrow", "hdrhistogram"]))?;
    let loadline = |arguments: &[&str]| {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&source.root)
            .args(["run", "--quiet", "--package", "loadline-cli", "--features", "parquet", "--"]);
        cargo.args(arguments);
        cargo
    };
    let results = at("runs");
    let plan = ["run", "--target", "null:?pause=1ms", "--workload", "LGWR-LAT1", "--jobs", "1,2", "--duration", "3s"];
    let said = command::output(loadline(&plan).args(["--warmup", "300ms", "--no-probe", "--results"]).arg(&results))?;
    let said = String::from_utf8(said)?;
    let run = said.lines().last().ok_or("the run does not say where it is")?;
    for (format, output) in [("parquet", "tables"), ("hlog", "run.hlog")] {
        command::run(loadline(&["export", run, "--format", format, "--output"]).arg(at(output)))?;
    }
    let script = source.root.join("docs/examples/read_exports.py");
    command::run(Command::new(&python).arg(script).arg(run).arg(at("tables")).arg(at("run.hlog")))
}
