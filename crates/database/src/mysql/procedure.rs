//! The in-database driver: a transaction program as one SQL/PSM procedure with COMMIT in its loop.
//!
//! SQL/PSM has no arrays. The procedure appends three moments per transaction to a text. At a few KiB it
//! moves the text to a temporary table in memory, because each append copies the whole text. A session has one CALL per slice, whose
//! times are converted between the two clocks.

use std::sync::{Arc, LazyLock};

use loadline_workload::{Commit, JobStart, Kernel, Pool};

use super::knowledge::{KNOWLEDGE, message};
use super::schema;
use super::server::Mysql;
use super::wire::{Connection, Prepared};
use crate::dialect::MARK;
use crate::error::TargetError;
use crate::names::own;
use crate::procedure::{self, Body, arguments};
use crate::role::{Attempts, Canceller, DatabaseDriver, DatabaseSession, Slice, median_of_three};
use crate::server_clock::{Moments, ServerClock};
use crate::work::Work;
use crate::workload_tables::LoadsTables as _;

/// The procedure that measures the loop itself.
const OVERHEAD: &str = "`loadline`.`overhead_run`";

/// Made once: what it takes before it is sent counts as a way to the server.
static READ_CLOCK: LazyLock<String> = LazyLock::new(|| text("read-clock"));

fn text(name: &str) -> String {
    KNOWLEDGE.routines.text(name, &[])
}

fn name(work: &Work) -> String {
    KNOWLEDGE.dialect.full_name(&own(&work.workload, "run"))
}

/// The statement that runs a slice. Arguments: first key, first new key, first draw, pool, end of the slice,
/// next sequence number.
fn call(work: &Work) -> String {
    format!("CALL {}(?, ?, ?, ?, ?, ?)", name(work))
}

/// The statement that creates the procedure. In a cluster a transaction can lose against one of another node: it is then tried again
/// with the same values, at once and later with pauses, as by the client driver.
pub(super) fn create(work: &Work, in_cluster: bool) -> String {
    let Body { declarations, text: body, loops, .. } = procedure::body(work, &KNOWLEDGE.dialect, 2);
    let loops: String = (1..=loops).map(|depth| format!("  DECLARE l_repeat_{depth} BIGINT;\n")).collect();
    let wait = match work.program.commit {
        Commit::Wait => "",
        Commit::Nowait => " -- innodb_flush_log_at_trx_commit is not 1",
    };
    // Errors are those of `Connection::error`. A call that never ends is cancelled at the end of the test.
    let again = |part: &str| if in_cluster { text(part) } else { String::new() };
    let parameters =
        "p_first_key BIGINT, p_new_key BIGINT, p_draw BIGINT, p_pool LONGBLOB, p_until BIGINT, p_next BIGINT";
    let declare =
        format!("{declarations}{loops}  DECLARE l_seq BIGINT DEFAULT p_next - 1;\n{}", again("again-declare"));
    let body = format!("{}    START TRANSACTION;\n{body}", again("again-begin"));
    let commit = format!("    COMMIT;{wait}\n{}", again("again-end"));
    let finish = format!("{}{}", text("set-next"), again("again-finish"));
    routine(&name(work), parameters, &declare, ["", &body, &commit, "l_end >= p_until", &finish])
}

/// This loop without statements and commits, `p_next` times.
fn create_overhead() -> String {
    let each = ["    SET l_n = l_n + 1;\n", "", "", "l_n >= p_next", ""];
    routine(OVERHEAD, "p_next BIGINT", "  DECLARE l_n BIGINT DEFAULT 0;\n", each)
}

/// A procedure with what it does in each transaction before it, in it, and at its commit; when it ends, and what it does then.
fn routine(
    name: &str,
    parameters: &str,
    declare: &str,
    [count, body, commit, leave_when, finish]: [&str; 5],
) -> String {
    let own = [("name", name), ("mark", MARK), ("parameters", parameters), ("declare", declare), ("count", count)];
    let end = [("commit", commit), ("leave-when", leave_when), ("finish", finish), ("body", body)];
    KNOWLEDGE.routines.text("run", &[&own[..], &end].concat())
}

/// The recursive procedure that the program calls, if it does: its name and its CREATE statement.
pub(super) fn recursive(work: &Work) -> Option<(String, String)> {
    let name = KNOWLEDGE.dialect.full_name("fibonacci");
    let create = || KNOWLEDGE.routines.text("fibonacci", &[("fibonacci-name", &name), ("mark", MARK)]);
    work.program.computes(Kernel::Fibonacci).then(|| (name.clone(), create()))
}

