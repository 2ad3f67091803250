//! Registry-wide tests: every workload gets them for free.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use loadline_model::column::TABLES;
use loadline_model::plan::Payload;

use super::CATALOGUE;
use crate::params::{ParamError, Params};
use crate::program::{Effect, Generator, Program};
use crate::{Arg, Datum, Execute, Fill, JobStart, Piece, Pool, Stream};

/// Statements as they are executed, with the numbers and bytes among their arguments.
struct Calls<'a>(&'a Program, Vec<Call>);

struct Call {
    statement: usize,
    numbers: Vec<i64>,
    bytes: Option<Vec<u8>>,
}

impl Call {
    /// Keys of the rows that it changes: one, or those of a range.
    fn keys(&self) -> RangeInclusive<i64> {
        self.numbers[0]..=self.numbers[self.numbers.len() - 1]
    }
}

/// Statements that `transactions` of `job` execute, if its rows begin at `first_key`.
fn calls(program: &Program, job: u32, first_key: i64, transactions: u64) -> Vec<Call> {
    let start = JobStart { first_key, new_key: 0, draw: 0 };
    let mut stream = Stream::new(program, start, Arc::new(Pool::new(1, job, Payload::default())), 0).unwrap();
    let mut calls = Calls(program, Vec::new());
    (0..transactions).for_each(|_| stream.transaction(&mut calls).unwrap());
    calls.1
}

impl Execute for Calls<'_> {
    type Error = std::convert::Infallible;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, Self::Error> {
        let number = |arg: &Arg<'_>| if let Arg::Int(number) = arg { Some(*number) } else { None };
        let bytes = args.iter().find_map(|arg| if let Arg::Bytes(bytes) = arg { Some(bytes.to_vec()) } else { None });
        self.1.push(Call { statement, numbers: args.iter().filter_map(number).collect(), bytes });
        Ok(self.0.statements[statement].effect.rows().unwrap())
    }

    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, Self::Error> {
        Ok(rows.into())
    }
}

