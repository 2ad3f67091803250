//! A logo for a report, as a data URI.

use std::path::Path;

use base64::Engine as _;

use crate::exit::Failure;

/// Largest file: it is part of every report.
const MOST_BYTES: u64 = 1 << 20;

/// The image in `path`, checked to be PNG, JPEG or SVG by its content. As an image, an SVG runs no script and loads nothing.
pub(crate) fn data_uri(path: &Path) -> Result<String, Failure> {
    let bad = |what: String| Failure::usage(format!("--logo {}: {what}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| bad(format!("it cannot be read: {e}")))?;
    if !meta.is_file() {
        return Err(bad("it is not a file".to_owned()));
    }
    if meta.len() > MOST_BYTES {
        return Err(bad(format!("it has {} bytes, and a logo may have {MOST_BYTES}: make it smaller", meta.len())));
    }
    let bytes = std::fs::read(path).map_err(|e| bad(format!("it cannot be read: {e}")))?;
    let Some(kind) = kind(&bytes) else {
        return Err(bad("it is neither PNG nor JPEG nor SVG, by its content".to_owned()));
    };
    Ok(format!("data:image/{kind};base64,{}", base64::engine::general_purpose::STANDARD.encode(&bytes)))
}

/// Subtype of the image's media type.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16) == Some(b"IHDR") {
        return Some("png");
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return Some("jpeg");
    }
    let mut text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}').trim_start();
    // What may stand before the root element: declaration, comments, document type.
    while let Some(end) = [("<?", "?>"), ("<!--", "-->"), ("<!DOCTYPE", ">")]
        .into_iter()
        .find_map(|(open, close)| text.strip_prefix(open)?.split_once(close).map(|(_, rest)| rest.trim_start()))
    {
        text = end;
    }
    let root = text.strip_prefix("<svg")?;
    root.starts_with(|c: char| c.is_whitespace() || c == '>' || c == '/').then_some("svg+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_content() {
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0"), Some("png"));
        assert_eq!(kind(b"\xff\xd8\xff\xe0"), Some("jpeg"));
        assert_eq!(kind(b"<?xml version='1.0'?>\n<!-- a -->\n<!DOCTYPE svg>\n<svg xmlns='x'></svg>"), Some("svg+xml"));
        for other in [&b"<html><svg></svg></html>"[..], b"GIF89a", b"", b"\x89PNG\r\n\x1a\n", b"<svgx>", b"<!-- <svg>"]
        {
            assert_eq!(kind(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
