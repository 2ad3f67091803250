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

/// Reads the plan file `path`.
///
/// # Errors
/// [`PlanFileError`] naming the file, the line, and for an unknown key the nearest valid one.
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

/// Reads the text of a plan file.
///
/// # Errors
/// Fault, with the line. No value is quoted: it may hold a password.
pub fn parse(text: &str) -> Result<PlanSpec, String> {
    // Keys first: our message about an unknown key is better than the parser's.
    let table: Table = toml::from_str(text).map_err(|e| parse_error(text, &e))?;
    let known = PlanSpec::keys();
    for key in table.keys().filter(|key| !FIRST_VARIANTS.contains(&key.as_str())) {
        if !known.contains(key) {
            let line = text
                .lines()
                .position(|l| l.trim_start().trim_start_matches('[').trim_start_matches('"').starts_with(key.as_str()));
            let at = line.map_or(String::new(), |l| format!("line {}: ", l + 1));
            let near = did_you_mean(key, known.iter().map(String::as_str));
            return Err(format!("{at}there is no key '{}'{near} (known: {})", redact(key), known.join(", ")));
        }
    }
    let mut spec: PlanSpec = toml::from_str(text).map_err(|e| {
        let is_list = |(key, value): &(&String, &Value)| !fits(key, value) && fits(key, &vec![(*value).clone()].into());
        let list = table.iter().find(is_list).map(|(key, _)| format!("; {key} is a list: write {key} = […]"));
        parse_error(text, &e) + &list.unwrap_or_default()
    })?;
    let first = [spec.arm_a.take(), spec.arm_b.take()];
    if first.iter().any(Option::is_some) {
        let given = spec.variant.replace(first.map(Option::unwrap_or_default).into());
        if given.is_some() {
            return Err("[arm-a] and [arm-b] are the first two of [[variant]]: write all as [[variant]]".to_owned());
        }
    }
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

/// The first two variants as they were written before there could be more.
const FIRST_VARIANTS: [&str; 2] = ["arm-a", "arm-b"];

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
    use super::*;
    use loadline_model::Driver;
    use loadline_model::plan::JobsSpec;
    use proptest::prelude::*;

    #[test]
    fn a_plan_is_read() {
        let spec = parse(
            "target = \"postgres-temp:\"\nworkload = [\"LGWR-LAT1\"]\njobs = [1, 2]\nduration = \"30s\"\nwarmup = 2\n\
             driver = \"client\"\n[setting]\nfsync = \"off\"\n[parameters.LGWR-LAT1]\nrows = 2\n",
        )
        .unwrap();
        assert_eq!(spec.jobs, Some(JobsSpec::List(vec![1, 2])));
        assert_eq!(spec.driver, Some(Driver::Client));
        assert_eq!(spec.parameters.unwrap()["LGWR-LAT1"]["rows"], 2);
        assert_eq!(parse("jobs = \"auto\"").unwrap().jobs, Some(JobsSpec::Word("auto".into())));
        assert_eq!(parse("jobs = 4").unwrap().jobs, Some(JobsSpec::One(4)));
    }

    #[test]
    fn variants_are_a_list_and_the_first_two_may_be_named_arms() {
        let list =
            parse("[[variant]]\nlabel = \"x\"\n[[variant]]\nsetting = { fsync = \"off\" }\n[[variant]]\n").unwrap();
        assert_eq!(list.variant.unwrap().len(), 3);
        let arms = parse("[arm-b]\nlabel = \"y\"\n").unwrap().variant.unwrap();
        assert_eq!((arms.len(), arms[1].label.as_deref()), (2, Some("y")));
        assert!(parse("[arm-a]\nlabel = \"x\"\n[[variant]]\n").unwrap_err().contains("[[variant]]"));
    }

    #[test]
    fn an_error_names_its_line_the_value_and_what_is_allowed() {
        let mut cases = vec![
            ("jobs = 1\n\ndurration = \"3s\"", "line 3", ["'durration'", "'duration'"]),
            ("driver = \"clinet\"", "line 1", ["clinet", "client"]),
            ("jobs = [", "line 1", [""; 2]),
            ("[[populations]]\njobs = 8\nthnk = \"10ms\"", "line 3", ["thnk"; 2]),
            ("jobs = 1\n[arm-b]\nlabell = \"x\"", "line 3, column", ["labell"; 2]),
            ("[arm-b]\nlabel = \"x\"\nswitch = 1", "line 3, column", [""; 2]),
            ("duration = true", "line 1, column 12", ["\"30s\""; 2]),
            ("jobs = 1\nworkload = \"LGWR-LAT1\"", "line 2, column", ["workload is a list", "workload = […]"]),
            ("results = ''", "", ["results", "empty"]),
            ("workload-file = ['a.toml', '']", "", ["workload-file", "empty"]),
        ];
        let jobs = ["jobs = -1", "jobs = [1, -2]", "jobs = 1.5", "jobs = true"];
        cases.extend(jobs.map(|text| (text, "line 1, column 8", ["'auto'", "20000"])));
        for (text, at, says) in cases {
            let e = parse(text).unwrap_err();
            assert!(e.starts_with(at) && says.iter().all(|part| e.contains(part)), "'{text}': {e}");
        }
    }

    #[test]
    fn no_error_quotes_a_password() {
        for (text, at) in [
            ("jobs = 1\ntarget = \"postgres://ann:s3cret@h/d\njobs = 1", "line 2, column"),
            ("target = postgres://ann:s3cret@h/d", "line 1, column"),
            ("node = \"postgres://ann:s3cret@h/d\"", "line 1, column 8: invalid type: string, expected a sequence"),
            (
                "repeat = \"postgres://ann:s3, expected\\\" cret@h/d\"",
                "line 1, column 10: invalid type: string, expected",
            ),
            ("jobs = 1\ndriver = \"postgres://ann:s3cret@h/d\"", "line 2, column 10"),
            ("\"postgres://ann:s3cret@h/d\" = 1", "line 1: there is no key 'postgres://ann@h/d'"),
            ("[postgres]\n\"ann:s3cret@h/d\" = \"s3cret", "line 2"),
            ("setting = [\"s3cret\"]", "line 1"),
            ("setting = { password = 3 , a = \"s3cret\"}", "line 1"),
            ("parameters = { TP = { x = \"s3cret\" } }", "line 1"),
            ("target = \"a\"\ntarget = \"s3cret\"", "line 2"),
        ] {
            let e = parse(text).unwrap_err();
            assert!(e.starts_with(at) && !e.contains("s3") && !e.contains("cret"), "'{text}': {e}");
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
        assert_eq!(taken, [PlanSpec::keys(), FIRST_VARIANTS.map(str::to_owned).into()].concat());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,80}") {
            let _ = parse(&text);
        }
    }
}
