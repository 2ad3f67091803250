//! Recovery: reads every record up to the first incomplete one.
//!
//! A commit is reported durable only when all bytes before its end are durable, so everything reported durable is
//! read back. A group that a crash cut off is read up to its first torn record. Every later recovery finds the same
//! end: nothing is written over it, and the next opening writes, at the next block, an opening record that names it.

use crate::Lsn;
use crate::device::LogDevice;
use crate::error::RecoverError;
use crate::layout::{FileHeader, Layout};
use crate::record::{HEADER, Header, Kind, space};

/// Bytes per read.
const WINDOW: usize = 1 << 20;

/// A record or a commit that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Position of its first byte.
    pub lsn: Lsn,
    /// The opening of the log that wrote it, from 1.
    pub epoch: u32,
    /// The session of that opening. What a session appends between two commits is one transaction.
    pub session: u32,
    /// Redo, as it was appended; `None`: the session committed its transaction.
    pub redo: Option<Vec<u8>>,
}

/// The end and the contents of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The start of the oldest file.
    pub start: Lsn,
    /// The end of the last whole record.
    pub end: Lsn,
    /// The last opening on the device; 0 if the log is new.
    pub epoch: u32,
    /// Commits of all openings that are still in the log.
    pub commits: u64,
    /// The log's identity, a random number drawn when it was made; 0 if it is new.
    pub log: u32,
}

/// Reads the log on `device` from its oldest file.
///
/// # Errors
/// The device cannot be read, the log was made with other sizes, or a file is missing.
pub fn recover(device: &dyn LogDevice) -> Result<Records<'_>, RecoverError> {
    let layout = Layout { block: device.block_bytes() as u64, file_bytes: device.file_bytes() };
    if let Some(what) = layout.wrong() {
        return Err(RecoverError::Sizes(what));
    }
    let mut reader = Reader { device, window: Vec::new(), file: 0, offset: 0 };
    let mut numbers = device.files()?;
    numbers.sort_unstable();
    let mut found = Vec::new();
    for number in numbers {
        let header = reader.file_header(number)?.filter(|header| header.file == number && layout.can_have(number));
        found.extend(header);
    }
    let log = found.iter().max_by_key(|header| (header.epoch, header.file)).map_or(0, |header| header.log);
    found.retain(|header| header.log == log);
    if let Some(other) = found.iter().find(|header| header.layout != layout) {
        return Err(RecoverError::OtherSizes {
            device: device.describe(),
            file_bytes: other.layout.file_bytes,
            block: other.layout.block,
            wanted_file_bytes: layout.file_bytes,
            wanted_block: layout.block,
        });
    }
    for pair in found.windows(2) {
        if pair[1].file != pair[0].file + 1 {
            return Err(RecoverError::Missing { file: pair[0].file + 1, device: device.describe() });
        }
    }
    let first = found.first().copied();
    let start = first.map_or(Lsn(0), |header| layout.start(header.file));
    let mut so_far = Recovered { start, end: start, log, ..Recovered::default() };
    // The first file may start with the opening that its header names.
    so_far.epoch = first.map_or(0, |header| header.epoch.saturating_sub(1));
    let first_epoch = first.map(|header| header.epoch);
    Ok(Records { reader, layout, files: found, so_far, first_epoch, over: first.is_none() })
}

/// The records of a log, oldest first. Ends after an error.
pub struct Records<'d> {
    reader: Reader<'d>,
    layout: Layout,
    files: Vec<FileHeader>,
    so_far: Recovered,
    /// The epoch of the first file, until the first record is read.
    first_epoch: Option<u32>,
    over: bool,
}

