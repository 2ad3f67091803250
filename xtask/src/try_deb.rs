//! The package in new Debian roots: installed, run, removed.

use std::process::Command;

use crate::build::Source;
use crate::{Result, command, deb};

/// A test in seconds, on the database that needs no server. What is tried is the package and not the
/// machine, which may be busy: a disturbed test counts.
const FIRST: &str = "set -eux; loadline --version; cd /var/tmp; \
    loadline run --target sqlite: --workload LGWR-LAT1 --jobs 1 --duration 2 --warmup 1 --no-probe --allow-disturbed >out; \
    loadline report \"$(tail -n 1 out)\" --format csv --output - | tee out.csv; test \"$(wc -l <out.csv)\" -ge 2; \
    test -s /usr/share/man/man1/loadline.1.gz; test -s /usr/share/bash-completion/completions/loadline; \
    loadline run /usr/share/loadline/plans/quick.toml --dry-run >/dev/null; \
    dpkg --remove loadline; ! test -e /usr/bin/loadline";

/// Installs the package in a minimal root of each release and runs loadline there.
pub(crate) fn try_deb(source: &Source, releases: &[String]) -> Result<()> {
    let package = source.target.join("dist").join(deb::name(source));
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
