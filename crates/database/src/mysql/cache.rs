//! InnoDB's buffer pool: its size, and writing out what is changed in it.

use std::time::{Duration, Instant};

use super::wire::Connection;
use crate::error::TargetError;

/// Unit in which a private server's pool grows and shrinks, bytes. The pool may have at most 1,000 of them
/// or so.
pub(super) const CHUNK: u64 = 2 << 20;
/// Smallest pool that InnoDB takes with pages of 16 KiB is 5 MiB.
const SMALLEST: u64 = 3 * CHUNK;
/// A resize that takes longer is given up.
const RESIZE_AT_MOST: Duration = Duration::from_secs(60);

/// Size of a pool that is small against `data_bytes` of data: it holds a sixteenth. The rows are in the
/// primary key's tree, so what is above its leaves (a thousandth) fits in, and little else.
pub(super) fn small(data_bytes: u64) -> u64 {
    (data_bytes / 16 / CHUNK * CHUNK).max(SMALLEST)
}

/// Gives the pool `wanted` bytes, if it has another size, and returns its size then.
///
/// # Errors
/// When the server refuses, or does not get there.
pub(super) fn resize(c: &mut Connection, wanted: Option<u64>) -> Result<Option<u64>, TargetError> {
    const NOW: &str = "SELECT @@GLOBAL.innodb_buffer_pool_size";
    let now = c.number(NOW)?.map(|bytes| bytes as u64);
    let Some(wanted) = wanted.filter(|w| now != Some(*w)) else { return Ok(now) };
    c.query(&format!("SET GLOBAL innodb_buffer_pool_size = {wanted}"))?;
    let deadline = Instant::now() + RESIZE_AT_MOST;
    while c.number(NOW)?.map(|bytes| bytes as u64) != Some(wanted) {
        if Instant::now() >= deadline {
            return Err(TargetError::Statement(format!(
                "innodb_buffer_pool_size did not become {wanted} within {} s",
                RESIZE_AT_MOST.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Some(wanted))
}

/// Has InnoDB write out all changed pages. MariaDB has a command for it (10.11: in ordinary builds, and it
/// returns when it is done), which needs SUPER; MySQL has it in builds for debugging only.
///
/// # Errors
/// [`TargetError::Unsupported`] with what the server said.
pub(super) fn flush(c: &mut Connection) -> Result<(), TargetError> {
    c.query("SET GLOBAL innodb_log_checkpoint_now = ON").map(drop).map_err(|e| match e {
        TargetError::Statement(said) => TargetError::Unsupported(format!("no checkpoint can be asked for: {said}")),
        e => e,
    })
}

/// Why no checkpoint can be asked for, if that is so. Switching the command off does nothing, and takes the
/// same right.
///
/// # Errors
/// When the session is lost.
pub(super) fn cannot_flush(c: &mut Connection) -> Result<Option<String>, TargetError> {
    match c.query("SET GLOBAL innodb_log_checkpoint_now = OFF") {
        Ok(_) => Ok(None),
        Err(TargetError::Statement(said)) => Ok(Some(said)),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_pool_is_whole_chunks_and_not_too_small() {
        assert_eq!(small(128 << 20), 8 << 20);
        assert_eq!(small(1 << 20), 6 << 20);
        assert_eq!(small(1000 << 20) % CHUNK, 0);
    }
}
