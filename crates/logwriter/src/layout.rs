//! Maps positions of the log to files and offsets.
//!
//! Each log file starts with a header block. The rest of all files, concatenated, is the log; a position ([`Lsn`])
//! counts its bytes.

use crate::Lsn;

const MAGIC: &[u8; 8] = b"LLREDO01";
const USED: usize = 56;

/// The largest log file: 1 TiB.
const MAX_FILE: u64 = 1 << 40;

/// The fixed sizes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) block: u64,
    pub(crate) file_bytes: u64,
}

impl Layout {
    /// Fault of the sizes, if any.
    pub(crate) fn wrong(self) -> Option<String> {
        let Self { block, file_bytes } = self;
        if !block.is_power_of_two() || !(512..=65536).contains(&block) {
            Some(format!("its device has blocks of {block} bytes; the size must be a power of two from 512 to 65536"))
        } else if !file_bytes.is_multiple_of(block) || file_bytes < 4 * block || file_bytes > MAX_FILE {
            Some(format!(
                "its device has files of {file_bytes} bytes; the size must be a multiple of its block ({block} bytes), \
                 at least 4 blocks and at most {MAX_FILE} bytes"
            ))
        } else {
            None
        }
    }

    /// Whether a file may have this number: positions in it do not overflow.
    pub(crate) fn can_have(self, file: u64) -> bool {
        file.checked_add(2).and_then(|files| files.checked_mul(self.file_bytes)).is_some_and(|end| end < 1 << 62)
    }

    /// Bytes of the log that one file holds.
    pub(crate) fn per_file(self) -> u64 {
        self.file_bytes - self.block
    }

    pub(crate) fn file(self, lsn: Lsn) -> u64 {
        lsn.0 / self.per_file()
    }

    /// The offset of a position in its file.
    pub(crate) fn offset(self, lsn: Lsn) -> u64 {
        self.block + lsn.0 % self.per_file()
    }

    /// The first position of a file.
    pub(crate) fn start(self, file: u64) -> Lsn {
        Lsn(file.saturating_mul(self.per_file()))
    }

    /// Bytes from a position to the end of its file.
    pub(crate) fn left_in_file(self, lsn: Lsn) -> u64 {
        self.per_file() - lsn.0 % self.per_file()
    }

    /// Rounds a position up to the start of a block.
    pub(crate) fn block_up(self, lsn: Lsn) -> Lsn {
        Lsn(lsn.0.next_multiple_of(self.block))
    }
}

/// The first block of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) layout: Layout,
    pub(crate) file: u64,
    pub(crate) log: u32,
    /// Of the opening that started the file.
    pub(crate) epoch: u32,
}

impl FileHeader {
    /// Bytes that [`FileHeader::decode`] needs.
    pub(crate) const BYTES: usize = 512;

    /// Fills the file's first block.
    pub(crate) fn encode(&self, block: &mut [u8]) {
        block.fill(0);
        let Some(out) = block.get_mut(..USED) else { return };
        out[..8].copy_from_slice(MAGIC);
        out[16..24].copy_from_slice(&self.layout.block.to_le_bytes());
        out[24..32].copy_from_slice(&self.layout.file_bytes.to_le_bytes());
        out[32..40].copy_from_slice(&self.file.to_le_bytes());
        out[40..44].copy_from_slice(&self.log.to_le_bytes());
        out[44..48].copy_from_slice(&self.epoch.to_le_bytes());
        let sum = crc32fast::hash(&out[16..]);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
    }

    /// Parses the first bytes of a file; `None` if it is not a log file.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..USED)?;
        let u64_at = |at: usize| bytes[at..].first_chunk().map(|eight| u64::from_le_bytes(*eight));
        let u32_at = |at: usize| bytes[at..].first_chunk().map(|four| u32::from_le_bytes(*four));
        (bytes.starts_with(MAGIC) && u32_at(8)? == crc32fast::hash(&bytes[16..])).then_some(())?;
        Some(Self {
            layout: Layout { block: u64_at(16)?, file_bytes: u64_at(24)? },
            file: u64_at(32)?,
            log: u32_at(40)?,
            epoch: u32_at(44)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { block: 512, file_bytes: 2048 };

    #[test]
    fn positions_continue_from_file_to_file() {
        assert_eq!((LAYOUT.file(Lsn(0)), LAYOUT.offset(Lsn(0))), (0, 512));
        assert_eq!((LAYOUT.file(Lsn(1535)), LAYOUT.offset(Lsn(1535))), (0, 2047));
        assert_eq!((LAYOUT.file(Lsn(1536)), LAYOUT.offset(Lsn(1536))), (1, 512));
        assert_eq!(LAYOUT.left_in_file(Lsn(1500)), 36);
        assert_eq!(LAYOUT.start(3), Lsn(4608));
    }

    #[test]
    fn a_file_header_reads_back_and_any_changed_bit_is_detected() {
        let header = FileHeader { layout: LAYOUT, file: 5, log: 77, epoch: 2 };
        let mut block = [0xAA; 512];
        header.encode(&mut block);
        assert_eq!(FileHeader::decode(&block), Some(header));
        for at in (0..12).chain(16..USED) {
            let mut bad = block;
            bad[at] ^= 1;
            assert_ne!(FileHeader::decode(&bad), Some(header), "byte {at}");
        }
    }
}
