//! Plan files: TOML with the keys of [`PlanSpec`].

use std::path::Path;

use super::PlanSpec;
use loadline_database::redact;
use loadline_model::format::did_you_mean;
use thiserror::Error;
use toml::{Table, Value};

use super::scripts::BUILTIN;

/// Why a plan file cannot be used. A `path` has no password, and a `hint` says what the user may have meant.
#[derive(Debug, Error)]
pub enum PlanFileError {
    #[error("cannot read the plan {path}: {source}{hint}")]
    Read { path: String, source: std::io::Error, hint: &'static str },
    /// With line and column.
    #[error("{path} is not a plan: {message}")]
    Parse { path: String, message: String },
}

/// Reads the plan file `path`. An error names the file, the line, and for an unknown key the nearest valid one.
pub fn read(path: &Path) -> Result<PlanSpec, PlanFileError> {
    // A URL without its flag is read as a file name.
    let shown = redact(&path.display().to_string());
    let hint = if shown.contains("://") { "; write a URL after --target" } else { "" };
    let failed = |source| PlanFileError::Read { path: shown.clone(), source, hint };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let mut spec = parse(&text).map_err(|message| PlanFileError::Parse { path: shown, message })?;
    // Paths in a plan are relative to the plan's folder.
    let folder = path.parent().unwrap_or(Path::new(""));
    for file in spec.workload_file.iter_mut().flatten() {
        *file = folder.join(&file).display().to_string();
    }
    for script in spec.pgbench_script.iter_mut().flatten().filter(|of| !of.starts_with(BUILTIN)) {
        *script = folder.join(&script).display().to_string();
    }
    Ok(spec)
}

/// Reads the text of a plan file. An error names the line, and quotes no value, as that may hold a password.
pub fn parse(text: &str) -> Result<PlanSpec, String> {
    // Keys first: our message about an unknown key is better than the parser's.
    let table: Table = toml::from_str(text).map_err(|e| parse_error(text, &e))?;
    let known = PlanSpec::keys();
    for key in table.keys() {
        if !known.contains(key) {
            let line = text
                .lines()
                .position(|l| l.trim_start().trim_start_matches('[').trim_start_matches('"').starts_with(key.as_str()));
            let at = line.map_or(String::new(), |l| format!("line {}: ", l + 1));
            let near = did_you_mean(key, known.iter().map(String::as_str));
            return Err(format!("{at}there is no key '{}'{near} (known: {})", redact(key), known.join(", ")));
        }
    }
    let spec: PlanSpec = toml::from_str(text).map_err(|e| {
        let is_list = |(key, value): &(&String, &Value)| !fits(key, value) && fits(key, &vec![(*value).clone()].into());
        let list = table.iter().find(is_list).map(|(key, _)| format!("; {key} is a list: write {key} = […]"));
        parse_error(text, &e) + &list.unwrap_or_default()
    })?;
    if spec.results.as_deref() == Some("") {
        return Err("results is empty: name a folder, such as loadline-results".to_owned());
    }
    if spec.workload_file.iter().flatten().any(String::is_empty) {
        return Err("workload-file has an empty name: name a file, such as mine.toml".to_owned());
    }
    Ok(spec)
}

/// Whether a plan may have this value.
fn fits(key: &str, value: &Value) -> bool {
    Table::from_iter([(key.to_owned(), value.clone())]).try_into::<PlanSpec>().is_ok()
}

/// The parser's message with line and column, without the line's text: it may hold a password.
fn parse_error(text: &str, error: &toml::de::Error) -> String {
    let message = redact(&without_text(error.message()));
    let Some(before) = error.span().and_then(|at| text.get(..at.start.min(text.len()))) else { return message };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// `message` without the text that it quotes if another type is expected.
fn without_text(message: &str) -> String {
    let cut = || {
        let start = message.find("string \"")? + "string".len();
        let end = start + message.get(start..)?.rfind("\", expected")? + 1;
        Some(format!("{}{}", message.get(..start)?, message.get(end..)?))
    };
    cut().unwrap_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    /// A text that is no plan, where its error begins, and what it says.
    #[derive(Deserialize)]
    struct Broken {
        text: String,
        at: String,
        #[serde(default)]
        says: Vec<String>,
    }

    #[test]
    fn an_error_names_its_line_and_what_is_allowed_and_quotes_no_password() {
        let all: BTreeMap<String, Vec<Broken>> = toml::from_str(include_str!("broken.toml")).unwrap();
        for Broken { text, at, says } in &all["broken"] {
            let e = parse(text).unwrap_err();
            assert!(e.starts_with(at) && says.iter().all(|part| e.contains(part)), "'{text}': {e}");
            assert!(!e.contains("s3") && !e.contains("cret"), "'{text}': {e}");
        }
        let e = read(Path::new("postgres://ann:s3cret@h/d")).unwrap_err().to_string();
        assert!(e.contains("postgres://ann@h/d") && e.contains("write a URL after --target"), "{e}");
    }

    #[test]
    fn every_key_is_known() {
        // The parser of TOML itself says which keys it takes.
        let e = toml::from_str::<PlanSpec>("none = 1").unwrap_err().to_string();
        let (_, taken) = e.split_once("expected one of ").unwrap();
        let taken: Vec<&str> = taken.trim().split(", ").map(|key| key.trim_matches('`')).collect();
        assert_eq!(taken, PlanSpec::keys());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,80}") {
            let _ = parse(&text);
        }
    }
}
