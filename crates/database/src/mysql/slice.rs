//! The in-database driver, and its sessions: one CALL per slice, times converted between the two clocks.

use std::sync::Arc;

use loadline_workload::{JobStart, Pool};

use super::procedure::{self, CLOCK, LOST, MOMENTS, NEXT, OVERHEAD};
use super::schema;
use super::server::Mysql;
use super::wire::{Connection, Prepared};
use crate::error::TargetError;
use crate::procedure::arguments;
use crate::role::{Attempts, Canceller, DatabaseDriver, DatabaseSession, Slice, median_of_three};
use crate::server_clock::{Moments, ServerClock};
use crate::work::Work;

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
        self.at_first(|c| schema::install(c, work, self.first().member.is_some()))
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        let endpoint = self.endpoint_of(work, job)?;
        let mut connection = endpoint.connect()?;
        endpoint.is_of_job(&connection, job);
        // Holds the moments of a second on the fastest server.
        connection.run("SET SESSION max_heap_table_size = 67108864")?;
        // The default allows no procedure to call itself.
        connection.run("SET SESSION max_sp_recursion_depth = 255")?;
        connection.run(&procedure::create_moments())?;
        let call = connection.prepare(&procedure::call(work))?;
        let clock = ServerClock::measure(&mut || read_clock(&mut connection), 8)?;
        connection.wait_with(None)?;
        let (pool, start) = (work.pool_of_job(job), work.start(job));
        Ok(Box::new(MysqlDatabaseSession { connection, call, pool, start, next: 0, clock }))
    }

    fn overhead_ns(&self) -> Result<Option<f64>, TargetError> {
        const ITERATIONS: u32 = 5_000;
        self.first().admin(|c| {
            c.run(&format!("DROP PROCEDURE IF EXISTS {OVERHEAD}"))?;
            c.run(&procedure::create_overhead())?;
            c.run(&procedure::create_moments())?;
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
        let returned = c.query(&format!("SELECT {NEXT}, {}", LOST.join(", ")))?;
        let mut numbers = returned.iter().flatten().map(|v| v.as_ref()?.parse::<i64>().ok());
        let mut number = || numbers.next().flatten();
        let (next, conflicts, failed_commits) = (number(), number(), number());
        self.next = next.ok_or_else(|| TargetError::Statement("the procedure returned no sequence number".into()))?;
        let rows = c.query(&format!("SELECT t FROM {MOMENTS} ORDER BY k"))?;
        c.run(&format!("DELETE FROM {MOMENTS}"))?;
        let moments = rows.iter().flatten().flatten().map(|t| parse(t)).collect::<Option<Vec<_>>>();
        let moments = moments.map(|m| m.concat()).filter(|m| !m.is_empty());
        let moments = moments.ok_or_else(|| {
            TargetError::Statement("the procedure returned times that cannot be read: run `loadline clean`".into())
        })?;
        let count = |n: Option<i64>| n.map_or(0, i64::unsigned_abs);
        let lost = Attempts { conflicts: count(conflicts), failed_commits: count(failed_commits) };
        Ok(Slice { lost, ..self.clock.slice(moments.into_iter())? })
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
    Ok(c.value(&format!("SELECT {CLOCK}"))?.and_then(|v| v.parse().ok()))
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
