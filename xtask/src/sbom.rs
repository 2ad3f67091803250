//! The parts of the binary, in CycloneDX 1.5: crates with version, licence and package URL, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Result;
use crate::build::{FEATURES, Source, TRIPLE, metadata};

/// The bill of materials. Crates that only build scripts or tests use are left out. Procedural macros are in:
/// `cargo metadata` lists them like linked crates.
pub(crate) fn sbom(source: &Source) -> Result<Vec<u8>> {
    let manifest = source.root.join("crates/cli/Cargo.toml");
    let manifest = manifest.to_str().ok_or("the path of the checkout is not UTF-8")?;
    let arguments = ["--manifest-path", manifest, "--filter-platform", TRIPLE, "--features", FEATURES];
    let metadata = metadata(&source.root, &arguments)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|n| (id(&n["id"]), n)).collect();
    let mut waiting = vec![id(&metadata["resolve"]["root"])];
    let mut used = BTreeSet::new();
    while let Some(next) = waiting.pop() {
        if !used.insert(next.clone()) {
            continue;
        }
        for dependency in nodes.get(&next).map(|n| list(&n["deps"])).unwrap_or_default() {
            // A dependency of kind null is linked; the others are `dev` and `build`.
            if list(&dependency["dep_kinds"]).iter().any(|k| k["kind"].is_null()) {
                waiting.push(id(&dependency["pkg"]));
            }
        }
    }
    let mut components: Vec<Value> =
        list(&metadata["packages"]).iter().filter(|p| used.contains(&id(&p["id"]))).map(component).collect();
    components.sort_by_key(|c| id(&c["purl"]));
    let program = json!({ "type": "application", "name": "loadline", "version": source.version });
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program },
        "components": components,
    });
    Ok(serde_json::to_vec_pretty(&bom)?)
}

fn component(package: &Value) -> Value {
    let (name, version) = (id(&package["name"]), id(&package["version"]));
    let purl = format!("pkg:cargo/{name}@{version}");
    let mut component =
        json!({ "type": "library", "name": name, "version": version, "purl": purl.clone(), "bom-ref": purl });
    if let Some(licence) = package["license"].as_str() {
        // Cargo's old way to write OR.
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    component
}

fn id(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
