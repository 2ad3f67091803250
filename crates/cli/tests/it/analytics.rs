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
