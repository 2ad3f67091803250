//! Dependencies that a crate names and does not use. What `deny.toml` forbids is checked by `cargo deny` (`.ci/nightly-lints`).

use crate::tree::{Tree, code, has_word, is_test};

/// Dependencies that the crate in `folder` names in its Cargo.toml and in none of its files; one that only tests use belongs to
/// `dev-dependencies`.
pub(crate) fn unused(tree: &Tree, folder: &str) -> Vec<String> {
    let manifest: toml::Table = tree.files[&format!("{folder}/Cargo.toml")].parse().expect("Cargo.toml is TOML");
    let within = |place: &str| {
        let place = format!("{folder}/{place}");
        tree.rust().filter(move |(path, _)| path.starts_with(&place)).collect::<Vec<_>>()
    };
    let tests = ["tests/", "benches/", "examples/"].iter().flat_map(|place| within(place));
    let everything: Vec<(&str, &str)> = within("src/").into_iter().chain(tests).collect();
    let uncommented =
        |text: &str| text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let program = within("src/").into_iter().filter(|(path, _)| !is_test(path));
    let sections = [
        ("dependencies", program.map(|(_, text)| code(text).collect::<Vec<_>>().join("\n")).collect::<Vec<_>>()),
        ("dev-dependencies", everything.iter().map(|(_, text)| uncommented(text)).collect()),
        ("build-dependencies", within("build.rs").iter().map(|(_, text)| uncommented(text)).collect()),
    ];
    let mut found = Vec::new();
    for (section, texts) in sections {
        let named = manifest.get(section).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
        let unused = named.filter(|name| !texts.iter().any(|text| has_word(text, &name.replace('-', "_"))));
        found.extend(unused.map(|name| format!("{section}: {name} is not used")));
    }
    found
}
