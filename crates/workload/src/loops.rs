//! Queries of the catalogue as loops over rows in memory: the same variables, the same work, the same answer.
//!
//! A [`Looping`] executes the statements of a workload in place of a database. The tests of the databases compare its
//! answers with theirs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::convert::Infallible;
use std::hash::{BuildHasherDefault, Hasher};

use loadline_model::plan::Payload;

use crate::data::CUSTOMERS;
use crate::limit::Loop;
use crate::params::Params;
use crate::pool::Pool;
use crate::stream::{Arg, Execute};
use crate::table::{Datum, Fill, Table, Typed};

/// Columns of `fact`, as words of its records.
mod fact {
    pub(super) const ID: usize = 0;
    pub(super) const CUSTOMER: usize = 1;
    pub(super) const PRODUCT: usize = 2;
    pub(super) const G10: usize = 3;
    pub(super) const G10K: usize = 4;
    pub(super) const G1M: usize = 5;
    pub(super) const AMOUNT: usize = 6;
    pub(super) const DAY: usize = 7;
}

// Words of the records of the data set's tables: a word for each number, and the payload.
const FACT_WORDS: usize = 8 + 120 / 8;
const CUSTOMER_WORDS: usize = 3 + 60_usize.div_ceil(8);
const PRODUCT_WORDS: usize = 3 + 40 / 8;
const LOOKUP_WORDS: usize = 3 + 100_usize.div_ceil(8);
/// Of the table of DBL-INDEX: a key, a number and 120 bytes.
const BUILT_WORDS: usize = 2 + 120 / 8;

const SORTED: usize = 100;

#[derive(Debug)]
pub struct LoopRows {
    tables: Vec<Records>,
    params: Params,
    /// Rows of the first table in the database.
    pub of_all: u64,
}

impl LoopRows {
    pub fn new(tables: &[Table], params: &Params, seed: u64, payload: Payload, max_bytes: u64) -> LoopRows {
        let of_all = tables.first().map_or(0, |table| table.total_rows(params, 0));
        let tables = tables.iter().map(|t| Records::new(t, params, seed, payload, max_bytes)).collect();
        LoopRows { tables, params: params.clone(), of_all }
    }

    /// Rows of the first table that are in memory.
    pub fn rows(&self) -> u64 {
        self.tables.first().map_or(0, Records::len) as u64
    }

    pub fn memory(&self) -> impl Iterator<Item = &[i64]> {
        self.tables.iter().map(|table| &table.words[..])
    }

    fn table<const WIDTH: usize>(&self, number: usize) -> &[[i64; WIDTH]] {
        self.tables.get(number).map_or(&[], Records::rows)
    }
}

impl Loop {
    /// Work of the loop over `rows` rows, in rows: comparisons of a sort grow faster than its rows.
    pub fn work(self, rows: u64) -> f64 {
        let rows = rows as f64;
        match self {
            Loop::Scan | Loop::Lookup | Loop::Group | Loop::Join | Loop::Sort => rows,
            Loop::Window | Loop::Keys => rows * rows.max(2.0).log2(),
        }
    }
}

/// Multiplies and rotates: the numbers are small and not chosen by an enemy.
#[derive(Default)]
struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_i64(i64::from(*b)));
    }

    fn write_i64(&mut self, number: i64) {
        self.0 = (self.0 ^ number as u64).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
}

type Hashed<T> = HashMap<i64, T, BuildHasherDefault<Multiplied>>;

type Group = (i64, i64);

/// Runs the statements of a workload as loops over rows in memory. Keeps its memory from query to query.
pub struct Looping<'a> {
    of: Loop,
    rows: &'a LoopRows,
    groups: Hashed<Group>,
    sorted: Vec<(i64, i64, i64)>,
    /// Result rows of the last query.
    pub answer: Vec<Vec<i64>>,
    /// Keys of the last index with their rows, in order.
    pub keys: Vec<(i64, i64)>,
}

