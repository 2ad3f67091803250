//! pgbench scripts of a plan: one workload, whose file is made of them, so that a run keeps their texts.

use loadline_model::plan::WorkloadFile;
use loadline_workload::script::{BUILTINS, MAX_WEIGHT, builtin, is_name};

use super::{PlanError, PlanSpec, read_file, value};

/// Prefix of a script of pgbench's own.
pub const BUILTIN: &str = "builtin:";
/// Longest part of a script's name in a workload's code.
const MAX_NAME: usize = 12;

struct Named {
    name: String,
    weight: i64,
    text: String,
    builtin: bool,
}

/// The workload file of the plan's scripts; `None` if it has none.
pub(super) fn file(spec: &PlanSpec) -> Result<Option<WorkloadFile>, PlanError> {
    let Some(given) = &spec.pgbench_script else { return Ok(None) };
    if given.is_empty() {
        return value("pgbench-script = [] names no script: leave the key out, or name a file".to_owned());
    }
    let scripts = given.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
    if scripts.iter().all(|script| script.weight == 0) {
        return value("the weights of all pgbench scripts are 0: nothing would run".to_owned());
    }
    let mut defined = Vec::new();
    for given in spec.define.iter().flatten() {
        let Some((name, text)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return value(format!("--define '{given}' is not NAME=VALUE, such as scale=10"));
        };
        if !is_name(name) {
            return value(format!("--define '{name}' is no name of a variable: use letters, digits and '_'"));
        }
        // As in pgbench, the last value holds.
        defined.retain(|(known, _)| *known != name);
        defined.push((name, text));
    }
    let allow_writes = spec.allow_writes.unwrap_or(false);
    Ok(Some(WorkloadFile {
        name: "pgbench scripts".to_owned(),
        text: text(&scripts, &defined, allow_writes, spec.evidence.as_deref()),
    }))
}

/// `FILE[@WEIGHT]` or `builtin:NAME[@WEIGHT]`.
fn named(given: &str) -> Result<Named, PlanError> {
    let (name, weight) = match given.rsplit_once('@') {
        None => (given, 1),
        Some((name, weight)) => match weight.parse::<i64>() {
            Ok(weight) if (0..=MAX_WEIGHT).contains(&weight) => (name, weight),
            _ => {
                return value(format!(
                    "--pgbench-script '{given}': the weight after '@' is '{weight}', but must be a whole number from 0 \
                     to {MAX_WEIGHT}"
                ));
            }
        },
    };
    let Some(of) = name.strip_prefix(BUILTIN) else {
        let text = read_file("pgbench script", name)?;
        return Ok(Named { name: name.to_owned(), weight, text, builtin: false });
    };
    match builtin(of) {
        Some((of, text)) => Ok(Named { name: format!("{BUILTIN}{of}"), weight, text: text.to_owned(), builtin: true }),
        None => {
            let known: Vec<&str> = BUILTINS.iter().map(|(name, _)| *name).collect();
            value(format!("there is no script {BUILTIN}{of}, or several begin so (known: {})", known.join(", ")))
        }
    }
}

fn text(scripts: &[Named], defined: &[(&str, &str)], allow_writes: bool, evidence: Option<&str>) -> String {
    let names: Vec<String> = scripts
        .iter()
        .map(|s| if scripts.len() == 1 { s.name.clone() } else { format!("{} (weight {})", s.name, s.weight) })
        .collect();
    let may = if allow_writes { "may write" } else { "only reads" };
    let summary = quoted(&format!("pgbench scripts: {}; {may}", names.join(", ")));
    let head = format!("code = {}\nsummary = {summary}\nallow-writes = {allow_writes}\n", quoted(&code(scripts)));
    let evidence = evidence.map(quoted);
    let evidence = evidence.map(|of| format!("[evidence]\nquery = {of}\ncounts = \"by the evidence query\"\n"));
    let defined = defined.iter().map(|(name, text)| [name, text].map(|of| quoted(of)));
    let defined = defined.map(|[name, text]| format!("[[define]]\nname = {name}\nvalue = {text}\n"));
    let scripts = scripts.iter().map(|Named { name, weight, text, builtin }| {
        let [name, text] = [name, text].map(|of| quoted(of));
        format!("[[script]]\nname = {name}\nweight = {weight}\nbuiltin = {builtin}\ntext = {text}\n")
    });
    std::iter::once(head).chain(evidence).chain(defined).chain(scripts).collect()
}

/// `PGBENCH-ORDERS` for the script orders.sql alone, `PGBENCH` for several.
fn code(scripts: &[Named]) -> String {
    let [Named { name, .. }] = scripts else { return "PGBENCH".to_owned() };
    let name = name.rsplit(['/', ':']).next().unwrap_or(name);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem).to_ascii_uppercase();
    let plain: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(MAX_NAME).collect();
    format!("PGBENCH-{}", plain.trim_matches('-')).trim_end_matches('-').to_owned()
}

/// A TOML string: as JSON, except for the one control character that JSON leaves as it is.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use loadline_workload::read_file;

    use super::super::{make_plan, planfile, workloads_of};
    use super::*;

    #[test]
    fn scripts_become_one_workload_of_the_client_driver() {
        let plan = crate::testing::planned(
            "target = 'postgres://u@h/d'\npgbench-script = ['builtin:select-only', 'builtin:tpcb@0']",
        );
        let [workload] = plan.workloads.as_slice() else { panic!("{:?}", plan.workloads) };
        assert_eq!((workload.code.as_str(), workload.driver), ("PGBENCH", loadline_model::Driver::Client));
        assert!(workload.driver_reason.contains("database driver"), "{}", workload.driver_reason);
        let known = workloads_of(&plan).unwrap();
        let summary = &known.own[0].summary;
        assert!(summary.contains("builtin:tpcb-like (weight 0)") && summary.contains("only reads"), "{summary}");
        assert_eq!(plan.workload_files.len(), 1, "the run keeps the texts");
    }

    #[test]
    fn any_text_comes_through_the_file_unchanged() {
        let text = "SELECT 'a\"b\\\\c', '\u{7f}\u{1}é😀';\n\\set x 1\n\tSELECT :x;\r\n".to_owned();
        let scripts = [Named { name: "dir/Ünı cod\"e.v2.sql".into(), weight: 3, text: text.clone(), builtin: false }];
        let file = super::text(&scripts, &[("a", "x'\"\n")], true, Some("SELECT count(*) FROM \"t\""));
        let parsed: toml::Table = toml::from_str(&file).unwrap();
        assert_eq!(parsed["script"][0]["text"].as_str(), Some(text.as_str()));
        assert_eq!(parsed["evidence"]["query"].as_str(), Some("SELECT count(*) FROM \"t\""));
        assert_eq!(parsed["define"][0]["value"].as_str(), Some("x'\"\n"));
        let workload = read_file("pgbench scripts", &file).unwrap();
        assert_eq!(workload.code, "PGBENCH-N--COD-E");
        assert!(workload.scripts.as_ref().unwrap().allow_writes);
    }

    #[test]
    fn an_error_in_a_script_has_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bad.sql");
        std::fs::write(&path, "SELECT 1;\n\\set x 1 +\n").unwrap();
        let spec = format!("target = 'postgres://u@h/d'\npgbench-script = ['{}']", path.display());
        let e = make_plan(&planfile::parse(&spec).unwrap()).unwrap_err().to_string();
        assert!(e.contains("bad.sql:2:11: "), "{e}");
    }
}
