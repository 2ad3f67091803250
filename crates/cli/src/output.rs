//! Writing to standard output and to files.

use std::io::Write;
use std::path::Path;

use crate::exit::Failure;
use crate::secrets;

/// Writes `bytes` to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output cannot be written: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes `bytes` to `path`, `-` meaning standard output. Exit code 1 would say that figures are wrong, refused or slower.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new("-") {
        return stdout(bytes);
    }
    let written = std::fs::File::create(path).and_then(|mut file| {
        file.write_all(bytes).inspect_err(|_| {
            // Half a report looks like one.
            let is_file = file.metadata().is_ok_and(|found| found.is_file());
            let _ = if is_file { std::fs::remove_file(path) } else { Ok(()) };
        })
    });
    written.map_err(|e| Failure::usage(format!("'{}' cannot be written: {e}", path.display())))
}

/// A line on standard error. Where nobody reads it (`2>&1 | head`), a run goes on without it.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", secrets::harmless(text));
}
