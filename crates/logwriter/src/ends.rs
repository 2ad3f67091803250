//! Where the log on a device ends, for devices that keep several copies of one.

use std::error::Error;

use crate::device::{LogDevice, Position};
use crate::error::RecoverError;
use crate::layout::Layout;
use crate::recover::recover;

/// Finds where the log on `device` ends; nothing if there is none. To be given to
/// [`device::open_mirror`](crate::device::open_mirror) and its like.
///
/// # Errors
/// If the device cannot be read, or holds a log of other sizes. A file that is missing is none: to
/// its copy's owner the log ends there, and another copy may have it.
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
    // A log that ends with a file does so in that file: of the next not even the header is there.
    let last = crate::Lsn(found.end.0 - 1);
    Ok(Some(Position { file: layout.file(last), offset: layout.offset(last) + 1 }))
}
