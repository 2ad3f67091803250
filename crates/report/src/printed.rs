//! On which page of a printed report an anchor is: read from the PDF that a browser of the Chromium family wrote.
//!
//! Such a PDF has its objects as plain text; only streams are packed. Anchors that something links to are in the dictionary of
//! named destinations (`/key-figures [8 0 R /XYZ 6 580 0]`), and pages in the tree of pages (`/Kids [2 0 R 8 0 R]`); ISO
//! 32000-1, 7.7.3.2 and 12.3.2.3. What this finds is held against the PDF's own count of pages.

use std::collections::BTreeMap;

/// Pages of a printed report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintedPages {
    /// Number of pages.
    pub count: u32,
    /// Page of each anchor, from 1.
    pub of: BTreeMap<String, u32>,
}

/// Reads the pages of `pdf`; `None` if it is laid out in another way.
#[must_use]
pub fn printed_pages(pdf: &[u8]) -> Option<PrintedPages> {
    let objects = objects(pdf);
    let named = |text: &str, kind: &str| text.split_once("/Type /").is_some_and(|(_, t)| word(t) == kind);
    let root = objects.iter().find(|(_, text)| named(text, "Pages") && !text.contains("/Parent "))?.0;
    let mut leaves = Vec::new();
    walk(&objects, *root, &mut leaves, 0);
    let count: u32 = word(objects.get(root)?.split_once("/Count ")?.1).parse().ok()?;
    if count == 0 || leaves.len() != count as usize {
        return None;
    }
    let page_of = |object: u32| leaves.iter().position(|leaf| *leaf == object).map(|at| at as u32 + 1);
    let mut of = BTreeMap::new();
    for text in objects.values().filter(|text| text.contains("/XYZ ")) {
        for (before, rest) in text.match_indices(" [").map(|(at, _)| (&text[..at], &text[at + 2..])) {
            let Some(name) = before.rsplit('/').next().filter(|n| !n.is_empty() && !n.contains([' ', '\n'])) else {
                continue;
            };
            if let Some(page) = word(rest).parse().ok().and_then(page_of) {
                of.insert(unescaped(name), page);
            }
        }
    }
    Some(PrintedPages { count, of })
}

/// Texts of the objects by number, without streams.
fn objects(pdf: &[u8]) -> BTreeMap<u32, String> {
    let text = String::from_utf8_lossy(pdf);
    let mut out = BTreeMap::new();
    for part in text.split("\nendobj") {
        let Some((head, body)) = part.rsplit_once(" 0 obj") else { continue };
        let number = head.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        if let Ok(number) = number.parse() {
            out.insert(number, body.split(" stream").next().unwrap_or_default().to_owned());
        }
    }
    out
}

/// Adds the pages below `node` in order.
fn walk(objects: &BTreeMap<u32, String>, node: u32, leaves: &mut Vec<u32>, depth: u32) {
    /// A tree of pages is a few levels deep; a deeper one is a circle.
    const DEEPEST: u32 = 32;
    let Some(text) = objects.get(&node).filter(|_| depth < DEEPEST) else { return };
    match text.split_once("/Kids [").and_then(|(_, kids)| kids.split_once(']')) {
        Some((kids, _)) => {
            kids.split(" 0 R")
                .filter_map(|kid| kid.trim().parse().ok())
                .for_each(|kid| walk(objects, kid, leaves, depth + 1));
        }
        None => leaves.push(node),
    }
}

/// Characters up to the first that ends a name or number.
fn word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || "/<>[]()".contains(c)).next().unwrap_or_default()
}

/// A PDF name without its escapes `#xx`.
fn unescaped(name: &str) -> String {
    let mut parts = name.split('#');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                out.extend(part[2..].bytes());
            }
            None => out.extend(part.bytes()),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PDF: &str = "%PDF-1.4\n7 0 obj\n<</Filter /FlateDecode\n/Length 3>> stream\nx [8 0 R /XYZ \nendstream\nendobj\n\
        2 0 obj\n<</Type /Page\n/Annots [5 0 R]\n/Parent 13 0 R>>\nendobj\n8 0 obj\n<</Type /Page\n/Parent 14 0 R>>\nendobj\n\
        14 0 obj\n<</Type /Pages\n/Count 1\n/Kids [8 0 R]\n/Parent 13 0 R>>\nendobj\n\
        13 0 obj\n<</Type /Pages\n/Count 2\n/Kids [2 0 R 14 0 R]>>\nendobj\n\
        15 0 obj\n<</a [8 0 R /XYZ 6 580.7 0]\n/key#2dfigures [2 0 R /XYZ 6 580.7 0]>>\nendobj\n";

    #[test]
    fn anchors_have_the_pages_of_the_tree() {
        let of = [("a".to_owned(), 2), ("key-figures".to_owned(), 1)].into();
        assert_eq!(printed_pages(PDF.as_bytes()), Some(PrintedPages { count: 2, of }));
    }

    #[test]
    fn another_layout_gives_nothing() {
        assert_eq!(printed_pages(b"%PDF-1.7\n1 0 obj\n<</Type /ObjStm>> stream\n"), None);
        assert_eq!(printed_pages(PDF.replace("/Count 2", "/Count 3").as_bytes()), None);
        let circle = PDF.replace("/Kids [8 0 R]", "/Kids [13 0 R]");
        assert_eq!(printed_pages(circle.as_bytes()), None);
        for cut in 0..PDF.len() {
            let _ = printed_pages(&PDF.as_bytes()[..cut]);
        }
    }
}