impl<'a> Looping<'a> {
    /// The statements of a workload that lists `of`, over `rows` of its tables.
    pub fn new(of: Loop, rows: &'a LoopRows) -> Looping<'a> {
        Looping { of, rows, groups: Hashed::default(), sorted: Vec::new(), answer: Vec::new(), keys: Vec::new() }
    }

    /// The memory that it keeps for the rows of a query.
    pub fn memory(&self) -> &[(i64, i64, i64)] {
        &self.sorted
    }

    fn scan(&mut self, below: i64, from: i64) {
        let (mut count, mut sum) = (0, 0);
        for row in self.rows.table::<FACT_WORDS>(0) {
            let passes = (row[fact::DAY] < below) & (row[fact::DAY] >= from) & (row[fact::AMOUNT] >= 50_000);
            count += i64::from(passes);
            sum += if passes { row[fact::AMOUNT] } else { 0 };
        }
        self.answer.push(vec![count, sum]);
    }

    /// SRV-SCAN.
    fn lookup(&mut self, below: i64) {
        let (mut count, mut sum) = (0, 0);
        for [_, k, n, ..] in self.rows.table::<LOOKUP_WORDS>(0) {
            count += i64::from(*k < below);
            sum += if *k < below { *n } else { 0 };
        }
        self.answer.push(vec![count, sum]);
    }

    /// DA-AGG and DA-PARALLEL.
    fn group(&mut self, from: i64) {
        let by = match self.rows.params.get("groups") {
            ..=10 => fact::G10,
            11..=10_000 => fact::G10K,
            _ => fact::G1M,
        };
        self.groups.clear();
        for row in self.rows.table::<FACT_WORDS>(0) {
            if row[fact::DAY] >= from {
                let group = self.groups.entry(row[by]).or_default();
                *group = (group.0 + 1, group.1 + row[fact::AMOUNT]);
            }
        }
        self.largest(10, |key| vec![key]);
    }

    /// DA-JOIN. The keys of the dimensions are dense, but are looked up as a database does.
    fn join(&mut self, segment: i64, below: i64, from: i64) {
        const REGIONS: i64 = 1 << 32;
        let customers = self.rows.table::<CUSTOMER_WORDS>(1).iter().filter(|[_, _, s, ..]| *s == segment);
        let customers: Hashed<i64> = customers.map(|[id, region, ..]| (*id, *region)).collect();
        let products = self.rows.table::<PRODUCT_WORDS>(2).iter().filter(|[_, c, ..]| *c < below);
        let products: Hashed<(i64, i64)> =
            products.map(|[id, category, price, ..]| (*id, (*category, *price))).collect();
        self.groups.clear();
        for row in self.rows.table::<FACT_WORDS>(0).iter().filter(|row| row[fact::DAY] >= from) {
            let Some(region) = customers.get(&row[fact::CUSTOMER]) else { continue };
            let Some((category, price)) = products.get(&row[fact::PRODUCT]) else { continue };
            let group = self.groups.entry(category * REGIONS + region).or_default();
            *group = (group.0 + 1, group.1 + row[fact::AMOUNT] * price);
        }
        self.largest(20, |key| vec![key / REGIONS, key % REGIONS]);
    }

    /// Answers with the `rows` groups of the largest sums.
    fn largest(&mut self, rows: usize, key: impl Fn(i64) -> Vec<i64>) {
        let mut all: Vec<_> = self.groups.iter().map(|(key, (count, sum))| (Reverse(*sum), *key, *count)).collect();
        if all.len() > rows {
            all.select_nth_unstable(rows);
            all.truncate(rows);
        }
        all.sort_unstable();
        self.answer.extend(all.into_iter().map(|(Reverse(sum), k, count)| {
            let mut row = key(k);
            row.extend([count, sum]);
            row
        }));
    }

    /// DA-SORT, the rows in the middle: finds them without sorting the others.
    fn middle(&mut self, from: i64) {
        let facts = self.rows.table::<FACT_WORDS>(0);
        let rows = facts.iter().filter(|row| row[fact::DAY] >= from);
        self.sorted.clear();
        self.sorted.extend(rows.map(|row| (row[fact::AMOUNT], row[fact::ID], row[fact::DAY])));
        let mut rest = &mut self.sorted[..];
        let middle = facts.len().saturating_sub(SORTED) / 2;
        if middle < rest.len() {
            rest.select_nth_unstable(middle);
            rest = &mut rest[middle..];
        }
        if SORTED < rest.len() {
            rest.select_nth_unstable(SORTED);
            rest = &mut rest[..SORTED];
        }
        rest.sort_unstable();
        self.answer.extend(rest.iter().map(|(amount, id, day)| vec![*id, *amount, *day]));
    }

    /// DA-SORT, the highest rows: keeps them in a heap.
    fn top(&mut self, from: i64) {
        let mut kept = BinaryHeap::with_capacity(SORTED + 1);
        for row in self.rows.table::<FACT_WORDS>(0).iter().filter(|row| row[fact::DAY] >= from) {
            let next = Reverse((row[fact::AMOUNT], Reverse(row[fact::ID]), row[fact::DAY]));
            if kept.len() < SORTED || kept.peek().is_some_and(|lowest| next < *lowest) {
                kept.push(next);
                if kept.len() > SORTED {
                    kept.pop();
                }
            }
        }
        let rows = kept.into_sorted_vec();
        self.answer.extend(rows.into_iter().map(|Reverse((amount, Reverse(id), day))| vec![id, amount, day]));
    }

    /// DA-WINDOW: places the rows by customer, then sorts those of each twice.
    fn window(&mut self, from: i64) {
        let facts = self.rows.table::<FACT_WORDS>(0);
        let passed = || facts.iter().filter(|row| row[fact::DAY] >= from);
        let mut ends = vec![0; CUSTOMERS as usize];
        passed().for_each(|row| ends[row[fact::CUSTOMER] as usize] += 1);
        let mut rows = 0;
        for end in &mut ends {
            (*end, rows) = (rows, rows + *end);
        }
        self.sorted.clear();
        self.sorted.resize(rows, (0, 0, 0));
        for row in passed() {
            let end = &mut ends[row[fact::CUSTOMER] as usize];
            self.sorted[*end] = (row[fact::AMOUNT], row[fact::DAY], row[fact::ID]);
            *end += 1;
        }
        let (mut places, mut most, mut start) = (0, i64::MIN, 0);
        for end in ends {
            let rows = &mut self.sorted[start..end];
            // A rank: rows with the same key would share theirs, but the id is unique.
            rows.sort_unstable_by_key(|(amount, _, id)| (Reverse(*amount), *id));
            places += (1..).zip(rows.iter()).map(|(place, _)| place).sum::<i64>();
            rows.sort_unstable_by_key(|(_, day, id)| (*day, *id));
            let mut running = 0;
            for (amount, ..) in rows {
                running += *amount;
                most = most.max(running);
            }
            start = end;
        }
        self.answer.push(vec![rows as i64, places, most]);
    }

    /// DBL-INDEX: the keys with their rows, sorted.
    fn index(&mut self) {
        self.keys.clear();
        self.keys.extend(self.rows.table::<BUILT_WORDS>(0).iter().map(|[id, k, ..]| (*k, *id)));
        self.keys.sort_unstable();
    }
}

impl Execute for Looping<'_> {
    type Error = Infallible;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, Infallible> {
        let arg = |i: usize| if let Some(Arg::Int(number)) = args.get(i) { *number } else { 0 };
        self.answer.clear();
        match (self.of, statement) {
            (Loop::Scan, _) => self.scan(arg(0), arg(1)),
            (Loop::Lookup, _) => self.lookup(arg(0)),
            (Loop::Group, _) => self.group(arg(0)),
            (Loop::Join, _) => self.join(arg(0), arg(1), arg(2)),
            (Loop::Sort, 0) => self.middle(arg(0)),
            (Loop::Sort, _) => self.top(arg(0)),
            (Loop::Window, _) => self.window(arg(0)),
            (Loop::Keys, 0) => self.index(),
            // Dropping the index takes nothing.
            (Loop::Keys, _) => {}
        }
        Ok(self.answer.len() as u64)
    }

    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, Infallible> {
        Ok(rows.into())
    }
}

