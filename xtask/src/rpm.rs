//! The package for distributions with RPM: the files of the Debian package, at the places of Fedora.

use std::collections::BTreeSet;

use ::rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder};

use crate::Result;
use crate::archive::File;
use crate::build::Source;

/// The file name of the package.
pub(crate) fn name(source: &Source) -> String {
    format!("loadline-{}-1.x86_64.rpm", source.version)
}

/// The package, unsigned. It requires nothing: the binary is static.
pub(crate) fn rpm(source: &Source, files: &[File]) -> Result<Vec<u8>> {
    // gzip: every version of RPM reads it.
    let reproducible =
        BuildConfig::v4().source_date(u32::try_from(source.epoch)?).compression(CompressionWithLevel::Gzip(9));
    let summary = "Finds the load line of a database platform";
    let mut package = PackageBuilder::new("loadline", &source.version, "MIT OR Apache-2.0", "x86_64", summary);
    package.using_config(reproducible).release("1").url("https://github.com/loadline/loadline");
    package.vendor("The loadline developers").recommends(Dependency::any("ca-certificates"));
    package.description(
        "How fast it commits, loads, reads, writes and computes, how that grows with\n\
         load, how close it is to what the hardware allows, and where it goes under.",
    );
    let mut folders = BTreeSet::new();
    for file in files {
        let path = format!("/{}", file.path.replace("/zsh/vendor-completions/", "/zsh/site-functions/"));
        // Folders of our own go with the package.
        let ours = path.match_indices('/').map(|(end, _)| &path[..end]).filter(|folder| folder.contains("/loadline"));
        folders.extend(ours.map(str::to_owned));
        let options = FileOptions::new(&path).permissions(u16::try_from(file.mode)?);
        let doc = path.starts_with("/usr/share/doc/") || path.starts_with("/usr/share/man/");
        package.with_file_contents(file.bytes.clone(), if doc { options.doc() } else { options })?;
    }
    for folder in folders {
        package.with_dir_entry(FileOptions::dir(folder).permissions(0o755))?;
    }
    let mut bytes = Vec::new();
    package.build()?.write(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_make_the_same_package() {
        let source = Source {
            root: "/nowhere".into(),
            target: "/nowhere".into(),
            version: "1.2.3".to_owned(),
            rust_version: String::new(),
            epoch: 1_700_000_000,
        };
        let program = File { mode: 0o755, ..File::data("usr/bin/loadline", vec![7; 100_000]) };
        let others = [
            "usr/share/zsh/vendor-completions/_loadline",
            "usr/share/loadline/plans/a.toml",
            "usr/share/man/man1/a.1.gz",
        ];
        let files = [vec![program], others.map(|path| File::data(path, path)).into()].concat();
        let bytes = rpm(&source, &files).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!(rpm(&source, &files).unwrap(), bytes);

        let package = ::rpm::Package::parse(&mut &bytes[..]).unwrap();
        package.verify_digests().unwrap();
        let entries = package.metadata.get_file_entries().unwrap();
        let found = entries.iter().map(|e| (e.path().display().to_string(), e.mode().raw_mode()));
        let expected = [
            ("/usr/bin/loadline", 0o100_755),
            ("/usr/share/loadline", 0o40_755),
            ("/usr/share/loadline/plans", 0o40_755),
            ("/usr/share/loadline/plans/a.toml", 0o100_644),
            ("/usr/share/man/man1/a.1.gz", 0o100_644),
            ("/usr/share/zsh/site-functions/_loadline", 0o100_644),
        ];
        let expected = expected.map(|(path, mode)| (path.to_owned(), mode));
        assert_eq!(found.collect::<BTreeSet<_>>(), expected.into_iter().collect());
        let requires = package.metadata.get_requires().unwrap();
        assert!(requires.iter().all(|r| r.name.starts_with("rpmlib(")), "{requires:?}");
    }
}
