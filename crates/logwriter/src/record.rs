//! Format of records in the log.
//!
//! ```text
//! 0      4      8          16       20      24        28     32          32+len
//! crc    len    lsn        log      epoch   session   kind   payload     zeros to 32
//! ```
//!
//! Little-endian. Every record starts at a multiple of 32 bytes, so a header never crosses a block or a file. The
//! checksum (CRC-32, IEEE) covers the payload, then the header without the checksum: a job computes most of it
//! before it takes a lock. It includes the position (`lsn`), the log's identity and the opening (`epoch`), so bytes
//! from an earlier use of the file, from another log, or from a group lost before an opening are never taken for
//! records.

use crate::Lsn;

/// Bytes of a record's header; records start at multiples of it.
pub(crate) const HEADER: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    /// Ends a transaction: everything that the session appended since its previous commit.
    Commit,
    /// Padding of a block or a file. The checksum covers only its header.
    Pad,
    /// The log was opened here; the payload is the end of the log before that.
    Open,
}

impl Kind {
    fn code(self) -> u32 {
        match self {
            Self::Data => 1,
            Self::Commit => 2,
            Self::Pad => 3,
            Self::Open => 4,
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        [Self::Data, Self::Commit, Self::Pad, Self::Open].into_iter().find(|kind| kind.code() == code)
    }
}

/// A record's header without its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) len: u32,
    pub(crate) lsn: Lsn,
    pub(crate) log: u32,
    pub(crate) epoch: u32,
    pub(crate) session: u32,
    pub(crate) kind: Kind,
}

/// The checksum of a payload given in pieces, to be finished by [`Header::encode`].
pub(crate) fn payload_sum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> crc32fast::Hasher {
    let mut sum = crc32fast::Hasher::new();
    for part in parts {
        sum.update(part);
    }
    sum
}

/// The space that a record of `len` payload bytes takes.
pub(crate) fn space(len: usize) -> u64 {
    (HEADER as u64).saturating_add(len as u64).next_multiple_of(HEADER as u64)
}

impl Header {
    /// The header's bytes, with the checksum of the payload (none for [`Kind::Pad`]) and itself.
    pub(crate) fn encode(&self, mut payload: crc32fast::Hasher) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[4..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        out[16..20].copy_from_slice(&self.log.to_le_bytes());
        out[20..24].copy_from_slice(&self.epoch.to_le_bytes());
        out[24..28].copy_from_slice(&self.session.to_le_bytes());
        out[28..32].copy_from_slice(&self.kind.code().to_le_bytes());
        payload.update(&out[4..]);
        out[..4].copy_from_slice(&payload.finalize().to_le_bytes());
        out
    }

    /// Parses a header and its checksum, which [`Header::holds`] verifies later. `None` if it cannot be a header.
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<(Self, u32)> {
        let u32_at = |at: usize| bytes[at..].first_chunk().map(|four| u32::from_le_bytes(*four));
        let header = Self {
            len: u32_at(4)?,
            lsn: Lsn(u64::from_le_bytes(*bytes[8..].first_chunk()?)),
            log: u32_at(16)?,
            epoch: u32_at(20)?,
            session: u32_at(24)?,
            kind: Kind::from_code(u32_at(28)?)?,
        };
        Some((header, u32_at(0)?))
    }

    /// Whether `sum` is the checksum of this header and `payload`.
    pub(crate) fn holds(&self, sum: u32, payload: &[u8]) -> bool {
        let covered = if self.kind == Kind::Pad { &[] } else { payload };
        let whole = self.encode(payload_sum([covered]));
        whole[..4] == sum.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_the_header_is_covered() {
        let header = Header { len: 0, lsn: Lsn(4096), log: 7, epoch: 3, session: 9, kind: Kind::Commit };
        let bytes = header.encode(payload_sum([]));
        for at in 0..HEADER {
            let mut bad = bytes;
            bad[at] ^= 0x40;
            let passes = Header::decode(&bad).is_some_and(|(read, sum)| read.holds(sum, b""));
            assert!(!passes, "byte {at}");
        }
    }
}
