//! Log-writer workloads against procedures that an expert would write by hand for the same rows and bytes: PL/pgSQL with one
//! statement and COMMIT in its loop, called by as many sessions as jobs, on the same private server and a table of the same rows,
//! with the payload in one column (`swap`: in two, as loadline's).
//!
//! Both are judged by the database: the rows that it holds changed (`SUM(n)`) and the redo that it counts.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use loadline_analyze::stats::median;
use loadline_database::{Work, table_names};
use loadline_model::Driver;
use loadline_model::snapshot::counter;
use loadline_workload::{Commit, LogicalType, POOL_BYTES};

use crate::arena::{Arena, ArenaArgs, Outcome, said_by};
use crate::pgbench::{MISSING, place, psql};
use crate::rounds::Contest;

/// Rows of the pool table. A prime, so that a row gets another payload each time, however many rows a job has.
const POOL_ROWS: u64 = 61;
/// Time before a window, s: as long as loadline's own warm-up.
const WARMUP_S: f64 = 1.0;

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcedureArgs {
    /// Workloads to compare
    #[arg(long, value_delimiter = ',', default_value = "LGWR-LAT1,LGWR-LAT25,LGWR-LAT125,LGWR-THR")]
    workloads: Vec<String>,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// A procedure by hand: its name, and what it assigns to a row's payload.
struct ByHand {
    name: &'static str,
    what: &'static str,
    table: String,
    /// More tables of the statement, and the condition that joins them.
    from: &'static str,
    join: String,
    set: String,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    tps: f64,
    redo_mib_s: f64,
}

fn by_hand(work: &Work) -> Vec<ByHand> {
    let bytes = work.params.get("payload");
    let offsets = POOL_BYTES as i64 - bytes;
    let slice = |name, what, at: String| ByHand {
        name,
        what,
        table: WHOLE.to_owned(),
        from: "",
        join: String::new(),
        set: format!("payload = substr(l_value, 1 + {at}, {bytes})"),
    };
    let mut all = vec![
        slice("random slice", "a random slice of a value in a variable", format!("(random() * {offsets})::integer")),
        slice(
            "slice by key",
            "a slice of a value in a variable, by key and transaction",
            format!("((t.id * 61 + l_tx * 4099) % {offsets})::integer"),
        ),
        ByHand {
            name: "pool table",
            what: "a table of prepared payloads, joined by key",
            table: WHOLE.to_owned(),
            from: " FROM hand.pool p",
            join: format!(" AND p.id = (t.id + l_tx) % {POOL_ROWS}"),
            set: "payload = p.payload".to_owned(),
        },
    ];
    if let [head, tail] = payload_columns(work)[..] {
        all.push(ByHand {
            name: "swap",
            what: "two columns change places",
            table: loadlines_table(work),
            from: "",
            join: String::new(),
            set: format!("{head} = {tail}, {tail} = {head}"),
        });
    }
    all
}

/// The table of the procedures that have the payload in one column.
const WHOLE: &str = "hand.redo";

/// Log-writer workloads have one table.
fn loadlines_table(work: &Work) -> String {
    table_names(&work.workload).iter().map(|(_, name)| format!("loadline.{name}")).collect()
}

/// The columns of loadline's table that make up a row's payload.
fn payload_columns(work: &Work) -> Vec<&str> {
    let columns = work.workload.tables.iter().flat_map(|t| &t.columns).filter(|c| c.logical == LogicalType::Bytes);
    columns.map(|c| c.name.as_str()).collect()
}

/// The statements that create the procedures and what they need.
fn setup(work: &Work) -> String {
    let (rows, own) = (work.params.get("rows"), work.params.get("own-rows"));
    let mut sql = format!(
        include_str!("procedures/setup.sql"),
        bytes = work.params.get("payload"),
        pool_rows = POOL_ROWS,
        whole = WHOLE,
        ours = loadlines_table(work),
        payload = payload_columns(work).join(" || "),
    );
    // One row by its key, as an expert would write it.
    let keys = match rows {
        1 => "t.id = l_first".to_owned(),
        rows => format!("t.id BETWEEN l_first AND l_first + {}", rows - 1),
    };
    for (i, ByHand { table, from, join, set, .. }) in by_hand(work).iter().enumerate() {
        sql += &format!(
            include_str!("procedures/procedure.sql"),
            i = i,
            pool_bytes = POOL_BYTES,
            ranges = own / rows,
            rows = rows,
            table = table,
            set = set,
            from = from,
            keys = keys,
            join = join,
        );
    }
    sql
}

/// Runs `sql` and returns what it prints.
fn run_sql(server: &[String], sql: &str) -> Outcome<String> {
    said_by(psql(server)?.args(["-c", sql]), MISSING)
}

/// Runs procedure number `number` in `sessions` sessions for `seconds` and a warm-up.
fn measure(
    arena: &Arena,
    server: &[String],
    (number, form): (usize, &ByHand),
    sessions: u32,
    seconds: u32,
) -> Outcome<Rate> {
    run_sql(server, &format!("VACUUM {}", form.table))?;
    let work = &arena.work;
    let (rows, own) = (work.params.get("rows") as f64, work.params.get("own-rows"));
    let wait = if work.program.commit == Commit::Wait { "on" } else { "off" };
    let all_s = WARMUP_S + f64::from(seconds) + 1.0;
    let start = |session: u32| -> Outcome<Child> {
        let call = format!(
            "CALL hand.run_{number}({}, clock_timestamp() + interval '{all_s} seconds')",
            i64::from(session) * own
        );
        Ok(psql(server)?
            .args(["-c", &format!("SET synchronous_commit = {wait}"), "-c", "SET jit = off", "-c", &call])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?)
    };
    let mut observer = arena.target.observer()?;
    let children = (0..sessions).map(start).collect::<Outcome<Vec<Child>>>()?;
    std::thread::sleep(Duration::from_secs_f64(WARMUP_S));
    let mut look = || -> Outcome<(Instant, f64, f64)> {
        let changed: i64 = run_sql(server, &format!("SELECT sum(n) FROM {}", form.table))?.parse()?;
        let snapshot = observer.snapshot()?;
        let redo = snapshot.counters.get(counter::REDO_BYTES).copied().ok_or("no count of redo")?;
        Ok((Instant::now(), changed as f64, redo))
    };
    let (opened, changed, redo) = look()?;
    std::thread::sleep(Duration::from_secs(u64::from(seconds)));
    let (closed, changed_after, redo_after) = look()?;
    for child in children {
        let out = child.wait_with_output()?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
        }
    }
    let seconds = (closed - opened).as_secs_f64();
    Ok(Rate {
        tps: (changed_after - changed) / rows / seconds,
        redo_mib_s: (redo_after - redo) / seconds / 1024.0 / 1024.0,
    })
}

