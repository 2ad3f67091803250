//! Workloads byte by byte: the SQL of each on each target, its rows, and the draws of its jobs.

use std::convert::Infallible;
use std::sync::Arc;

use loadline_database::{TARGETS, Work};
use loadline_workload::script::{Event, Mix, Script};
use loadline_workload::{Arg, CATALOGUE, Datum, Execute};

use crate::kept::{self, Items};

/// Rows of each table, and transactions of a job.
const COUNT: usize = 1000;
/// Jobs whose draws are hashed: the first, and one with other rows and keys.
const JOBS: [u32; 2] = [0, 3];

/// FNV-1a of 64 bits.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a text or a number, and its end.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// Hashes what a job sends; every statement touches the rows that it must.
struct Sent<'a> {
    hash: &'a mut Hash,
    rows: Vec<u64>,
}

impl Execute for Sent<'_> {
    type Error = Infallible;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, Infallible> {
        self.hash.add(&statement.to_le_bytes());
        for arg in args {
            match arg {
                Arg::Int(value) => self.hash.add(&value.to_le_bytes()),
                Arg::Bytes(bytes) => self.hash.add(bytes),
            }
        }
        Ok(self.rows[statement])
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, Infallible> {
        for number in [table as i64, first, i64::from(rows)] {
            self.hash.add(&number.to_le_bytes());
        }
        Ok(rows.into())
    }
}

/// The SQL of each workload on each target, for each driver.
fn sql(work: &Work, all: &mut Items) {
    for target in TARGETS {
        let mut hashes = [("both", Hash::new()), ("database", Hash::new()), ("client", Hash::new())];
        for piece in target.render(work) {
            let driver = piece.driver.map_or("both".to_owned(), |d| d.to_string());
            let (_, hash) = hashes.iter_mut().find(|(name, _)| *name == driver).unwrap();
            hash.add(piece.title.as_bytes());
            hash.add(piece.sql.as_bytes());
        }
        for (driver, hash) in hashes.iter().filter(|(_, hash)| hash.0 != Hash::new().0) {
            all.insert(format!("sql {} {} {driver}", target.scheme(), work.workload.code), hash.text());
        }
    }
}

/// The first rows of each table of a workload.
fn rows(work: &Work, all: &mut Items) {
    let pool = work.pool(0);
    for table in &work.workload.tables {
        let mut hash = Hash::new();
        let mut row = Vec::new();
        for key in 0..COUNT {
            table.row(key as i64, key as u64, &work.params, &pool, &mut row);
            for datum in &row {
                match datum {
                    Datum::Int(value) => hash.add(&value.to_le_bytes()),
                    Datum::Bytes(bytes) => hash.add(bytes),
                    Datum::Typed(value) => hash.add(value.text().as_bytes()),
                }
            }
        }
        all.insert(format!("rows {} {}", work.workload.code, table.name), hash.text());
    }
}

/// Draws of a workload's jobs: the arguments of all statements of their first transactions.
fn draws(work: &Work, all: &mut Items) {
    let mut hash = Hash::new();
    for job in JOBS {
        let mut stream = work.stream(job).unwrap();
        let rows = work.program.statements.iter().map(|s| s.effect.rows().unwrap_or(1)).collect();
        let mut sent = Sent { hash: &mut hash, rows };
        for _ in 0..COUNT {
            // What only a database can compute ends the transaction here; its text is among the SQL.
            let _ = stream.transaction(&mut sent);
        }
        hash.add(&stream.sequence.to_le_bytes());
    }
    all.insert(format!("draws {}", work.workload.code), hash.text());
}

/// Draws of a pgbench script's clients, by each function that draws.
fn scripts(all: &mut Items) {
    for (name, draw) in [
        ("random", "random(1, 1000000)"),
        ("random_exponential", "random_exponential(1, 1000000, 3.5)"),
        ("random_gaussian", "random_gaussian(1, 1000000, 4.0)"),
        ("random_zipfian", "random_zipfian(1, 1000000, 1.1)"),
        ("permute", "permute(random(0, 999), 1000)"),
        ("hash", "hash(random(0, 999))"),
        ("hash_fnv1a", "hash_fnv1a(random(0, 999))"),
    ] {
        let script = Script::read("net.sql", &format!("\\set x {draw}\nSELECT :x;\n")).unwrap();
        let mix = Arc::new(Mix::new(vec![(script, 1)], Vec::new()).unwrap());
        let mut hash = Hash::new();
        for job in JOBS {
            let mut client = mix.client(job, 8, 42, 1);
            client.choose();
            let mut sent = 0;
            while sent < COUNT {
                if let Event::Statement(text, _) = client.advance().unwrap() {
                    hash.add(text.as_bytes());
                    sent += 1;
                }
            }
        }
        all.insert(format!("script {name}"), hash.text());
    }
}

fn hashes() -> Items {
    let mut all = Items::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/queue.toml");
    let own = loadline_workload::read_file("queue.toml", &std::fs::read_to_string(example).unwrap()).unwrap();
    let known = CATALOGUE.iter().map(|workload| Work::from_catalogue(&workload.code, &[]).unwrap());
    for work in known.chain([Work::with(own, &[]).unwrap()]) {
        sql(&work, &mut all);
        rows(&work, &mut all);
        draws(&work, &mut all);
    }
    scripts(&mut all);
    all
}

#[test]
fn sql_rows_and_draws_are_what_they_were() {
    kept::compare("hashes", &kept::items("hashes.txt"), &hashes());
}
