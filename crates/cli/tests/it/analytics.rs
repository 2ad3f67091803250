//! Analytic queries and procedural code: the same answers on every database, and no work that is not done.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::figures::{check, figure, passed};
use crate::common::{Server, on, refused, results, sound, tests_of};
use loadline_database::{OpenRequest, Target, Work, kind_of, open};
use loadline_workload::data::{fact_rows, table};
use loadline_workload::{Datum, Params};

const SIZE: u64 = 4 << 20;

fn work(code: &str, given: &[(&str, i64)]) -> Work {
    Work { seed: 7, draws: 7, ..Work::of(code, given).unwrap().with_size(SIZE) }
}

/// All rows of a table, their numbers by column.
fn rows(name: &str, params: &Params) -> Vec<BTreeMap<&'static str, i64>> {
    let table = table(name).unwrap();
    let pool = loadline_workload::pool(7, 0, 0.0);
    let mut row = Vec::new();
    (0..table.total_rows(params, 1) as i64)
        .map(|key| {
            table.row(key, 0, params, &pool, &mut row);
            let named = table.columns.iter().zip(&row);
            let number = |d: &Datum<'_>| if let Datum::Int(i) = d { Some(*i) } else { None };
            named.filter_map(|(c, d)| Some((c.name.as_str(), number(d)?))).collect()
        })
        .collect()
}

/// A query of a workload, the values of its variables, its columns, and what these add up to.
struct Case {
    code: &'static str,
    given: &'static [(&'static str, i64)],
    statement: usize,
    values: &'static [(&'static str, i64)],
    columns: &'static [&'static str],
    right: [i64; 2],
}

/// Sum of the first column and of all others, over the rows.
fn sums(rows: &[Vec<i64>]) -> [i64; 2] {
    let first = rows.iter().map(|r| r[0]).sum();
    [first, rows.iter().flat_map(|r| &r[1..]).sum()]
}

/// Groups by `key`, counts and sums; those with the largest sums.
fn largest(rows: impl Iterator<Item = (Vec<i64>, i64)>, keep: usize) -> Vec<Vec<i64>> {
    let mut groups: BTreeMap<Vec<i64>, (i64, i64)> = BTreeMap::new();
    for (key, value) in rows {
        let group = groups.entry(key).or_default();
        *group = (group.0 + 1, group.1 + value);
    }
    let mut all: Vec<_> = groups.into_iter().collect();
    all.sort_by_key(|(key, (_, total))| (-total, key.clone()));
    all.into_iter().take(keep).map(|(key, (n, total))| [key, vec![n, total]].concat()).collect()
}

/// What the queries must return, worked out here from the rows as they are generated.
fn cases() -> Vec<Case> {
    let params = work("DA-SCAN", &[]).params;
    let fact = rows("fact", &params);
    assert_eq!(fact.len() as u64, fact_rows(&params));
    let (customers, products) = (rows("customer", &params), rows("product", &params));
    let mut cases = Vec::new();
    let mut case = |code, given, statement, values, columns, answer: Vec<Vec<i64>>| {
        cases.push(Case { code, given, statement, values, columns, right: sums(&answer) });
    };
    let passed: Vec<_> = fact.iter().filter(|r| r["day"] < 1800 && r["amount"] >= 50_000).collect();
    let scan = vec![passed.len() as i64, passed.iter().map(|r| r["amount"]).sum()];
    case("DA-SCAN", &[], 0, &[("below", 1800), ("from", -5)], &["n", "total"], vec![scan]);
    let agg = |by: &'static str| largest(fact.iter().map(|r| (vec![r[by]], r["amount"])), 10);
    case("DA-AGG", &[("groups", 10)], 0, &[("from", -5)], &["g10", "n", "total"], agg("g10"));
    case("DA-AGG", &[("groups", 10_000)], 0, &[("from", -5)], &["g10k", "n", "total"], agg("g10k"));
    case("DA-AGG", &[("groups", 1_000_000)], 0, &[("from", -5)], &["g1m", "n", "total"], agg("g1m"));
    let joined = fact.iter().filter_map(|f| {
        let (c, p) = (&customers[f["customer"] as usize], &products[f["product"] as usize]);
        let kept = c["segment"] == 2 && p["category"] < 25;
        kept.then(|| (vec![p["category"], c["region"]], f["amount"] * p["price"]))
    });
    let join = largest(joined, 20);
    case(
        "DA-JOIN",
        &[],
        0,
        &[("segment", 2), ("below", 25), ("from", -5)],
        &["category", "region", "n", "revenue"],
        join,
    );
    let three = |r: &&BTreeMap<&'static str, i64>| vec![r["id"], r["amount"], r["day"]];
    let mut sorted: Vec<_> = fact.iter().collect();
    sorted.sort_by_key(|r| (r["amount"], r["id"]));
    let middle = (sorted.len() - 100) / 2;
    let sort = sorted[middle..middle + 100].iter().map(three).collect();
    case("DA-SORT", &[], 0, &[("from", -5)], &["id", "amount", "day"], sort);
    sorted.sort_by_key(|r| (-r["amount"], r["id"]));
    let top = sorted[..100].iter().map(three).collect();
    case("DA-SORT", &[], 1, &[("from", -5)], &["id", "amount", "day"], top);
    // Amounts are not negative: a customer's largest running sum is its last.
    let by_customer = largest(fact.iter().map(|r| (vec![r["customer"]], r["amount"])), usize::MAX);
    let places = by_customer.iter().map(|c| c[1] * (c[1] + 1) / 2).sum();
    let most = by_customer.iter().map(|c| c[2]).max().unwrap();
    let window = vec![fact.len() as i64, places, most];
    case("DA-WINDOW", &[], 0, &[("from", -5)], &["n", "places", "most"], vec![window]);
    cases
}

