//! The Debian package: an `ar` archive of version, control and data, see deb(5).

use crate::Result;
use crate::archive::{File, gzip, tar};
use crate::build::Source;

/// The file name of the package.
pub(crate) fn name(source: &Source) -> String {
    format!("loadline_{}_amd64.deb", source.version)
}

/// The package. It depends on nothing: the binary is static.
pub(crate) fn deb(source: &Source, files: &[File]) -> Result<Vec<u8>> {
    let kib: usize = files.iter().map(|f| f.bytes.len().div_ceil(1024)).sum();
    let control = format!(
        "Package: loadline\nVersion: {}\nArchitecture: amd64\nMaintainer: The loadline developers <loadline@users.noreply.github.com>\nInstalled-Size: {kib}\n\
         Recommends: ca-certificates\nSection: database\nPriority: optional\n\
         Homepage: https://github.com/loadline/loadline\n\
         Description: finds the load line of a database platform\n \
         How fast it commits, loads, reads, writes and computes, how that grows with\n \
         load, how close it is to what the hardware allows, and where it goes under.\n",
        source.version
    );
    let control = gzip(&tar(&[File::data("control", control)], ".", source.epoch)?)?;
    let data = gzip(&tar(files, ".", source.epoch)?)?;
    let mut package = ar::Builder::new(Vec::new());
    for (name, bytes) in
        [("debian-binary", &b"2.0\n"[..]), ("control.tar.gz", &control[..]), ("data.tar.gz", &data[..])]
    {
        let mut header = ar::Header::new(name.into(), u64::try_from(bytes.len())?);
        header.set_mode(0o100_644);
        header.set_mtime(source.epoch);
        package.append(&header, bytes)?;
    }
    Ok(package.into_inner()?)
}
