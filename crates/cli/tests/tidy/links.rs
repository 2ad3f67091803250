//! Links between documents.

use std::collections::BTreeSet;

use crate::tree::Tree;

/// Links of the document at `path` that lead to no file of the tree, or to no heading of its target. A page of the book, which is
/// made from `docs/`, must not lead out of it.
pub(crate) fn dead(tree: &Tree, path: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let leads = |link: &str| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { Some(path.to_owned()) } else { joined(folder, file) };
        // Pages that are made with the book.
        let made = |target: &str| ["docs/reference/", "docs/workloads/"].iter().any(|of| target.starts_with(of));
        let there = |target: &String| {
            tree.sizes.contains_key(target) && (!in_book(path) || in_book(target)) || in_book(path) && made(target)
        };
        let headed = |target: &String| {
            heading.is_empty() || tree.files.get(target).is_some_and(|text| headings(text).contains(heading))
        };
        target.is_some_and(|target| there(&target) && headed(&target))
    };
    let relative = |link: &&str| !link.contains("://") && !link.starts_with("mailto:");
    links(&tree.files[path]).into_iter().filter(relative).filter(|link| !leads(link)).map(str::to_owned).collect()
}

fn in_book(path: &str) -> bool {
    path.starts_with("docs/")
}

/// `docs/guide` and `../live.md` -> `docs/live.md`; `None` outside of the tree.
fn joined(folder: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Lines of a document that are not those of a block of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Where `[text](target)` leads.
fn links(text: &str) -> Vec<&str> {
    let of_line = |line| str::split(line, "](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    prose(text).flat_map(of_line).filter(|link| !link.is_empty()).collect()
}

/// Anchors of headings, as GitHub and mdBook make them.
fn headings(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| line.starts_with('#').then(|| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    let anchor = |line: String| line.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect();
    prose(text).filter_map(heading).map(anchor).collect()
}
