//! Which form of statement writes a database's log fastest: the rows of a log-writer workload, changed in many ways.
//!
//! Each form is a transaction program of its own that changes the same number of rows of the same table, run by
//! loadline's own drivers. Its payload is calibrated, so that all forms write the same redo per transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_analyze::stats::median;
use loadline_database::Work;
use loadline_model::Driver;
use loadline_run::calibrate;
use loadline_workload::{
    ColumnDef, Commit, Effect, Fill, Generator, Params, Program, RowCount, Statement, Step, Table, Workload, find,
};

use crate::arena::{Outcome, loadline, target};

/// Rows of the pool table. A prime, so that a row gets another payload each time, however many rows a job has.
pub(crate) const POOL_ROWS: u64 = 61;
/// Prepared payloads, which forms look up.
const POOL: Table = Table {
    rows: RowCount::Fixed(POOL_ROWS),
    ..Table::per_job(
        "pool",
        &[ColumnDef::int("id", Fill::Key), ColumnDef::bytes("payload", Fill::Payload("payload"))],
        "own-rows",
    )
};

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct FormArgs {
    /// Database
    #[arg(long, default_value = "postgres-temp:")]
    target: String,
    /// Workload whose rows are changed
    #[arg(long, default_value = "LGWR-THR")]
    workload: String,
    /// Run the loop in the database instead of at the client
    #[arg(long)]
    in_database: bool,
    /// Jobs
    #[arg(long, value_delimiter = ',', default_value = "1,8")]
    clients: Vec<u32>,
    /// Only forms whose names contain one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rows that each job owns, instead of the workload's
    #[arg(long)]
    own_rows: Option<i64>,
    /// Seconds per measurement
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Rounds; in each, every form runs once at each number of jobs
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Folder for the private server
    #[arg(long, default_value = "loadline-results")]
    results: std::path::PathBuf,
}

/// A form of statement.
struct Form {
    name: &'static str,
    /// Whether the payload is in two columns, and not in one.
    halves: bool,
    program: fn(&Params, kind: &str) -> Option<Program>,
}

fn rows(params: &Params) -> i64 {
    params.get("rows").max(1)
}

/// Binds `:seq`, `:first` and `:last`: the job's next range of rows.
fn range(params: &Params) -> Vec<Step> {
    let ranges = (params.get("own-rows") / rows(params)).max(1) as u64;
    vec![
        Step::bind("seq", Generator::Sequence),
        Step::bind("first", Generator::OwnRange { rows: rows(params) as u64, ranges }),
        Step::bind("last", Generator::Plus { var: "first", by: rows(params) - 1 }),
    ]
}

/// A program of one statement; its kind of commit is replaced by the workload's.
fn program(steps: Vec<Step>, sql: &str, effect: u64) -> Option<Program> {
    let mut body = steps;
    body.push(Step::Execute { statement: 0 });
    Some(Program { statements: vec![Statement::new(sql, Effect::Change(effect)).ok()?], body, commit: Commit::Wait })
}

fn payload(params: &Params) -> Generator {
    Generator::Payload { bytes: params.get("payload").max(0) as u32 }
}

/// A program of one statement, which changes the job's next range of rows.
fn over_range(params: &Params, sql: &str) -> Option<Program> {
    program(range(params), sql, rows(params) as u64)
}

/// One statement that writes the rows anew in place of an UPDATE. MariaDB counts each of them twice, so their `n` does.
fn written_anew(params: &Params, kind: &str, verb: &str, on_conflict: &str) -> Option<Program> {
    let times = if kind == "mysql" { 2 } else { 1 };
    let sql = format!(
        "{verb} INTO {{redo}} (id, n, head, tail) SELECT t.id, t.n + {times}, t.tail, t.head FROM {{redo}} t WHERE t.id \
         BETWEEN :first AND :last{on_conflict}"
    );
    program(range(params), &sql, rows(params) as u64 * times)
}