fn ask(target: &dyn Target, case: &Case) -> [i64; 2] {
    let work = work(case.code, case.given);
    let value = |name: &str| case.values.iter().find(|(n, _)| *n == name).unwrap().1.to_string();
    let query = work.program.statements[case.statement].template.render(|t| format!("{{{t}}}"), value);
    let sum = |columns: &[&str]| {
        let query = format!("SELECT SUM({}) FROM ({query}) answer", columns.join(" + "));
        target.abilities().queries.unwrap().integer(&work, &query).unwrap()
    };
    [sum(&case.columns[..1]), sum(&case.columns[1..])]
}

#[test]
fn every_query_has_the_same_right_answer_everywhere() {
    let dir = results();
    let cases = cases();
    for url in ["sqlite:", "postgres-temp:", "mariadb-temp:"] {
        let target = open(&OpenRequest::new(url, dir.path().to_owned())).unwrap();
        let all = work("DA-JOIN", &[]);
        target.create(&all).unwrap();
        target.load(&all, 1).unwrap();
        for case in &cases {
            assert_eq!(ask(target.as_ref(), case), case.right, "{} {:?} on {url}", case.code, case.given);
        }
        // The size of a table is that of its rows and no guess.
        let bytes = target.abilities().queries.unwrap().table_bytes(&all, "fact").unwrap().unwrap();
        assert!((SIZE / 2..SIZE * 2).contains(&bytes), "{bytes} bytes on {url}");
    }
}

fn measure(target: &str, results: &Path, more: &str) -> Vec<serde_json::Value> {
    tests_of(&on(target, results, &format!("--no-probe --size 4MiB --warmup 200ms {more}")).folder())
}

#[test]
fn queries_have_their_figures_and_groups_are_counted() {
    let dir = results();
    for (target, driver) in [("sqlite:", "client"), ("postgres-temp:", "database")] {
        let tests = measure(target, dir.path(), "--workload DA-AGG,DA-SCAN --jobs 1 --duration 600ms");
        assert_eq!(tests.len(), 4, "{tests:#?}");
        let rows = (SIZE / 100 * 100 / 256) as f64;
        for t in &tests {
            let f = |id: &str| figure(t, id);
            assert!((f("rows_per_s") / (rows * f("tx_per_s")) - 1.0).abs() < 0.01, "{t:#}");
            assert!(f("data_mib_per_s") / f("tx_per_s") > 2.0, "MiB of the table: {t:#}");
            assert_eq!((f("threads"), t["driver"].as_str()), (1.0, Some(driver)));
        }
        let groups: Vec<_> = tests.iter().filter(|t| t["swept"] == "groups").map(|t| t["groups"].as_f64()).collect();
        assert!(groups.len() == 3 && groups[0] == Some(10.0) && groups[2].unwrap() < rows, "{groups:?}");
    }
}

