//! The wire format between a log and its standby, which are of one process.
//!
//! ```text
//! 0     1      2       6   14   18
//! kind  flags  length  at  crc  body of that length
//! ```
//!
//! Little-endian. The checksum (CRC-32) covers the header before it and the body.

use std::io::{self, Read, Write};

const HEADER: usize = 18;
/// The longest body, bytes.
const MAX_BODY: usize = 64 << 20;

/// Flag of a sync: answer when the blocks have been received.
pub(super) const ON_RECEIPT: u8 = 1;

/// Kinds of frames: requests, then answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Open = 1,
    /// Has no answer.
    Write,
    /// Make everything before it durable.
    Sync,
    WriteSync,
    Done = 100,
    /// The body is the reason.
    Failed,
}

impl Kind {
    fn from_code(code: u8) -> Option<Kind> {
        use Kind::{Done, Failed, Open, Sync, Write, WriteSync};
        [Open, Write, Sync, WriteSync, Done, Failed].into_iter().find(|kind| *kind as u8 == code)
    }
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) length: usize,
    /// Number of the file to open, or offset of the blocks in it.
    pub(super) at: u64,
    pub(super) sum: u32,
}

impl Head {
    pub(super) fn new(kind: Kind) -> Head {
        Head { kind, flags: 0, length: 0, at: 0, sum: 0 }
    }

    fn encode(&self, body: &[u8]) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0] = self.kind as u8;
        out[1] = self.flags;
        // At most `MAX_BODY`: `send` checks it.
        out[2..6].copy_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
        out[6..14].copy_from_slice(&self.at.to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&out[..14]);
        sum.update(body);
        out[14..].copy_from_slice(&sum.finalize().to_le_bytes());
        out
    }

    /// Reads a header. [`Head::check`] verifies its checksum later, together with the body.
    pub(super) fn receive(from: &mut impl Read) -> io::Result<Head> {
        let mut bytes = [0; HEADER];
        from.read_exact(&mut bytes)?;
        let u32_at = |at: usize| bytes[at..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
        let at = bytes[6..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
        let bad = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let Some(kind) = Kind::from_code(bytes[0]) else { return bad(format!("unknown frame kind {}", bytes[0])) };
        let length = u32_at(2) as usize;
        if length > MAX_BODY {
            return bad(format!("a frame of {length} bytes; the limit is {MAX_BODY}"));
        }
        Ok(Head { kind, flags: bytes[1], length, at, sum: u32_at(14) })
    }

    pub(super) fn check(&self, body: &[u8]) -> io::Result<()> {
        if self.encode(body)[14..] == self.sum.to_le_bytes() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a frame was damaged in transit: its checksum is wrong"))
    }

    /// Reads the body and verifies the checksum.
    pub(super) fn body(&self, from: &mut impl Read) -> io::Result<Vec<u8>> {
        let mut body = vec![0; self.length];
        from.read_exact(&mut body)?;
        self.check(&body)?;
        Ok(body)
    }

    /// Sends the frame with `body` in one write; `memory` is a scratch buffer.
    pub(super) fn send(&self, body: &[u8], memory: &mut Vec<u8>, to: &mut impl Write) -> io::Result<()> {
        if body.len() > MAX_BODY {
            let why = format!("a frame of {} bytes; the limit is {MAX_BODY}", body.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        memory.clear();
        memory.extend_from_slice(&self.encode(body));
        memory.extend_from_slice(body);
        to.write_all(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_back_and_any_changed_bit_is_detected() {
        let head = Head { at: 4096, flags: ON_RECEIPT, ..Head::new(Kind::WriteSync) };
        let mut wire = Vec::new();
        head.send(b"blocks", &mut Vec::new(), &mut wire).unwrap();
        let read = |wire: &[u8]| {
            let mut from = wire;
            let head = Head::receive(&mut from)?;
            Ok::<_, io::Error>((head, head.body(&mut from)?))
        };
        let (found, body) = read(&wire).unwrap();
        assert_eq!((found.kind, found.at, found.flags), (Kind::WriteSync, 4096, ON_RECEIPT));
        assert_eq!(body, b"blocks");
        for at in 0..wire.len() {
            let mut bad = wire.clone();
            bad[at] ^= 1;
            assert!(read(&bad).is_err(), "byte {at}");
            assert!(read(&wire[..at]).is_err(), "cut at {at}");
        }
        let mut long = wire.clone();
        long[2..6].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read(&long).unwrap_err().to_string().contains("the limit is"));
        let send = |bytes| head.send(&vec![0; bytes], &mut Vec::new(), &mut io::sink());
        assert_eq!(send(MAX_BODY + 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
