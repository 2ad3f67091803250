//! Analytic queries and procedural code: the same answers on every database, and no work that is not done.

use crate::common::*;
use loadline_database::{OpenRequest, Target, Work, kind_of, open};

const SIZE: u64 = 4 << 20;

fn work(code: &str, given: &[(&str, i64)]) -> Work {
    Work { seed: 7, draws: 7, ..Work::from_catalogue(code, given).unwrap().with_size(SIZE) }
}

/// Queries, the values of their variables, their columns, and what the first column and all others add up to. The sums were worked
/// out in Rust from all rows (in this file before 282e4ed6). `net/hashes.rs` holds the first 1,000 rows of a table, and only these sums
/// hold the rest: whoever changes rows works them out anew.
const ANSWERS: &str = include_str!("data/answers.csv");

/// The numbers of `a=1 b=2`.
fn numbers(text: &str) -> Vec<(&str, i64)> {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name, value.parse().unwrap())).collect()
}

fn ask(target: &dyn Target, row: &Row) -> [i64; 2] {
    let (work, values) = (work(&row["code"], &numbers(&row["parameters"])), numbers(&row["values"]));
    let value = |name: &str| values.iter().find(|(n, _)| *n == name).unwrap().1.to_string();
    let statement = &work.program.statements[row["statement"].parse::<usize>().unwrap()];
    let query = statement.template.render(|t| format!("{{{t}}}"), value);
    let (first, others) = row["columns"].split_once(' ').unwrap();
    [first, &others.replace(' ', " + ")].map(|sum| {
        let query = format!("SELECT SUM({sum}) FROM ({query}) answer");
        target.abilities().tables.unwrap().integer(&work, &query).unwrap()
    })
}

#[test]
fn every_query_has_the_same_right_answer_everywhere() {
    let (dir, answers) = (results(), rows_of(ANSWERS));
    let right: Vec<[i64; 2]> =
        answers.iter().map(|row| ["first", "others"].map(|sum| row[sum].parse().unwrap())).collect();
    for url in ["sqlite:", "postgres-temp:", "mariadb-temp:"] {
        let target = open(&OpenRequest::new(url, dir.path().to_owned())).unwrap();
        let all = work("DA-JOIN", &[]);
        target.create(&all).unwrap();
        target.load(&all, 1).unwrap();
        let found: Vec<[i64; 2]> = answers.iter().map(|row| ask(target.as_ref(), row)).collect();
        assert_eq!(found, right, "{url}");
        // The size of a table is that of its rows and no guess.
        let bytes = target.abilities().tables.unwrap().table_bytes(&all, "fact").unwrap().unwrap();
        assert!((SIZE / 2..SIZE * 2).contains(&bytes), "{bytes} bytes on {url}");
    }
}

fn measure(target: &str, results: &Path, more: &str) -> Vec<Value> {
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
        assert_eq!(outcome(two, "commits-database"), "not-made");
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
}

#[test]
fn procedures_compute_and_their_commits_are_counted() {
    let dir = results();
    for target in ["postgres-temp:", "mariadb-temp:"] {
        let tests = measure(target, dir.path(), "--group procedural-code --jobs 2 --duration 1s");
        assert_eq!(tests.len(), 6);
        for t in &tests {
            let f = |id: &str| figure(t, id);
            assert_eq!((f("errors"), t["driver"].as_str()), (0.0, Some("database")));
            assert!(f("mops_per_s") > 0.0 && (f("mops_per_s_per_job") * 2.0 / f("mops_per_s") - 1.0).abs() < 1e-9);
            assert!(sound(t), "{t:#}");
            passed(t, "commits-database");
            assert_eq!(outcome(t, "commits-per-sync"), "not-made", "nothing is made durable");
            assert!(t.get("queries_per_s").is_none() && t["absent"]["queries_per_s"].is_string());
        }
        let operations = figure(&tests[0], "mops_per_s") / figure(&tests[0], "tx_per_s");
        assert!((operations - 5000e-6).abs() < 1e-9, "{operations}");
    }
}

#[test]
fn a_wrong_result_is_an_error() {
    let server = Server::start(&[]);
    server.sql("CREATE SCHEMA loadline").unwrap();
    for (code, procedure) in [("PLS-ADD", "pls_add_run"), ("PLS-FIBO", "pls_fibo_run"), ("PLS-MIXED", "pls_mixed_run")]
    {
        let work = work(code, &[]);
        let rendered = kind_of("postgres:").unwrap().render(&work);
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
