//! Where tables of results come from that are no runs: files, standard input, published tables.

use std::io::Read;
use std::path::Path;

use loadline_run::references::find;

use crate::exit::Failure;

/// What the names of published tables begin with.
pub(crate) const PREFIX: &str = "reference:";

/// The text of what is no file and no run, with its name: `-` is standard input, `reference:ID` a published table.
pub(crate) fn text(source: &Path) -> Result<Option<(String, String)>, Failure> {
    let name = source.to_string_lossy();
    if name == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|e| Failure::usage(format!("standard input cannot be read: {e}")))?;
        return Ok(Some((decoded(bytes), "standard input".to_owned())));
    }
    let Some(id) = name.strip_prefix(PREFIX) else { return Ok(None) };
    let reference = find(id).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Some((reference.csv(), name.into_owned())))
}

/// The text of a file.
pub(crate) fn text_of_file(path: &Path) -> Result<String, Failure> {
    let wrong = |e: std::io::Error| Failure::usage(format!("{} cannot be read: {e}", path.display()));
    let text = decoded(std::fs::read(path).map_err(wrong)?);
    let binary = text.chars().take(4096).any(|c| c == '\0');
    if binary { Err(Failure::usage(format!("{} is no text", path.display()))) } else { Ok(text) }
}

/// Text of a file: UTF-8, UTF-16 with its mark, or else Latin-1.
fn decoded(bytes: Vec<u8>) -> String {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).skip(1).filter_map(|b| Some(of(b.try_into().ok()?))).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => return wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => return wide(u16::from_be_bytes),
        _ => {}
    }
    String::from_utf8(bytes).unwrap_or_else(|e| e.into_bytes().iter().map(|b| char::from(*b)).collect())
}