const FORMS: &[Form] = &[
    Form {
        name: "one row a statement",
        halves: false,
        program: |params, _| {
            let each = vec![
                Step::bind("seq", Generator::Sequence),
                Step::bind("id", Generator::OwnRow { rows: params.get("own-rows").max(1) as u64 }),
                Step::bind("payload", payload(params)),
                Step::Execute { statement: 0 },
            ];
            let mut p = program(vec![], "UPDATE {redo} SET n = n + 1, payload = :payload WHERE id = :id", 1)?;
            p.body = vec![Step::Repeat { times: rows(params) as u32, body: each }];
            Some(p)
        },
    },
    Form {
        name: "range, one payload",
        halves: false,
        program: |params, _| {
            let mut steps = range(params);
            steps.push(Step::bind("payload", payload(params)));
            let sql = "UPDATE {redo} SET n = n + 1, payload = :payload WHERE id BETWEEN :first AND :last";
            program(steps, sql, rows(params) as u64)
        },
    },
    Form {
        name: "range, halves renewed",
        halves: true,
        program: |params, _| {
            let sql = "UPDATE {redo} SET n = n + 1, {renew head tail} WHERE id BETWEEN :first AND :last";
            over_range(params, sql)
        },
    },
    Form {
        name: "range, rotated",
        halves: false,
        program: |params, kind| {
            let rotated = match kind {
                "mysql" => "CONCAT(SUBSTRING(payload, 2), SUBSTRING(payload, 1, 1))",
                "sqlite" => "CAST(substr(payload, 2) || substr(payload, 1, 1) AS BLOB)",
                _ => "substr(payload, 2) || substr(payload, 1, 1)",
            };
            let sql = format!("UPDATE {{redo}} SET n = n + 1, payload = {rotated} WHERE id BETWEEN :first AND :last");
            over_range(params, &sql)
        },
    },
    Form {
        name: "range, pool looked up",
        halves: false,
        program: |params, _| {
            let sql = format!(
                "UPDATE {{redo}} SET n = n + 1, payload = (SELECT p.payload FROM {{pool}} p WHERE p.id = ({{redo}}.id + \
                 :seq) % {POOL_ROWS}) WHERE id BETWEEN :first AND :last"
            );
            over_range(params, &sql)
        },
    },
    Form {
        name: "range, pool joined",
        halves: false,
        program: |params, kind| {
            let joined = format!("p.id = (t.id + :seq) % {POOL_ROWS}");
            // Variables in the order of their first use.
            let sql = match kind {
                "mysql" => format!(
                    "UPDATE {{redo}} t STRAIGHT_JOIN {{pool}} p ON {joined} SET t.n = t.n + 1, t.payload = p.payload \
                     WHERE t.id BETWEEN :first AND :last"
                ),
                _ => format!(
                    "UPDATE {{redo}} AS t SET n = n + 1, payload = p.payload FROM {{pool}} AS p WHERE t.id BETWEEN :first \
                     AND :last AND {joined}"
                ),
            };
            over_range(params, &sql)
        },
    },
    Form {
        name: "insert or update",
        halves: true,
        program: |params, kind| {
            let on_conflict = match kind {
                "mysql" => " ON DUPLICATE KEY UPDATE n = VALUES(n), head = VALUES(head), tail = VALUES(tail)",
                _ => " ON CONFLICT (id) DO UPDATE SET n = excluded.n, head = excluded.head, tail = excluded.tail",
            };
            written_anew(params, kind, "INSERT", on_conflict)
        },
    },
    Form {
        name: "replace",
        halves: true,
        program: |params, kind| if kind == "postgres" { None } else { written_anew(params, kind, "REPLACE", "") },
    },
];

/// The work of `form` with these parameters.
fn work(like: &Work, form: &Form, kind: &str) -> Option<Work> {
    let program = (form.program)(&like.params, kind)?;
    Some(Work { program: Program { commit: like.program.commit, ..program }, ..like.clone() })
}

/// Measures all forms in turn.
pub(crate) fn run(args: &FormArgs) -> Outcome<()> {
    let target = target(&args.target, &args.results)?;
    let info = target.info()?;
    let kind = match info.product.as_str() {
        "MariaDB" | "MySQL" => "mysql",
        "SQLite" => "sqlite",
        "PostgreSQL" => "postgres",
        other => return Err(format!("no forms for {other}").into()),
    };
    let driver = if args.in_database { Driver::Database } else { Driver::Client };
    let workload = find(&args.workload)?;
    let with = |tables: Vec<Table>| -> &'static Workload {
        Box::leak(Box::new(Workload { tables: Vec::leak(tables), ..*workload }))
    };
    // Rows with their payload in two columns, and in one.
    let halves = with(find("LGWR-THR")?.tables.to_vec());
    let whole = with([find("LGWR-LAT1")?.tables, &[POOL]].concat());
    let given: BTreeMap<String, i64> = args.own_rows.map(|n| ("own-rows".to_owned(), n)).into_iter().collect();
    let wanted = |form: &&Form| args.only.is_empty() || args.only.iter().any(|part| form.name.contains(part.as_str()));
    println!("{} {}, {}, {} driver", info.product, info.version, args.workload, driver);
    println!(
        "{:>5} {:>5}  {:<24} {:>9} {:>11} {:>8} {:>8}",
        "round", "jobs", "form", "tps", "redo MiB/s", "KiB/tx", "payload"
    );
    let mut all: BTreeMap<(u32, &str), Vec<f64>> = BTreeMap::new();
    let most = args.clients.iter().copied().max().unwrap_or(1);
    for round in 0..args.rounds {
        for form in FORMS.iter().filter(wanted) {
            let workload = if form.halves { halves } else { whole };
            let base = Work::new(workload, workload.params(&given)?, 42, 0.0);
            let Some(first) = work(&base, form, kind) else { continue };
            // Calibration makes programs by the workload: each is replaced by the form's.
            let calibration = calibrate::calibrate(&first, |w| {
                let own = work(w, form, kind).unwrap_or_else(|| w.clone());
                calibrate::measure(&target, &own)
            })?;
            let params = calibrate::with(&base, &calibration.parameters).params;
            let Some(work) = work(&Work { params, ..base.clone() }, form, kind) else { continue };
            let work = Arc::new(work);
            target.create(&work)?;
            target.load(&work, most)?;
            if args.in_database {
                target.abilities().driver()?.install(&work)?;
            }
            for &jobs in &args.clients {
                target.reset(&work, driver)?;
                target.settle()?;
                let f = loadline(&target, &work, driver, jobs, args.seconds)?;
                let mib = f.tps * f.redo_kib_per_tx / 1024.0;
                println!(
                    "{:>5} {jobs:>5}  {:<24} {:>9.0} {mib:>11.1} {:>8.2} {:>8}",
                    round + 1,
                    form.name,
                    f.tps,
                    f.redo_kib_per_tx,
                    work.params.get("payload")
                );
                all.entry((jobs, form.name)).or_default().push(mib);
            }
        }
    }
    println!("\nmedian redo, MiB/s (every round)");
    for ((jobs, name), rates) in &all {
        let each: Vec<String> = rates.iter().map(|r| format!("{r:.0}")).collect();
        println!("{jobs:>5} jobs  {name:<24} {:>7.1} ({})", median(rates).unwrap_or(f64::NAN), each.join(" "));
    }
    Ok(())
}