/// Rows of a table with all columns, one after the other in records of a fixed number of 8-byte words: a number is one
/// word, a byte string as many as it needs.
#[derive(Debug)]
struct Records {
    words: Vec<i64>,
    width: usize,
}

/// Words of a record of `table`, whose columns must have fixed sizes.
fn width(table: &Table) -> usize {
    let words = |fill: &Fill| if let Fill::PayloadOf(bytes) = fill { bytes.div_ceil(8) as usize } else { 1 };
    table.columns.iter().map(|column| words(&column.fill)).sum()
}

impl Records {
    /// The first rows of `table`, up to about `max_bytes`, exactly as a database gets them.
    fn new(table: &Table, params: &Params, seed: u64, payload: Payload, max_bytes: u64) -> Records {
        let width = width(table);
        let most = max_bytes / (width as u64 * 8);
        let rows = table.total_rows(params, 0).min(most);
        let mut words = Vec::with_capacity(rows as usize * width);
        for batch in 0..rows.div_ceil(table.batch_rows(params).max(1)) {
            let (pool, mut row) = (Pool::new(seed, batch as u32, payload), Vec::new());
            for (index, key) in table.batch(params, 0, batch).take_while(|key| (*key as u64) < rows).enumerate() {
                table.row(key, index as u64, params, &pool, &mut row);
                for datum in &row {
                    match datum {
                        Datum::Int(number) | Datum::Typed(Typed { number, .. }) => words.push(*number),
                        Datum::Bytes(bytes) => words.extend(bytes.chunks(8).map(word)),
                    }
                }
            }
        }
        Records { words, width }
    }

