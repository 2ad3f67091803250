//! The files that a package installs.

use std::path::Path;
use std::process::Command;

use crate::archive::{File, gzip};
use crate::build::Source;
use crate::{Result, command};

/// The binary, its man pages, completions, plans, references and licences.
pub(crate) fn installed(source: &Source, binary: &Path) -> Result<Vec<File>> {
    let mut files = vec![File { mode: 0o755, ..File::data("usr/bin/loadline", std::fs::read(binary)?) }];
    let pages = tempfile::tempdir()?;
    command::run(Command::new(binary).arg("man").arg(pages.path()))?;
    for (name, bytes) in folder(pages.path())? {
        files.push(File::data(format!("usr/share/man/man1/{name}.gz"), gzip(&bytes)?));
    }
    let completions = [
        ("bash", "usr/share/bash-completion/completions/loadline"),
        ("zsh", "usr/share/zsh/vendor-completions/_loadline"),
        ("fish", "usr/share/fish/vendor_completions.d/loadline.fish"),
    ];
    for (shell, path) in completions {
        files.push(File::data(path, command::output(Command::new(binary).args(["completions", shell]))?));
    }
    for kind in ["plans", "references"] {
        for (name, bytes) in folder(&source.root.join(kind))? {
            files.push(File::data(format!("usr/share/loadline/{kind}/{name}"), bytes));
        }
    }
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        files.push(File::data(format!("usr/share/doc/loadline/{name}"), std::fs::read(source.root.join(name))?));
    }
    let copyright = "loadline: MIT or Apache-2.0, at your choice: LICENSE-MIT and LICENSE-APACHE in this folder.\n";
    files.push(File::data("usr/share/doc/loadline/copyright", copyright));
    Ok(files)
}

/// Names and contents of the files in a folder.
fn folder(path: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let entries = std::fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?))
    };
    entries.map(read).collect()
}