/// Compares each workload with its procedures by hand.
pub(crate) fn run(args: &ProcedureArgs) -> Outcome<()> {
    for code in &args.workloads {
        let arena = Arena::open("postgres-temp:", code, &args.arena, true)?;
        let server = place(arena.target.as_ref())?;
        run_sql(&server, &setup(&arena.work))?;
        let forms = by_hand(&arena.work);
        for form in &forms {
            println!("  {}: {}", form.name, form.what);
        }
        let clients = &args.arena.clients;
        let contest = Contest {
            points: clients.iter().map(|clients| format!("{code}, {clients} sessions")).collect(),
            contenders: std::iter::once("loadline").chain(forms.iter().map(|form| form.name)).collect(),
            figures: &[("tps", |r: &Rate| r.tps, 0), ("redo MiB/s", |r| r.redo_mib_s, 1)],
        };
        let one = |point: usize, contender: usize| -> Outcome<Rate> {
            arena.target.reset(&arena.work, Driver::Database)?;
            arena.target.settle()?;
            let (clients, seconds) = (clients[point], args.arena.seconds);
            match contender.checked_sub(1) {
                None => {
                    let f = arena.loadline(Driver::Database, clients, seconds)?;
                    Ok(Rate { tps: f.tps, redo_mib_s: f.tps * f.redo_kib_per_tx / 1024.0 })
                }
                Some(form) => measure(&arena, &server, (form, &forms[form]), clients, seconds),
            }
        };
        println!("a round that does not count: whoever comes first creates files of the log, which others use again");
        contest.measure(1, one)?;
        let all = contest.measure(args.arena.rounds, one)?;
        contest.print(&all, (1..=forms.len()).map(|form| (0, form)));
        for (point, found) in contest.points.iter().zip(&all) {
            println!("{point}: loadline / fastest of each round: {}", of_fastest(found));
        }
    }
    Ok(())
}

/// loadline's rate over that of the fastest procedure of each round: that is the highest of several noisy figures, so it is too low
/// for equals.
fn of_fastest(found: &[Vec<Rate>]) -> String {
    let Some((ours, theirs)) = found.split_first() else { return String::new() };
    let fastest = |round: usize| theirs.iter().filter_map(|of| of.get(round)).map(|r| r.tps).fold(0.0, f64::max);
    let ratios: Vec<f64> = ours.iter().enumerate().map(|(round, rate)| rate.tps / fastest(round)).collect();
    format!("tps {:.2} at the median of {ratios:.2?}", median(&ratios).unwrap_or(f64::NAN))
}
