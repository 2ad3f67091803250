//! What is too long for a message, or may be: JSON, compressed, as text in parts that the hub takes.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest part: half of what a hub takes by default.
const MOST_PART: usize = 500_000;
/// What else is in a message with a part, bytes.
const AROUND: usize = 1024;
/// Most that is unpacked, bytes.
const MOST: u64 = 4 << 30;

/// Length of a part for a hub that takes messages of at most so many bytes.
#[must_use]
pub fn part_bytes(most_bytes: usize) -> usize {
    most_bytes.saturating_sub(AROUND).clamp(AROUND, MOST_PART)
}

/// `value` as text.
#[must_use]
pub(crate) fn pack(value: &impl Serialize) -> String {
    // Writing into memory cannot fail.
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let _ = packed.write_all(&serde_json::to_vec(value).unwrap_or_default());
    STANDARD.encode(packed.finish().unwrap_or_default())
}

/// The same in parts of this length.
#[must_use]
pub(crate) fn parts(value: &impl Serialize, bytes: usize) -> Vec<String> {
    let text = pack(value);
    text.as_bytes().chunks(bytes.max(1)).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Reads what [`pack`] made.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn unpack<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let packed = STANDARD.decode(text).map_err(|e| e.to_string())?;
    let mut json = Vec::new();
    ZlibDecoder::new(packed.as_slice()).take(MOST).read_to_end(&mut json).map_err(|e| e.to_string())?;
    serde_json::from_slice(&json).map_err(|e| e.to_string())
}