impl Records<'_> {
    /// End and contents of the log as read so far; complete once the iterator has ended.
    pub fn so_far(&self) -> Recovered {
        self.so_far
    }

    fn step(&mut self) -> Result<Option<Record>, RecoverError> {
        loop {
            let at = self.so_far.end;
            let found = match self.record_at(at)? {
                // An opening after a group that was cut off is at the next block.
                None => self.record_at(self.layout.block_up(at))?.filter(|(header, _)| header.kind == Kind::Open),
                found => found,
            };
            let Some((header, payload)) = found else { return Ok(None) };
            if header.kind == Kind::Open {
                let first = self.first_epoch.take();
                let names_this_end = payload.first_chunk().is_some_and(|end| u64::from_le_bytes(*end) == at.0);
                // The first opening of the oldest file names an end in the file before it.
                if !(first.is_some() || names_this_end) {
                    return Ok(None);
                }
                self.so_far.epoch = header.epoch;
                self.so_far.end = Lsn(header.lsn.0 + space(payload.len()));
                continue;
            }
            if let Some(first) = self.first_epoch.take() {
                self.so_far.epoch = first;
            }
            self.so_far.end = Lsn(at.0 + space(header.len as usize));
            let redo = match header.kind {
                Kind::Pad | Kind::Open => continue,
                Kind::Commit => None,
                Kind::Data => Some(payload),
            };
            self.so_far.commits += u64::from(redo.is_none());
            return Ok(Some(Record { lsn: at, epoch: header.epoch, session: header.session, redo }));
        }
    }

    /// The complete record of this log at `at`, if there is one. It belongs to the current opening; an opening
    /// record, to a later one.
    fn record_at(&mut self, at: Lsn) -> Result<Option<(Header, Vec<u8>)>, RecoverError> {
        let file = self.layout.file(at);
        let Some(in_file) = self.files.iter().find(|header| header.file == file) else { return Ok(None) };
        let file_epoch = in_file.epoch;
        let offset = self.layout.offset(at);
        let Some(bytes) = self.reader.bytes(file, offset, HEADER)? else { return Ok(None) };
        let Some((header, sum)) = bytes.first_chunk().and_then(Header::decode) else { return Ok(None) };
        let size = space(header.len as usize);
        if header.lsn != at || header.log != self.so_far.log || size > self.layout.left_in_file(at) {
            return Ok(None);
        }
        let epoch = self.so_far.epoch;
        let fits = match (header.kind, self.first_epoch) {
            (Kind::Open, _) => header.epoch > epoch,
            (_, Some(first)) => header.epoch == first,
            // If an earlier opening started the file, its start belongs to that opening.
            (_, None) => header.epoch == epoch && (offset != self.layout.block || file_epoch == epoch),
        };
        let payload = match (fits, header.kind) {
            (false, _) => return Ok(None),
            (true, Kind::Pad) => &[],
            (true, _) => match self.reader.bytes(file, offset + HEADER as u64, header.len as usize)? {
                Some(payload) => payload,
                None => return Ok(None),
            },
        };
        Ok(header.holds(sum, payload).then(|| (header, payload.to_vec())))
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, RecoverError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let step = self.step();
        self.over = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}

/// Reads a device in large pieces.
struct Reader<'d> {
    device: &'d dyn LogDevice,
    window: Vec<u8>,
    file: u64,
    offset: u64,
}

impl Reader<'_> {
    fn file_header(&mut self, file: u64) -> Result<Option<FileHeader>, RecoverError> {
        let mut bytes = [0; FileHeader::BYTES];
        let read = self.read(file, 0, &mut bytes)?;
        Ok(FileHeader::decode(&bytes[..read]))
    }

    /// Fills `into` as far as the file goes.
    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, RecoverError> {
        let mut read = 0;
        while read < into.len() {
            match self.device.read(file, offset + read as u64, &mut into[read..])? {
                0 => break,
                more => read += more,
            }
        }
        Ok(read)
    }

    /// `len` bytes at `offset` of a file; `None` if the file ends before.
    fn bytes(&mut self, file: u64, offset: u64, len: usize) -> Result<Option<&[u8]>, RecoverError> {
        let inside = |this: &Self| {
            let from = if this.file == file { offset.checked_sub(this.offset)? } else { return None };
            let from = usize::try_from(from).ok()?;
            (from.checked_add(len)? <= this.window.len()).then_some(from)
        };
        if inside(self).is_none() {
            let block = self.device.block_bytes() as u64;
            let begin = offset / block * block;
            let want = usize::try_from(offset - begin).unwrap_or(0).saturating_add(len).max(WINDOW);
            let left = usize::try_from(self.device.file_bytes().saturating_sub(begin)).unwrap_or(usize::MAX);
            let mut window = std::mem::take(&mut self.window);
            window.resize(want.min(left), 0);
            let read = self.read(file, begin, &mut window)?;
            window.truncate(read);
            (self.window, self.file, self.offset) = (window, file, begin);
        }
        Ok(inside(self).map(|from| &self.window[from..from + len]))
    }
}
