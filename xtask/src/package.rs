//! All packages of a build, in `target/dist`. What is in the .deb and the .rpm says `crates/cli/Cargo.toml`; `cargo-deb` and
//! `cargo-generate-rpm` make them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archive::{gzip, sha256, tar};
use crate::build::{FEATURES, Source, TRIPLE, metadata};
use crate::image::image;
use crate::{Result, command};

/// Makes all packages and returns their folder.
pub(crate) fn dist(source: &Source) -> Result<PathBuf> {
    let binary = source.binary()?;
    let staged = stage(source, &binary)?;
    let folder = source.target.join("dist");
    // Packages of another version would be taken for products of this build.
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut deb = command::cargo("deb")?;
    deb.args(["--package", "loadline-cli", "--no-build", "--no-strip", "--target", TRIPLE, "--output"]);
    let mut rpm = command::cargo("generate-rpm")?;
    rpm.args(["--package", "crates/cli", "--payload-compress", "gzip", "--target", TRIPLE, "--output"]);
    for mut packager in [deb, rpm] {
        packager.current_dir(&source.root).arg(&folder).env("CARGO_TARGET_DIR", &source.target);
        command::run(packager.env("SOURCE_DATE_EPOCH", source.epoch.to_string()))?;
    }
    let name = format!("loadline-{}-x86_64-linux", source.version);
    fs::write(folder.join(format!("{name}.tar.gz")), gzip(&tar(source, &staged, &name)?)?)?;
    fs::write(folder.join(format!("{name}.oci.tar")), image(source, &binary)?)?;
    fs::write(folder.join(format!("{name}.cdx.json")), sbom(source)?)?;
    let mut files = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    let mut sums = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        sums += &format!("{}  {name}\n", sha256(&fs::read(&file)?));
    }
    fs::write(folder.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    println!("{}", folder.display());
    Ok(folder)
}

/// Puts the binary, its man pages, completions, plans, references and documents into a folder beside the binary, as they are
/// installed in `/usr`.
fn stage(source: &Source, binary: &Path) -> Result<PathBuf> {
    let staged = binary.with_file_name("package");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    let folder = |path: &str| -> Result<PathBuf> {
        let folder = staged.join(path);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    fs::copy(binary, folder("bin")?.join("loadline"))?;
    command::run(Command::new(binary).arg("man").arg(folder("share/man/man1")?))?;
    for (shell, path, name) in [
        ("bash", "share/bash-completion/completions", "loadline"),
        ("zsh", "share/zsh/site-functions", "_loadline"),
        ("fish", "share/fish/vendor_completions.d", "loadline.fish"),
    ] {
        fs::write(folder(path)?.join(name), command::output(Command::new(binary).args(["completions", shell]))?)?;
    }
    for kind in ["plans", "references"] {
        let to = folder(&format!("share/loadline/{kind}"))?;
        for file in fs::read_dir(source.root.join(kind))? {
            let file = file?;
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    let documents = folder("share/doc/loadline")?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(source.root.join(name), documents.join(name))?;
    }
    Ok(staged)
}

/// The bill of materials in CycloneDX 1.5: crates with versions, licences, hashes, and what needs what; without crates that only
/// build scripts use, and without the directory of the checkout.
fn sbom(source: &Source) -> Result<Vec<u8>> {
    const FILE: &str = "loadline-sbom";
    let mut cyclonedx = command::cargo("cyclonedx")?;
    cyclonedx.current_dir(&source.root).args(["--quiet", "--manifest-path", "crates/cli/Cargo.toml"]);
    cyclonedx.args(["--format", "json", "--spec-version", "1.5", "--target", TRIPLE, "--features", FEATURES]);
    cyclonedx.args(["--no-build-deps", "--override-filename", FILE]);
    let made = command::run(cyclonedx.env("SOURCE_DATE_EPOCH", source.epoch.to_string()));
    // It writes one beside the manifest of every package.
    let bill = fs::read_to_string(source.root.join(format!("crates/cli/{FILE}.json")));
    let metadata = metadata(&source.root, &["--no-deps"])?;
    for manifest in metadata["packages"].as_array().into_iter().flatten().filter_map(|p| p["manifest_path"].as_str()) {
        let file = Path::new(manifest).with_file_name(format!("{FILE}.json"));
        if file.exists() {
            fs::remove_file(file)?;
        }
    }
    made?;
    Ok(bill?.replace(&source.root.display().to_string(), "/build/loadline").into_bytes())
}
