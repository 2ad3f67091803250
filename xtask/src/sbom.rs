//! The bill of materials in CycloneDX 1.5, by `cargo-cyclonedx`: crates with versions, licences, hashes, and what needs what.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::build::{FEATURES, Source, TRIPLE, metadata};
use crate::{Result, command};

/// Without its ending.
const FILE: &str = "loadline-sbom";

/// The bill of the binary, without crates that only build scripts use, and without the directory of the checkout.
pub(crate) fn sbom(source: &Source) -> Result<Vec<u8>> {
    let mut cyclonedx = Command::new("cargo");
    cyclonedx.current_dir(&source.root).args(["cyclonedx", "--quiet", "--manifest-path", "crates/cli/Cargo.toml"]);
    cyclonedx.args(["--format", "json", "--spec-version", "1.5", "--target", TRIPLE, "--features", FEATURES]);
    cyclonedx.args(["--no-build-deps", "--override-filename", FILE]);
    cyclonedx.env("SOURCE_DATE_EPOCH", source.epoch.to_string());
    let made = command::run(&mut cyclonedx);
    // It writes one beside the manifest of every package.
    let packages = metadata(&source.root, &["--no-deps"])?;
    let file =
        |package: &Value| Some(Path::new(package["manifest_path"].as_str()?).with_file_name(format!("{FILE}.json")));
    let files: Vec<PathBuf> = packages["packages"].as_array().into_iter().flatten().filter_map(file).collect();
    let bill = std::fs::read_to_string(source.root.join(format!("crates/cli/{FILE}.json")));
    for file in files.iter().filter(|file| file.exists()) {
        std::fs::remove_file(file)?;
    }
    made.map_err(|e| format!("{e}\nneeds: cargo install --locked cargo-cyclonedx"))?;
    Ok(bill?.replace(&source.root.display().to_string(), "/build/loadline").into_bytes())
}
