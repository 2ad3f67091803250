//! InnoDB's buffer pool: its size, and flushing its dirty pages.

use std::time::{Duration, Instant};

use super::knowledge::message;
use super::wire::Connection;
use crate::error::TargetError;

/// `innodb_buffer_pool_chunk_size` of a private server, bytes: the step in which its pool is resized. A pool
/// should have at most about 1,000 chunks.
pub(super) const CHUNK: u64 = 2 << 20;
/// Smallest pool, bytes: InnoDB needs 5 MiB with pages of 16 KiB.
const SMALLEST: u64 = 3 * CHUNK;
const RESIZE_TIMEOUT: Duration = Duration::from_secs(60);

/// Size of a pool that is small against `data_bytes` of data: it holds a sixteenth. The inner pages of the
/// primary key's tree (a thousandth of the data) fit in, and little else.
pub(super) fn small(data_bytes: u64) -> u64 {
    (data_bytes / 16 / CHUNK * CHUNK).max(SMALLEST)
}

fn size(c: &mut Connection) -> Result<Option<u64>, TargetError> {
    Ok(c.number("SELECT @@GLOBAL.innodb_buffer_pool_size")?.map(|bytes| bytes as u64))
}

/// Resizes the pool to `wanted` bytes, if given and different, and returns its size.
pub(super) fn resize(c: &mut Connection, wanted: Option<u64>) -> Result<Option<u64>, TargetError> {
    let now = size(c)?;
    // MySQL rounds.
    let near = |wanted: u64| now.is_some_and(|now| now.abs_diff(wanted) * 100 <= wanted);
    let Some(wanted) = wanted.filter(|wanted| !near(*wanted)) else { return Ok(now) };
    c.run(&format!("SET GLOBAL innodb_buffer_pool_size = {wanted}"))?;
    let deadline = Instant::now() + RESIZE_TIMEOUT;
    while !resized(c, wanted)? {
        if Instant::now() >= deadline {
            let (wanted, seconds) = (wanted.to_string(), RESIZE_TIMEOUT.as_secs().to_string());
            return Err(TargetError::Statement(message("not-resized", &[("bytes", &wanted), ("s", &seconds)])));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    size(c)
}

/// Whether the resize to `wanted` bytes is done. MariaDB then shows the size. MySQL shows it at once, and in the end that of
/// the chunks it has (8.0.33: 510 instead of 512), so its state and pages tell.
fn resized(c: &mut Connection, wanted: u64) -> Result<bool, TargetError> {
    if c.version.is_mariadb() {
        return Ok(size(c)? == Some(wanted));
    }
    let state = "Innodb_buffer_pool_resize_status";
    let status = c.shown("GLOBAL STATUS", [state, "Innodb_buffer_pool_pages_total", "Innodb_page_size"])?;
    let number = |name| status.get(name).and_then(|value| value.parse().ok()).unwrap_or(0.0);
    let state = status.get(state).map_or("", String::as_str);
    let idle = state.is_empty() || ["Completed", "Size did not"].iter().any(|end| state.starts_with(end));
    let bytes = number("Innodb_buffer_pool_pages_total") * number("Innodb_page_size");
    Ok(idle && (0.9..=1.1).contains(&(bytes / wanted as f64)))
}

/// Makes InnoDB flush all dirty pages. MariaDB's command needs SUPER (10.11: release builds have it, and it
/// returns when it is done); MySQL has it in debug builds only.
pub(super) fn flush(c: &mut Connection) -> Result<(), TargetError> {
    c.run("SET GLOBAL innodb_log_checkpoint_now = ON").map_err(|e| match e {
        TargetError::Server(said) => TargetError::Unsupported(format!("a checkpoint cannot be requested: {said}")),
        e => e,
    })
}

/// Why a checkpoint cannot be requested, if so. Setting the command to OFF does nothing and needs the same
/// privilege.
pub(super) fn flush_refusal(c: &mut Connection) -> Result<Option<String>, TargetError> {
    match c.run("SET GLOBAL innodb_log_checkpoint_now = OFF") {
        Ok(()) => Ok(None),
        Err(TargetError::Server(said)) => Ok(Some(said.text)),
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
