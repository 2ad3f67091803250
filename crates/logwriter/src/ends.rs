//! The end of the log on a device, for replica sets.

use std::error::Error;

use crate::device::{LogDevice, Position};
use crate::error::RecoverError;
use crate::layout::Layout;
use crate::recover::recover;

/// Finds the end of the log on `device`; `None` if there is no log. For
/// [`device::open_mirror`](crate::device::open_mirror) and the other replica sets.
///
/// # Errors
/// The device cannot be read, or holds a log of other sizes. A missing file is no error: this copy ends there, and
/// another one may have the rest.
pub fn log_end(device: &dyn LogDevice) -> Result<Option<Position>, Box<dyn Error + Send + Sync>> {
    let mut records = match recover(device) {
        Err(RecoverError::Missing { file, .. }) => return Ok(Some(Position { file, offset: 0 })),
        records => records?,
    };
    for record in &mut records {
        record?;
    }
    let found = records.so_far();
    if found.log == 0 {
        return Ok(None);
    }
    let layout = Layout { block: device.block_bytes() as u64, file_bytes: device.file_bytes() };
    if found.end == found.start {
        return Ok(Some(Position { file: layout.file(found.start), offset: 0 }));
    }
    // If the log ends exactly with a file, the end is in that file: the next one has not even a header.
    let last = crate::Lsn(found.end.0 - 1);
    Ok(Some(Position { file: layout.file(last), offset: layout.offset(last) + 1 }))
}