/// Creates the workload's procedure and the routines that it calls; `in_cluster`: see [`create`].
fn install(c: &mut Connection, work: &Work, in_cluster: bool) -> Result<(), TargetError> {
    schema::ensure(c)?;
    let own = (name(work), create(work, in_cluster));
    for (name, create) in recursive(work).into_iter().chain([own]) {
        c.run(&format!("DROP PROCEDURE IF EXISTS {name}"))?;
        c.run(&create)?;
    }
    Ok(())
}

struct MysqlDatabaseSession {
    connection: Connection,
    call: Prepared,
    pool: Arc<Pool>,
    start: JobStart,
    next: i64,
    clock: ServerClock,
}

impl DatabaseDriver for Mysql {
    fn install(&self, work: &Work) -> Result<(), TargetError> {
        self.in_step(|| self.first().admin(|c| install(c, work, self.first().member.is_some())))
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        let mut connection = self.job_session(work, job)?;
        // Holds the moments of a second on the fastest server.
        connection.run("SET SESSION max_heap_table_size = 67108864")?;
        // The default allows no procedure to call itself.
        connection.run("SET SESSION max_sp_recursion_depth = 255")?;
        connection.run(&text("create-moments"))?;
        let call = connection.prepare(&call(work))?;
        let clock = ServerClock::measure(&mut || read_clock(&mut connection), 8)?;
        connection.wait_with(None)?;
        let (pool, start) = (work.pool_of_job(job), work.start(job));
        Ok(Box::new(MysqlDatabaseSession { connection, call, pool, start, next: 0, clock }))
    }

    fn overhead_ns(&self) -> Result<Option<f64>, TargetError> {
        const ITERATIONS: u32 = 5_000;
        self.first().admin(|c| {
            c.run(&format!("DROP PROCEDURE IF EXISTS {OVERHEAD}"))?;
            c.run(&create_overhead())?;
            c.run(&text("create-moments"))?;
            let median = median_of_three(|| {
                let begin = loadline_storage::now_ns();
                c.run(&format!("CALL {OVERHEAD}({ITERATIONS})"))?;
                Ok(Some(loadline_storage::now_ns().saturating_sub(begin) as f64 / f64::from(ITERATIONS)))
            })?;
            c.run(&format!("DROP PROCEDURE {OVERHEAD}"))?;
            Ok(median)
        })
    }
}

impl DatabaseSession for MysqlDatabaseSession {
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError> {
        let c = &mut self.connection;
        self.clock.refresh(&mut || read_clock(c))?;
        let until_us = self.clock.server_us(until_ns);
        let args = arguments(&self.start, &self.pool, until_us, self.next);
        c.execute(&mut self.call, &args)?;
        let returned = c.query(&text("returned"))?;
        let mut numbers = returned.iter().flatten().map(|v| v.as_ref()?.parse::<i64>().ok());
        let mut number = || numbers.next().flatten();
        let (next, conflicts, failed_commits) = (number(), number(), number());
        self.next = next.ok_or_else(|| TargetError::Statement("the procedure returned no sequence number".into()))?;
        let rows = c.query(&text("read-moments"))?;
        c.run(&text("clear-moments"))?;
        let moments = rows.iter().flatten().flatten().map(|t| parse(t)).collect::<Option<Vec<_>>>();
        let moments = moments.map(|m| m.concat()).filter(|m| !m.is_empty());
        let moments = moments.ok_or_else(|| TargetError::Statement(message("no-moments", &[])))?;
        let count = |n: Option<i64>| n.map_or(0, i64::unsigned_abs);
        let lost = Attempts { conflicts: count(conflicts), failed_commits: count(failed_commits) };
        Ok(Slice { lost, ..self.clock.slice(&moments)? })
    }

    fn canceller(&self) -> Canceller {
        self.connection.canceller.clone()
    }
}

/// Parses lines of `start time-to-commit commit-time`, µs.
fn parse(text: &str) -> Option<Vec<Moments>> {
    text.lines()
        .map(|line| {
            let mut numbers = line.split(' ').map(|n| n.parse::<i64>().ok());
            let (start, work, commit) = (numbers.next()??, numbers.next()??, numbers.next()??);
            numbers.next().is_none().then_some([start, start + work, start + work + commit])
        })
        .collect()
}

/// The server's time, µs since 1970.
fn read_clock(c: &mut Connection) -> Result<Option<i64>, TargetError> {
    Ok(c.value(&READ_CLOCK)?.and_then(|v| v.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        assert_eq!(parse("100 5 20\n130 6 30\n").unwrap(), [[100, 105, 125], [130, 136, 166]]);
        for other in ["1 2", "a b c", "1 2 3 4", "\u{fffd}"] {
            assert!(parse(other).is_none());
        }
    }
}
