//! The static binary, built so that neither directory nor machine shows in its bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Result, command};

/// The platform of the packages.
pub(crate) const TRIPLE: &str = "x86_64-unknown-linux-musl";
/// Features of packages beside the default ones.
pub(crate) const FEATURES: &str = "hub,parquet";

/// A checkout and where it is built.
pub(crate) struct Source {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) version: String,
    /// Time of the commit [s since 1970]: the time of every file in a package.
    pub(crate) epoch: u64,
}

impl Source {
    /// The checkout in which xtask was built.
    pub(crate) fn here() -> Result<Source> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no parent directory")?;
        Source::at(root, None)
    }

    /// The checkout at `root`, built in `target`, or else where cargo builds it.
    pub(crate) fn at(root: &Path, target: Option<PathBuf>) -> Result<Source> {
        let metadata = metadata(root, &["--no-deps"])?;
        let loadline = metadata["packages"].as_array().into_iter().flatten().find(|p| p["name"] == "loadline-cli");
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("cargo metadata: a field is missing");
        let package = loadline.ok_or("cargo metadata: no package loadline-cli")?;
        Ok(Source {
            root: root.to_owned(),
            target: target.map_or_else(|| text(&metadata["target_directory"]).map(PathBuf::from), Ok)?,
            version: text(&package["version"])?,
            epoch: epoch(root)?,
        })
    }

    /// Builds the binary and returns its path.
    pub(crate) fn binary(&self) -> Result<PathBuf> {
        let home = std::env::var_os("HOME").unwrap_or_default();
        let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| Path::new(&home).join(".cargo"), PathBuf::from);
        // The last match counts, and `target` may be in `root`.
        let places = [(&self.root, "loadline"), (&cargo_home, "cargo"), (&self.target, "target")];
        let flags = |option: &str, separator: &str| {
            places.map(|(path, name)| format!("{option}={}=/build/{name}", path.display())).join(separator)
        };
        // Which crates are in it can be read from the binary itself.
        let mut build = command::cargo("auditable")?;
        build.current_dir(&self.root).args(["build", "--release", "--locked", "--target", TRIPLE]);
        build.args(["--package", "loadline-cli", "--features", FEATURES]);
        build.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "0");
        build.env("SOURCE_DATE_EPOCH", self.epoch.to_string());
        build.env("CARGO_ENCODED_RUSTFLAGS", flags("--remap-path-prefix", "\u{1f}"));
        build.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
        build.env("CFLAGS_x86_64_unknown_linux_musl", flags("-ffile-prefix-map", " "));
        command::run(&mut build)
            .map_err(|e| format!("{e}\nneeds: rustup target add {TRIPLE}; apt install musl-tools"))?;
        Ok(self.target.join(TRIPLE).join("release/loadline"))
    }
}

/// Output of `cargo metadata` for the checkout at `root`.
pub(crate) fn metadata(root: &Path, arguments: &[&str]) -> Result<Value> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]).args(arguments);
    Ok(serde_json::from_slice(&command::output(&mut cargo)?)?)
}

/// `SOURCE_DATE_EPOCH`, or else the time of the commit [s since 1970].
fn epoch(root: &Path) -> Result<u64> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given.parse().map_err(|e| format!("SOURCE_DATE_EPOCH={given}: {e}; a whole number of seconds").into());
    }
    let out = command::output(Command::new("git").arg("-C").arg(root).args(["log", "-1", "--format=%ct"]))?;
    Ok(String::from_utf8(out)?.trim().parse()?)
}