/// Demands beyond those that the reader makes on every file.
#[test]
fn files_state_their_facts() {
    for (i, (code, text)) in super::FILES.iter().chain(super::APPENDS).enumerate() {
        let w = super::file::read_built_in(code, text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(w.code, *code);
        assert!(!CATALOGUE.iter().take(i).any(|other| other.code == w.code), "{code} twice");
        let named = &w.named_for;
        assert!(!named.components.is_empty() && !named.doing.is_empty(), "{code}");
        for (i, instead) in named.instead.iter().enumerate() {
            let what = (code, instead.component);
            assert!(!named.components.contains(&instead.component), "{what:?}: it is named for it");
            assert!(!named.instead[..i].iter().any(|other| other.component == instead.component), "{what:?} twice");
            assert!(instead.why.contains("Needed: ") && instead.why.ends_with('.'), "{what:?}: {}", instead.why);
        }
        assert_eq!(w.limits.is_empty(), w.scan.is_some(), "{code}");
        for (i, limit) in w.limits.iter().enumerate() {
            assert!(!w.limits[..i].contains(limit), "{code}: {} twice", limit.name());
            assert!(limit.definition().ends_with('.'), "{}", limit.name());
        }
        let unknown = w.params(&BTreeMap::from([("nonsense".to_owned(), 1)]));
        assert!(matches!(unknown, Err(ParamError::Unknown { workload, .. }) if workload == *code));
        for param in &w.params {
            let above = w.params(&BTreeMap::from([(param.name.clone(), i64::MAX)]));
            assert!(matches!(above, Err(ParamError::Value { param: p, .. }) if *p == *param), "{code}");
        }
    }
    let order = |group: &str| TABLES.iter().position(|t| t.group == group);
    assert!(CATALOGUE.windows(2).all(|w| order(&w[0].group) <= order(&w[1].group)), "in the order of the groups");
}

#[test]
fn work_is_real_and_stays_within_the_jobs_own_rows() {
    for w in CATALOGUE.iter().filter(|w| w.redo.is_some()) {
        let params = w.params(&BTreeMap::new()).unwrap();
        let program = w.make(&params);
        let (job, table) = (3, &w.tables[0]);
        let first = table.first_key(job, &params);
        let transactions = 300;
        let calls = calls(&program, job, first, transactions);
        // Of a mix, whole turns: its shares are exact.
        assert_eq!(transactions % program.cycle(), 0, "{}", w.code);
        let expected = (transactions as f64 * program.mean_statements_per_tx()).round() as usize;
        assert_eq!(calls.len(), expected, "{}", w.code);
        let own = first..first + table.batch_rows(&params) as i64;
        let mut payloads = BTreeMap::new();
        for call in &calls {
            let (keys, rows) = (call.keys(), program.statements[call.statement].effect.rows());
            assert!(own.contains(keys.start()) && own.contains(keys.end()), "{}: left its own rows", w.code);
            assert_eq!(Some(keys.clone().count() as u64), rows, "{}", w.code);
            if let Some(bytes) = &call.bytes {
                let before = payloads.insert(*keys.start(), bytes);
                assert_ne!(before, Some(bytes), "{}: an update that changes nothing is no work", w.code);
            }
        }
        let again = |calls: &[Call]| {
            let [before, after] = [calls[0].keys(), calls[1].keys()];
            before.start() <= after.end() && after.start() <= before.end()
        };
        let is_again = !program.varies() && calls.windows(2).any(again);
        assert!(!is_again, "{}: a row is not changed by two transactions in a row", w.code);
        // One statement a transaction, but in the scan, which generates redo at a limited rate.
        assert_eq!(program.statements_per_tx() == 1, w.scan.is_none(), "{}", w.code);
    }
}

#[test]
fn no_payload_size_writes_what_the_row_already_holds() {
    for w in CATALOGUE.iter() {
        let params = w.params(&BTreeMap::new()).unwrap();
        let Some(own) = w.make(&params).vars().iter().find_map(|(_, g)| match g {
            Generator::OwnRow { rows } => Some(*rows),
            _ => None,
        }) else {
            continue;
        };
        for bytes in 16..=1900 {
            assert_ne!(crate::payload_offset(0, bytes), crate::payload_offset(own, bytes), "{} at {bytes}", w.code);
        }
    }
}

#[test]
fn halves_that_change_places_are_a_whole_payload_and_differ() {
    for w in CATALOGUE.iter().filter(|w| w.redo.is_some()) {
        for bytes in [16, 17, 950, 1900] {
            let params = w.params(&BTreeMap::from([("payload".to_owned(), bytes)])).unwrap();
            let (pool, mut row) = (Pool::new(1, 0, Payload::default()), Vec::new());
            for index in 0..100 {
                w.tables[0].row(index, index as u64, &params, &pool, &mut row);
                let parts = row.iter().filter_map(|d| if let Datum::Bytes(part) = d { Some(*part) } else { None });
                let parts: Vec<&[u8]> = parts.collect();
                let start = crate::payload_offset(index as u64, bytes as u32);
                assert_eq!(parts.concat(), pool[start..start + bytes as usize], "{}", w.code);
                assert_eq!(w.tables[0].value_bytes(&params), 16 + bytes as u64, "{}", w.code);
                assert!(parts.len() == 1 || parts[0] != parts[1], "{}: {bytes} bytes", w.code);
            }
        }
    }
}

/// Whatever calibration or a plan makes of the numbers: no range reaches into the rows of the next job.
#[test]
fn no_number_of_rows_leaves_the_jobs_own() {
    for w in CATALOGUE.iter().filter(|w| w.redo.is_some() && w.scan.is_none()) {
        for (rows, own) in [(2, 256), (255, 256), (256, 256), (100, 300), (128, 257)] {
            let given = [("rows", rows), ("own-rows", own)].map(|(name, value)| (name.to_owned(), value));
            // Not every workload takes every number of rows.
            let Ok(params) = w.params(&given.into()) else { continue };
            let program = w.make(&params);
            let left = |call: &Call| !(0..own).contains(call.keys().start()) || !(0..own).contains(call.keys().end());
            assert!(!calls(&program, 0, 0, 300).iter().any(left), "{}: {rows} of {own}", w.code);
        }
        let given = [("rows".to_owned(), 200), ("own-rows".to_owned(), 199)].into();
        if w.params.iter().any(|p| p.name == "rows" && p.max >= 200) {
            let e = w.params(&given).unwrap_err().to_string();
            assert!(e.contains("'rows'") && e.contains("at most 'own-rows', which is 199"), "{e}");
        }
    }
}

#[test]
fn an_unknown_group_gets_the_nearest() {
    assert!(crate::find_group("log-writers").unwrap_err().to_string().contains("log-writer"));
}

/// Params of a workload for a data set of `bytes`.
fn params(code: &str, name: &str, value: i64, bytes: u64) -> Params {
    crate::find(code).unwrap().params(&BTreeMap::from([(name.to_owned(), value)])).unwrap().with_size(bytes)
}

#[test]
fn every_key_of_dbwr_thr_exists_and_is_in_another_block() {
    let w = crate::find("DBWR-THR").unwrap();
    for (blocks, bytes) in [(32, 1 << 20), (32, 96 << 20), (1, 32 << 20), (500, 1 << 30)] {
        let params = params("DBWR-THR", "blocks", blocks, bytes);
        let program = w.make(&params);
        assert_eq!(program.rows_changed_per_tx(), blocks as u64);
        let Some((_, &Generator::Uniform { range: distance, .. })) = program.vars().pop() else { panic!("no key") };
        assert!(distance * blocks as u64 <= w.tables[0].total_rows(&params, 0), "{blocks} of {bytes}");
        // 16 KiB hold at most 64 rows of 256 bytes.
        assert!(blocks == 1 || distance >= 64, "{distance}");
    }
}

#[test]
fn the_mix_of_sto_random_is_as_asked() {
    for (percent, reads) in [(20, 4), (50, 1), (10, 9), (25, 3), (2, 49), (33, 2)] {
        let program = crate::find("STO-RANDOM").unwrap().make(&params("STO-RANDOM", "write-pct", percent, 1 << 30));
        assert_eq!((program.statements_per_tx(), program.rows_changed_per_tx()), (reads + 1, 1), "{percent} %");
    }
}

#[test]
fn a_batch_of_sto_read_async_has_as_many_rows_as_it_says() {
    let w = crate::find("STO-READ-ASYNC").unwrap();
    let expected = |params: &Params| w.volume(params).unwrap().rows;
    for bytes in [32 << 20, 128 << 20, 512 << 30, 8 << 40] {
        for batch in [1, 64, 1000] {
            let share = expected(&params(&w.code, "batch", batch, bytes)) / batch as f64;
            assert!((share - 1.0).abs() < 0.03, "{batch} at {bytes} bytes: {share}");
        }
    }
    let all = params(&w.code, "batch", 100_000, 1 << 20);
    assert_eq!(expected(&all), w.tables[0].total_rows(&all, 0) as f64, "the whole table");
    // What is expected is there.
    let params = params(&w.code, "batch", 64, 16 << 20);
    let Fill::Scattered { salt, range } = w.tables[0].columns[1].fill else { panic!("the column is spread") };
    let (_, width) = w.make(&params).sum("high").unwrap();
    let low = range as i64 / 3;
    let keys = 0..w.tables[0].total_rows(&params, 0) as i64;
    let there =
        keys.map(|key| crate::scatter(key, salt, range)).filter(|k| (low..=low + 8 * width).contains(k)).count();
    assert!((there as f64 / 8.0 / 64.0 - 1.0).abs() < 0.2, "{there} rows in eight ranges of 64");
}

#[test]
fn no_analytic_query_is_asked_twice() {
    for w in CATALOGUE.iter().filter(|w| w.group == "data-analytics") {
        let program = w.make(&w.params(&BTreeMap::new()).unwrap());
        assert!(program.statements.iter().all(|s| s.template.vars().any(|v| v == "from")), "{}", w.code);
        let drawn = |(_, g): (&str, &Generator)| {
            if let Generator::Uniform { range, salt, .. } = g { Some((*salt, *range)) } else { None }
        };
        let drawn: BTreeMap<u32, u64> = program.vars().into_iter().filter_map(drawn).collect();
        let binds = program.vars().len();
        assert_eq!(drawn.len() + 1, binds, "{}: its variables follow from each other", w.code);
        assert!(drawn.values().any(|range| *range == 1_000_000_000), "{}", w.code);
    }
}

#[test]
fn groups_of_da_agg_are_those_that_there_are() {
    let w = crate::find("DA-AGG").unwrap();
    for (groups, column) in [(10, "g10"), (10_000, "g10k"), (1_000_000, "g1m")] {
        let params = params(&w.code, "groups", groups, 128 << 20);
        let sql = w.make(&params).statements[0].template.render(str::to_owned, str::to_owned);
        assert!(sql.ends_with(&format!("GROUP BY {column} ORDER BY total DESC, {column} LIMIT 10")), "{sql}");
        // n rows thrown into k groups leave k·e^(−n/k) of them empty.
        let (n, k) = (crate::data::fact_rows(&params) as f64, groups as f64);
        let (counted, by_chance) = (w.volume(&params).unwrap().groups, k * (1.0 - (-n / k).exp()));
        assert!((counted / by_chance - 1.0).abs() < 0.01, "{groups}: {counted} and {by_chance}");
    }
    for wrong in [500, 9] {
        let e = w.params(&BTreeMap::from([("groups".to_owned(), wrong)])).unwrap_err();
        assert!(matches!(e, ParamError::Value { value: 500 | 9, .. }), "{e}");
    }
}

/// Deadlocks are impossible by construction: every transaction locks its rows in rising order, and tables in one order
/// (account before stock).
#[test]
fn rows_are_locked_in_one_order() {
    let all =
        [("TP-LOOKUP", 1), ("TP-REPORT", 1), ("TP-LIGHT", 1), ("TP-MEDIUM", 5), ("TP-HEAVY", 25), ("TP-MIXED", 25)];
    for (code, statements) in all {
        let w = crate::find(code).unwrap();
        // The fewest rows that are allowed: segments of one item.
        let few = BTreeMap::from([("accounts".to_owned(), 2), ("items".to_owned(), 7)]);
        let few = few.into_iter().filter(|(n, _)| w.params.iter().any(|p| p.name == *n)).collect();
        for given in [BTreeMap::new(), few] {
            let program = w.make(&w.params(&given).unwrap());
            assert_eq!(program.statements_per_tx(), statements, "{code}");
            let start = JobStart { first_key: 0, new_key: 0, draw: 77 };
            let stream = || Stream::new(&program, start, Arc::new(Pool::new(1, 0, Payload::default())), 0).unwrap();
            let (mut running, mut changed, mut counted) = (stream(), 0, 0);
            for _ in 0..500 {
                let mut calls = Calls(&program, Vec::new());
                running.transaction(&mut calls).unwrap();
                // Table and key, which is the last argument of an UPDATE.
                let mut locks = Vec::new();
                for call in &calls.1 {
                    let s = &program.statements[call.statement];
                    if let [Piece::Sql(sql), Piece::Table(table), ..] = s.template.pieces.as_slice()
                        && sql == "UPDATE "
                    {
                        locks.push((table, call.numbers.last()));
                    }
                    counted += if let Effect::Change(rows) = s.effect { rows } else { 0 };
                }
                assert!(locks.windows(2).all(|w| w[0] < w[1]), "{code}: {locks:?}");
                changed += running.rows_changed;
            }
            assert_eq!(changed, counted);
            assert_eq!(stream().rows_changed_by(&program, 500), changed, "{code}: the work can be computed afterwards");
        }
    }
}
