//! Tables as they were found in public, as benchmarks, vendors, databases and blogs write them, and of published studies, with what is
//! known about them. `cases.txt` says how they are written.

use loadline_analyze::audit::{Audit, Claim, Finding, LAWS, Mapping, Severity, Sheet, Table, audit, table};

struct Case {
    name: &'static str,
    text: String,
    expected: Vec<(&'static str, &'static str)>,
}

fn cases(text: &'static str) -> Vec<Case> {
    let case = |block: &'static str| {
        let lines = || block.lines().skip(1);
        let expected = lines().filter_map(|line| line.strip_prefix("> "));
        Case {
            name: block.lines().next().unwrap(),
            text: lines().filter(|line| !line.starts_with("> ")).map(|line| format!("{line}\n")).collect(),
            expected: expected.map(|rest| rest.split_once(' ').unwrap_or((rest, ""))).collect(),
        }
    };
    text.split("\n== ").skip(1).map(case).collect()
}

/// The audit with the column names and the claims of a case; the refusal as it is named in the code.
fn check(case: &Case, text: &str) -> Result<(Vec<Table>, Mapping, Audit), String> {
    let tables = table::read(text, "x").map_err(|e| format!("{e:?}"))?;
    let all = |what| case.expected.iter().filter(move |(w, _)| *w == what).map(|(_, rest)| *rest);
    let mapping = all("columns").next().map_or(Ok(Mapping::default()), Mapping::parse);
    let mapping = mapping.and_then(|m| m.check(&tables).map(|()| m)).map_err(|e| format!("{e:?}"))?;
    let claims: Result<Vec<Claim>, _> = all("claim").map(Claim::parse).collect();
    let found = audit(&tables, &mapping, &claims.map_err(|e| format!("{e:?}"))?);
    let refused = found.refused.first().map(|e| format!("{e:?}"));
    let refusal = refused.or_else(|| found.unchecked.first().map(|e| format!("{e:?}")));
    refusal.map_or(Ok((tables, mapping, found)), Err)
}

/// Holds a table against its expectations; what is not expected is no error.
fn hold(case: &Case) -> Option<Audit> {
    let (name, found) = (case.name, check(case, &case.text));
    if let Some((_, refusal)) = case.expected.iter().find(|(what, _)| *what == "refused") {
        assert_eq!(found.err().as_deref(), Some(*refusal), "{name}");
        return None;
    }
    let (tables, mapping, found) = found.unwrap_or_else(|e| panic!("{name}: {e}"));
    let sheet = Sheet::new(&tables[0], &mapping);
    let of = |law: &str| found.findings.iter().filter(|f| f.law == law).collect::<Vec<_>>();
    let errors = found.findings.iter().filter(|f| f.severity == Severity::Error);
    let errors =
        errors.map(|f| format!("{} {} {} {}", f.law, f.row.unwrap(), f.printed, f.recomputed).trim_end().to_owned());
    let expected = case.expected.iter().filter(|(what, _)| *what == "error").map(|(_, rest)| (*rest).to_owned());
    assert!(errors.eq(expected), "{name}: {:#?}", found.findings);
    for (what, rest) in &case.expected {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let numbers: Vec<Option<f64>> = words.iter().map(|w| w.parse().ok()).collect();
        let is_right = match *what {
            "error" | "columns" | "claim" | "planted" => true,
            "recomputed" => of(words[0]).iter().any(|f| f.row == words[1].parse().ok() && f.recomputed == words[2]),
            "uncovered" => found.checked.is_empty(),
            "known" => sheet.columns.len() == tables[0].headers.len(),
            "laws" => Some(found.checked.len() as f64) >= numbers[0],
            "warnings" => Some(found.count(Severity::Warning) as f64) == numbers[0],
            law if LAWS.iter().any(|l| l.id == law) || law == "table" => {
                let said = |f: &&Finding| f.row.map_or_else(|| format!("{:?}", f.reason), |row| row.to_string());
                let said = of(law).iter().map(said).collect::<Vec<_>>().join(" ");
                // A reason may be said as far as its data.
                said == *rest || rest.contains('(') && said.starts_with(rest)
            }
            id => {
                let rows = (0..tables[0].rows()).map(|row| sheet.value(id, row).map(|v| (v * 1e6).round() / 1e6));
                rows.eq(numbers)
            }
        };
        assert!(is_right, "{name}: {what} {rest}: {:#?}", found);
    }
    Some(found)
}

#[test]
fn tables_of_cases_are_as_expected() {
    cases(include_str!("data/cases.txt")).iter().for_each(|case| drop(hold(case)));
}

#[test]
fn tables_of_people_have_no_errors_and_few_warnings_and_wrong_cells_are_found() {
    let (all, mut warned, mut planted) = (cases(include_str!("data/people.txt")), Vec::new(), 0);
    for case in &all {
        let found = hold(case).unwrap();
        let is_warning = |f: &Finding| f.severity == Severity::Warning && f.law != "table";
        warned.extend(found.findings.iter().any(is_warning).then_some(case.name));
        for (_, text) in case.expected.iter().filter(|(what, _)| *what == "planted") {
            let parts: Vec<&str> = text.splitn(3, ' ').collect();
            let mut lines: Vec<&str> = case.text.lines().collect();
            lines[parts[1].parse::<usize>().unwrap()] = parts[2];
            let (.., found) = check(case, &lines.join("\n")).unwrap();
            let is_hit = |f: &Finding| f.severity != Severity::Info && f.row == parts[0].parse().ok();
            assert!(found.findings.iter().any(is_hit), "{}, {text}: {:#?}", case.name, found.findings);
            planted += 1;
        }
    }
    println!("{} tables of people, a warning in {}, {planted} wrong cells found: {warned:?}", all.len(), warned.len());
    assert!(all.len() > 150 && warned.len() * 6 <= all.len() && planted > 30);
}
