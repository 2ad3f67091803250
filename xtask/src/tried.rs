//! Packages that are tried: whether they are the same when somebody else makes them, and whether the .deb works in new roots.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::build::Source;
use crate::package::dist;
use crate::{Result, command};

/// Builds HEAD once more, in another directory, and compares each package by its bytes.
pub(crate) fn reproduce(source: &Source) -> Result<()> {
    let first = source.target.join("dist");
    let sums = |folder: &Path| {
        let path = folder.join("SHA256SUMS");
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}; first `cargo run -p xtask -- dist`", path.display()))
    };
    let before = sums(&first)?;
    let elsewhere = tempfile::tempdir_in(&source.target)?;
    let clone = elsewhere.path().join("clone");
    command::run(Command::new("git").args(["clone", "--quiet"]).args([&source.root, &clone]))?;
    let again = dist(&Source::at(&clone, Some(elsewhere.path().join("target")))?)?;
    let differs: Vec<&str> = sums(&again)?
        .lines()
        .zip(before.lines())
        .filter(|(again, before)| again != before)
        .filter_map(|(_, before)| before.split_whitespace().nth(1))
        .collect();
    if !differs.is_empty() {
        return Err(format!("not the same bytes: {}", differs.join(", ")).into());
    }
    println!("the same bytes, built in two directories");
    Ok(())
}

/// A test in seconds, on the database that needs no server. What is tried is the package and not the
/// machine, which may be busy: a disturbed test counts.
const FIRST: &str = "set -eux; loadline --version; cd /var/tmp; \
    loadline run --target sqlite: --workload LGWR-LAT1 --jobs 1 --duration 2 --warmup 1 --no-probe >out; \
    loadline report \"$(tail -n 1 out)\" --format csv --output - | tee out.csv; test \"$(wc -l <out.csv)\" -ge 2; \
    test -s /usr/share/man/man1/loadline.1.gz; test -s /usr/share/bash-completion/completions/loadline; \
    loadline run /usr/share/loadline/plans/quick.toml --dry-run >/dev/null; \
    dpkg --remove loadline; ! test -e /usr/bin/loadline";

/// Installs the package in a minimal root of each release and runs loadline there.
pub(crate) fn try_deb(source: &Source, releases: &[String]) -> Result<()> {
    let package = source.target.join(format!("dist/loadline_{}_amd64.deb", source.version));
    if !package.exists() {
        return Err(format!("{}: not found; make it by `cargo run -p xtask -- dist`", package.display()).into());
    }
    for release in releases {
        let mut root = Command::new("mmdebstrap");
        root.args(["--variant=minbase", "--mode=root", "--format=null"]);
        root.arg(format!("--customize-hook=upload '{}' /var/tmp/loadline.deb", package.display()));
        root.arg("--customize-hook=chroot \"$1\" dpkg --install /var/tmp/loadline.deb");
        root.arg(format!("--customize-hook=chroot \"$1\" sh -c '{FIRST}'"));
        command::run(root.args([release.as_str(), "/dev/null"]))?;
        println!("{release}: installed, run and removed");
    }
    Ok(())
}
