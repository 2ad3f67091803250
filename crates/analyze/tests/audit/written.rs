//! Tables as they were found in public, and as benchmarks, vendors, databases and blogs write them. `cases.txt` says how.

use loadline_analyze::audit::table::read;
use loadline_analyze::audit::{Audit, Claim, ClaimError, Finding, Mapping, Options, Severity, Sheet, audit};

/// A table with its expectations, and with lines that make a row wrong.
struct Written {
    name: &'static str,
    lines: Vec<String>,
    expected: Vec<&'static str>,
    planted: Vec<&'static str>,
}

fn written(text: &'static str) -> Vec<Written> {
    let mut all: Vec<Written> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("== ") {
            all.push(Written { name, lines: Vec::new(), expected: Vec::new(), planted: Vec::new() });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        match (line.split_at_checked(2), line.strip_prefix('@')) {
            (Some(("> ", expected)), _) => last.expected.push(expected),
            (Some(("! ", planted)), _) => last.planted.push(planted),
            (_, Some(file)) => {
                let path = format!("{}/tests/audit/data/cases/{file}", env!("CARGO_MANIFEST_DIR"));
                last.lines.extend(std::fs::read_to_string(path).unwrap().lines().map(str::to_owned));
            }
            _ => last.lines.push(line.to_owned()),
        }
    }
    all
}

fn check(lines: &[String]) -> Result<Audit, String> {
    let tables = read(&lines.join("\n"), "x").map_err(|e| format!("{e:?}"))?;
    let audit = audit(&tables, &Options::default());
    audit.refused.first().map_or(Ok(audit.clone()), |shape| Err(format!("{shape:?}")))
}

fn of_severity(audit: &Audit, severity: Severity) -> Vec<&Finding> {
    audit.findings.iter().filter(|f| f.severity == severity).collect()
}

/// Holds a table against its expectations.
fn hold(table: &Written) {
    let (name, found) = (table.name, check(&table.lines));
    if let Some(shape) = table.expected.iter().find_map(|e| e.strip_prefix("refused ")) {
        let said = found.map(|a| a.findings).unwrap_err();
        return assert!(said.contains(shape), "{name}: {said}");
    }
    let found = found.unwrap_or_else(|e| panic!("{name}: {e}"));
    let errors = of_severity(&found, Severity::Error);
    let errors =
        errors.iter().map(|f| format!("error {} {} {} {}", f.law, f.row.unwrap_or(0), f.printed, f.recomputed));
    let expected: Vec<&str> = table.expected.iter().copied().filter(|e| e.starts_with("error ")).collect();
    assert_eq!(errors.collect::<Vec<_>>(), expected, "{name}: {:#?}", found.findings);
    let tables = read(&table.lines.join("\n"), "x").unwrap();
    let sheet = Sheet::new(&tables[0], &Mapping::default());
    for expected in &table.expected {
        let words: Vec<&str> = expected.split(' ').collect();
        let count = words.get(1).and_then(|n| n.parse::<usize>().ok());
        match words[0] {
            "error" => {}
            "uncovered" => assert_eq!(found.checked, Vec::<&str>::new(), "{name}"),
            "known" => assert_eq!(sheet.columns.len(), tables[0].headers.len(), "{name}: {:?}", sheet.remarks),
            "laws" => assert!(found.checked.len() >= count.unwrap(), "{name}: {:?}", found.checked),
            "warnings" => assert_eq!(found.count(Severity::Warning), count.unwrap(), "{name}: {:#?}", found.findings),
            id => {
                let rows = (0..tables[0].rows()).map(|row| sheet.value(id, row).map(|v| (v * 1e6).round() / 1e6));
                let values: Vec<Option<f64>> = words[1..].iter().map(|v| v.parse().ok()).collect();
                assert_eq!(rows.collect::<Vec<_>>(), values, "{name}: {:#?}", sheet.remarks);
            }
        }
    }
    let texts = || found.findings.iter().map(|f| f.reason.to_string());
    assert!(
        texts().all(|text| !text.contains("''") && !text.contains("()")),
        "{name}: {:?}",
        texts().collect::<Vec<_>>()
    );
}

#[test]
fn tables_of_cases_are_as_expected() {
    written(include_str!("data/cases.txt")).iter().for_each(hold);
}

#[test]
fn tables_of_people_have_no_errors_and_few_warnings_and_wrong_cells_are_found() {
    let (all, mut warned, mut planted) = (written(include_str!("data/people.txt")), Vec::new(), 0);
    for table in &all {
        hold(table);
        let found = check(&table.lines).unwrap();
        warned.extend(of_severity(&found, Severity::Warning).iter().any(|f| f.law != "table").then_some(table.name));
        for text in &table.planted {
            let parts: Vec<&str> = text.splitn(3, ' ').collect();
            let mut lines = table.lines.clone();
            parts[2].clone_into(&mut lines[parts[1].parse::<usize>().unwrap()]);
            let found = check(&lines).unwrap().findings;
            let hit = found.iter().any(|f| f.severity != Severity::Info && f.row == parts[0].parse().ok());
            assert!(hit, "{}, {text}: {found:#?}", table.name);
            planted += 1;
        }
    }
    println!(
        "{} tables of people, {} with a warning, {planted} wrong cells found: {warned:?}",
        all.len(),
        warned.len()
    );
    assert!(all.len() > 150 && warned.len() * 6 <= all.len() && planted > 30);
}

#[test]
fn a_claim_is_the_ratio_of_two_rows() {
    let table = read("platform,jobs,tps,latency_ms\nold,8,2000,4.0\nnew,8,5000,1.6\n", "x").unwrap();
    let severity = |claim: &str| {
        let claims = vec![Claim::parse(claim).unwrap()];
        let audit = audit(&table, &Options { claims, ..Options::default() });
        audit.findings.iter().find(|f| f.law == "claim").map(|f| f.severity).ok_or(audit.unchecked)
    };
    assert_eq!(severity("tps: new / old = 2.5"), Ok(Severity::Info));
    assert_eq!(severity("commit_latency_ms: 1 / 2 = 2.5x"), Ok(Severity::Info));
    assert_eq!(severity("tps: new / old = 3"), Ok(Severity::Error));
    assert_eq!(severity("tps: new / older = 3"), Err(vec![ClaimError::NoRows("tps: new / older = 3".to_owned())]));
    for text in ["latency factor 6", "tps: new = 3", "tps: a / b = fast", "tps: a / b = -1"] {
        assert_eq!(Claim::parse(text), Err(ClaimError::Form(text.to_owned())));
    }
}

#[test]
fn mappings_name_what_is_wrong() {
    let tables = read("a b,x\n1,2\n", "x").unwrap();
    let mapping = Mapping::parse("a b=jobs, x=commit_throughput_tps").unwrap();
    let sheet = Sheet::new(&tables[0], &mapping);
    assert_eq!((sheet.value("jobs", 0), sheet.value("commit_throughput_tps", 0)), (Some(1.0), Some(2.0)));
    for (text, named) in [("x", "'x'"), ("x=tsp", "'tsp'"), ("x=jobs,y=jobs", "'jobs'"), ("=jobs", "'=jobs'")] {
        assert!(Mapping::parse(text).unwrap_err().to_string().contains(named), "{text}");
    }
    assert!(mapping.check(&tables).is_ok() && Mapping::parse("z=jobs").unwrap().check(&tables).is_err());
}