    /// Records, if they have `WIDTH` words; else none.
    fn rows<const WIDTH: usize>(&self) -> &[[i64; WIDTH]] {
        if self.width == WIDTH { self.words.as_chunks().0 } else { &[] }
    }

    fn len(&self) -> usize {
        self.words.len() / self.width.max(1)
    }
}

fn word(bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(word)
}

/// Words that are added at a time, so that additions do not wait for each other.
const LANES: usize = 8;

/// The sum of `words`: every byte is read.
pub fn sum(words: &[u64]) -> u64 {
    let (lanes, rest) = words.as_chunks::<LANES>();
    let mut sums = [0_u64; LANES];
    for lane in lanes {
        for (sum, word) in sums.iter_mut().zip(lane) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |all, word| all.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table;

    fn tables(names: &[&str]) -> Vec<Table> {
        names.iter().map(|name| table(name).unwrap().clone()).collect()
    }

    #[test]
    fn loops_read_records_as_wide_as_the_tables() {
        let words = ["fact", "customer", "product", "lookup"].map(|name| width(table(name).unwrap()));
        assert_eq!(words, [FACT_WORDS, CUSTOMER_WORDS, PRODUCT_WORDS, LOOKUP_WORDS]);
        assert_eq!(width(&crate::find("DBL-INDEX").unwrap().tables[0]), BUILT_WORDS);
    }

    #[test]
    fn a_part_of_the_rows_is_their_start() {
        let params = crate::find("DA-JOIN").unwrap().params(&Default::default()).unwrap().with_size(4 << 20);
        let payload = Payload { compressibility: 0.5, duplicates: None };
        let of = |max_bytes| LoopRows::new(&tables(&["fact", "customer"]), &params, 7, payload, max_bytes);
        let (all, part) = (of(u64::MAX), of(1 << 20));
        assert_eq!((all.rows(), part.of_all), (all.of_all, all.of_all));
        assert_eq!(part.rows(), (1 << 20) / (FACT_WORDS * 8) as u64);
        let rows = part.rows() as usize;
        assert_eq!(part.table::<FACT_WORDS>(0), &all.table::<FACT_WORDS>(0)[..rows]);
        assert_eq!(part.table::<CUSTOMER_WORDS>(1).len() as u64, CUSTOMERS, "the dimension fits");
    }

    #[test]
    fn records_have_all_columns() {
        let params = crate::find("DA-SCAN").unwrap().params(&Default::default()).unwrap().with_size(1 << 20);
        let rows = LoopRows::new(&tables(&["fact"]), &params, 7, Payload::default(), u64::MAX);
        let row = rows.table::<FACT_WORDS>(0)[3];
        assert_eq!(size_of_val(&row) as u64, table("fact").unwrap().value_bytes(&params));
        assert_eq!(row[fact::ID], 3);
        assert!(row[8..].iter().all(|word| *word != 0), "the payload is there: {row:?}");
    }

    #[test]
    fn loops_take_longer_over_more_rows() {
        for of in [Loop::Scan, Loop::Lookup, Loop::Group, Loop::Join, Loop::Sort, Loop::Window, Loop::Keys] {
            // Never less than in proportion: a part of the rows promises no more than a database could reach.
            let (one, two) = (of.work(1_000_000), of.work(2_000_000));
            assert!((2.0..2.2).contains(&(two / one)), "{of:?}");
        }
    }

    #[test]
    fn every_word_is_added() {
        for words in [0, 1, 7, 8, 9, 1000] {
            let numbers: Vec<u64> = (1..=words).collect();
            assert_eq!(sum(&numbers), words * (words + 1) / 2);
        }
    }
}