#[test]
fn workers_come_or_the_test_is_invalid() {
    // A server that would run everything in parallel by itself, and has two workers.
    let server = Server::start(&[
        "max_parallel_workers=2",
        "max_parallel_workers_per_gather=4",
        "min_parallel_table_scan_size=0",
        "parallel_setup_cost=0",
        "parallel_tuple_cost=0",
    ]);
    let dir = results();
    for driver in ["client", "database"] {
        let more = format!("--driver {driver} --workload DA-PARALLEL,DA-SCAN --jobs 1 --duration 1s");
        let tests = measure(&server.url(), dir.path(), &more);
        let threads: Vec<_> = tests.iter().map(|t| (t["workload"].as_str().unwrap(), t["threads"].as_f64())).collect();
        let parallel = "DA-PARALLEL";
        assert_eq!(threads, [("DA-SCAN", Some(1.0)), (parallel, Some(1.0)), (parallel, Some(2.0))], "2 + 1 at most");
        // Nobody but the session itself was at work where no worker was asked for.
        for t in &tests[..2] {
            let seen: u64 = t["waits"]["sessions"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
            assert!(seen <= t["waits"]["samples"].as_u64().unwrap(), "{t:#}");
        }
        let two = &tests[2];
        let detail = check(two, "parallel-workers")["detail"].as_str().unwrap();
        assert!(detail.contains("2 processes were asked for, 2 planned and 2 launched"), "{detail}");
        // A busy machine may spoil the proofs of the test with one worker: then there is nothing to compare with, and why.
        assert!(sound(&tests[1]), "{:#}", tests[1]);
        let compared = if !refused(&tests[1]) { &two["speed_up"] } else { &two["absent"]["speed_up"] };
        assert!(!compared.is_null() && tests[1]["speed_up"] == 1.0 && two["swept"] == "threads", "{two:#}");
        assert_eq!(check(two, "commits-database")["outcome"], "not-made");
        assert!(two["absent"]["commits_database"].as_str().unwrap().contains("worker"), "{two:#}");
        assert!(tests[0]["absent"]["speed_up"].is_string() && tests[0]["commits_database"].is_number());
    }
    // More than there are: asked for by hand, and found out.
    let more = "--workload DA-PARALLEL --parameter DA-PARALLEL.workers=6 --jobs 1 --duration 600ms";
    let tests = measure(&server.url(), dir.path(), more);
    assert_eq!((tests.len(), &tests[0]["valid"]), (1, &false.into()), "{tests:#?}");
    let why = tests[0]["invalid_reason"].as_str().unwrap();
    assert!(why.contains("6 processes were asked for, 6 planned and 3 launched"), "{why}");
    assert!(tests[0]["absent"]["speed_up"].as_str().unwrap().contains("one worker"), "{:#}", tests[0]);

    for target in ["sqlite:", "mariadb-temp:"] {
        on(target, dir.path(), "--workload DA-PARALLEL").fails(2, &["parallel queries"]);
    }
}

#[test]
fn procedures_compute_and_their_commits_are_counted() {
    let dir = results();
    for target in ["postgres-temp:", "mariadb-temp:"] {
        let tests = measure(target, dir.path(), "--group procedural-code --jobs 2 --duration 2s");
        assert_eq!(tests.len(), 6);
        for t in &tests {
            let f = |id: &str| figure(t, id);
            assert_eq!((f("errors"), t["driver"].as_str()), (0.0, Some("database")));
            assert!(f("mops_per_s") > 0.0 && (f("mops_per_s_per_job") * 2.0 / f("mops_per_s") - 1.0).abs() < 1e-9);
            assert!(sound(t), "{t:#}");
            passed(t, "commits-database");
            assert_eq!(check(t, "commits-per-sync")["outcome"], "not-made", "nothing is made durable");
            assert!(t.get("queries_per_s").is_none() && t["absent"]["queries_per_s"].is_string());
        }
        let operations = figure(&tests[0], "mops_per_s") / figure(&tests[0], "tx_per_s");
        assert!((operations - 5000e-6).abs() < 1e-9, "{operations}");
    }
    on("sqlite:", dir.path(), "--group procedural-code").fails(2, &["PLS-FIBO", "no stored procedures"]);
}

#[test]
fn a_wrong_result_is_an_error() {
    let server = Server::start(&[]);
    server.sql("CREATE SCHEMA loadline").unwrap();
    for (code, procedure) in [("PLS-ADD", "pls_add_run"), ("PLS-FIBO", "pls_fibo_run"), ("PLS-MIXED", "pls_mixed_run")]
    {
        let work = work(code, &[]);
        let rendered = (kind_of("postgres:").unwrap().render)(&work);
        let made = &rendered.iter().find(|r| r.title == "procedure").unwrap().sql;
        let call = format!("CALL loadline.{procedure}(0, 0, 0, '', clock_timestamp(), 0, NULL, NULL, NULL)");
        server.sql(made).unwrap();
        server.sql(&call).unwrap();
        // One round less than the result that it is compared with.
        let short = made.replacen(" IN 1 + l_zero..", " IN 2 + l_zero..", 1);
        assert_ne!(*made, short);
        server.sql(&short).unwrap();
        let e = server.sql(&call).unwrap_err();
        assert!(e.contains("the computation came to") && e.contains("instead of"), "{code}: {e}");
    }
}
