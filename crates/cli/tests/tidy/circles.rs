//! Circles of files: which file of a crate imports which, by its `use` lines and the paths in its code.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Breach, Tree, code};

/// A path of a module from the root of its crate: `["mysql", "wire"]`.
type Module = Vec<String>;

/// A file of a module: its path, the names of its items, and the paths that its code names, without comments and tests.
struct File<'t> {
    path: &'t str,
    defined: BTreeSet<String>,
    paths: Vec<Vec<String>>,
}

struct Modules<'t>(BTreeMap<Module, File<'t>>);

/// The circles of the crate in `folder`, each with what its files import from which other.
pub(crate) fn circles(tree: &Tree, folder: &str) -> Vec<Breach> {
    let src = format!("{folder}/src/");
    let in_src = tree.rust().filter_map(|(path, text)| Some((module_of(path.strip_prefix(&src)?), path, text)));
    let file = |path, text| {
        let code = code(text).collect::<Vec<_>>().join("\n");
        File { path, paths: paths(&code), defined: defined(&code) }
    };
    let modules = Modules(in_src.map(|(module, path, text)| (module, file(path, text))).collect());
    let mut imports: BTreeMap<&Module, BTreeSet<(Module, String)>> = BTreeMap::new();
    for (module, file) in &modules.0 {
        let found = file.paths.iter().filter_map(|path| modules.resolve(module, path, 0));
        // A module and those inside it belong together.
        let apart = found.filter(|(other, _)| !other.starts_with(module) && !module.starts_with(other));
        imports.insert(module, apart.collect());
    }
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = imports.keys().map(|m| (*m, reachable(m, &imports))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (module, from) in &reach {
        if !from.contains(module) || !seen.insert(*module) {
            continue;
        }
        let members: Vec<&Module> = from.iter().copied().filter(|m| reach[m].contains(module)).collect();
        seen.extend(&members);
        let file = |m: &Module| modules.0[m].path;
        let inside = |m: &&Module| {
            let within = imports[*m].iter().filter(|(other, _)| members.contains(&other));
            within.map(|(other, name)| format!("\n    {} -> {} for {name}", file(m), file(other))).collect::<String>()
        };
        let what = format!("import each other{}", members.iter().map(inside).collect::<String>());
        circles.push(Breach { paths: members.iter().map(|m| file(m).to_owned()).collect(), what });
    }
    circles
}

fn reachable<'m>(from: &'m Module, imports: &'m BTreeMap<&Module, BTreeSet<(Module, String)>>) -> BTreeSet<&'m Module> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        let next = imports.get(module).into_iter().flatten().map(|(other, _)| other);
        left.extend(next.filter(|other| reached.insert(*other)));
    }
    reached
}

/// `mysql/wire.rs` and `mysql/wire/mod.rs` -> `mysql::wire`.
fn module_of(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let parts = path.split('/').map(str::to_owned).collect::<Module>();
    if matches!(path, "lib" | "main" | "mod") { Vec::new() } else { parts }
}

impl Modules<'_> {
    /// The module that defines what `path` names in `module`, and the name; `None` if it is not of this crate.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<(Module, String)> {
        let (mut at, mut rest) = match path.split_first()? {
            (first, rest) if first == "crate" => (Vec::new(), rest),
            _ => (module.clone(), path),
        };
        while let Some((next, further)) = rest.split_first() {
            match next.as_str() {
                "self" => {}
                "super" => drop(at.pop()),
                _ if self.0.contains_key(&[&at[..], std::slice::from_ref(next)].concat()) => at.push(next.clone()),
                _ => break,
            }
            rest = further;
        }
        // It begins with the name of another crate.
        if rest.len() == path.len() {
            return None;
        }
        let name = rest.first().cloned().unwrap_or_else(|| "*".to_owned());
        let file = self.0.get(&at)?;
        if depth < 8 && name != "*" && !file.defined.contains(&name) {
            // Another file may define what this one passes on.
            for (last, before) in file.paths.iter().filter_map(|path| path.split_last()) {
                let passed_on = || self.resolve(&at, &[before, std::slice::from_ref(&name)].concat(), depth + 1);
                let found = (*last == name || last == "*").then(passed_on).flatten();
                if let Some(found) = found.filter(|(m, n)| *m != at && self.has(m, n)) {
                    return Some(found);
                }
            }
        }
        Some((at, name))
    }

    fn has(&self, module: &Module, name: &str) -> bool {
        self.0.get(module).is_some_and(|file| file.defined.contains(name))
    }
}

/// The names of the items of some code.
fn defined(code: &str) -> BTreeSet<String> {
    const KINDS: [&str; 9] = ["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "macro_rules!"];
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '!').filter(|word| !word.is_empty());
    let after = words.clone().skip(1);
    words.zip(after).filter(|(kind, _)| KINDS.contains(kind)).map(|(_, name)| name.to_owned()).collect()
}

/// The paths that some code names: those of its `use` lines, braces written out, without `as …`, and all others.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for (at, _) in ["crate::", "super::"].into_iter().flat_map(|start| code.match_indices(start)) {
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        write_out(&[], code[at..].split(|c| !is_path(c)).next().unwrap_or_default(), &mut out);
    }
    for statement in code.split(';') {
        let Some(at) = statement.find("use ").filter(|at| statement[..*at].ends_with(['\n', ' ', ')']) || *at == 0)
        else {
            continue;
        };
        let line_begins = statement[..at].rfind('\n').map_or(0, |n| n + 1);
        if matches!(statement[line_begins..at].trim(), "" | "pub" | "pub(crate)" | "pub(super)") {
            write_out(&[], &statement[at + 4..], &mut out);
        }
    }
    out
}

/// `a::{b, c::{d, e}}` -> `a::b`, `a::c::d`, `a::c::e`.
fn write_out(before: &[String], tree: &str, out: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).split("::").map(|part| part.trim().to_owned());
        let path = before.iter().cloned().chain(path.filter(|part| !part.is_empty() && part != "self"));
        out.push(path.collect());
        return;
    };
    let prefix = tree[..open].split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
    let prefix: Vec<String> = before.iter().cloned().chain(prefix).collect();
    let (mut depth, mut start) = (0, open + 1);
    for (i, c) in tree.char_indices().skip(open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || (c == '}' && depth == 0) {
            if !tree[start..i].trim().is_empty() {
                write_out(&prefix, &tree[start..i], out);
            }
            start = i + 1;
        }
    }
}
