//! What the pages of workloads say of a transaction program and its tables: what a DBA reads before the SQL of a target.

use std::fmt::Write;

use loadline_database::Work;
use loadline_workload::kernel::{FIBONACCI, STARTS};
use loadline_workload::{
    ColumnDef, Commit, Effect, Fill, Generator, Kernel, LogicalType, POOL_BYTES, RowCount, Scope, Step, Table,
};
use minijinja::{Value, context};

use super::count;

/// The program of `work`: its steps, one line each, its commit, and its size.
pub(super) fn program(work: &Work) -> Value {
    let program = &work.program;
    let mut lines = String::new();
    let number = steps(work, &program.body, "", &mut lines) + 1;
    let commit = match program.commit {
        Commit::Wait if !program.writes() => "Commit: there is nothing to make durable.",
        Commit::Wait => "Commit, and wait until it is durable.",
        Commit::Nowait => "Commit, and do not wait until it is durable.",
    };
    context! {
        steps => lines,
        number,
        commit,
        operations => (program.computations_per_tx() > 0).then(|| program.operations_per_tx()),
        // Of some statements nothing says how many rows they touch.
        open => program.statements.iter().any(|s| s.effect.rows().is_none()),
        varies => program.varies(),
        statements => program.statements_per_tx(),
        rows => program.rows_per_tx(),
        mean => format!("{:.2}", program.mean_statements_per_tx()),
        mean_rows => format!("{:.2}", program.mean_rows_per_tx()),
    }
}

fn steps(work: &Work, body: &[Step], indent: &str, out: &mut String) -> usize {
    for (i, step) in body.iter().enumerate() {
        let n = i + 1;
        match step {
            Step::Bind { var, generator } => {
                let _ = writeln!(out, "{indent}{n}. `:{var}` is {}.", value(generator));
            }
            Step::Execute { statement } => {
                let Some(s) = work.program.statements.get(*statement) else { continue };
                let sql = s.template.render(str::to_owned, |v| format!(":{v}"));
                let effect = match s.effect {
                    Effect::Change(rows) => {
                        format!("It must change {}; any other number is an error.", count(rows, "row"))
                    }
                    Effect::ChangeBetween(low, high) => {
                        format!("It must change {low} to {}; any other number is an error.", count(high, "row"))
                    }
                    Effect::Read(rows) => {
                        format!(
                            "It must return {}, and all are fetched; any other number is an error.",
                            count(rows, "row")
                        )
                    }
                    Effect::ReadAny => "All rows that it returns are fetched.".to_owned(),
                    Effect::Command => "It returns no rows.".to_owned(),
                };
                let _ = writeln!(out, "{indent}{n}. Statement {statement}: `{sql}`. {effect}");
            }
            Step::Bulk { table, rows } => {
                let name = work.workload.tables.get(*table).map_or("", |t| &t.name);
                let _ = writeln!(
                    out,
                    "{indent}{n}. Add {} with new keys to `{name}`, by the database's fastest way to load many rows.",
                    count(u64::from(*rows), "row")
                );
            }
            Step::Compute { kernel, times } => {
                let (operations, result) = (kernel.operations(*times), kernel.expected(*times));
                let _ = writeln!(
                    out,
                    "{indent}{n}. In the database's own language: {}: {operations} operations. It starts from the \
                     transaction's number modulo {STARTS}; the result must be {result} more than that, or it is an error.",
                    computation(*kernel, *times)
                );
            }
            Step::Repeat { times, body } => {
                let _ = writeln!(out, "{indent}{n}. {times} times:");
                steps(work, body, &format!("{indent}   "), out);
            }
            Step::Choose { var, arms } => {
                let all: u64 = arms.iter().map(|a| a.share).sum();
                let _ = writeln!(out, "{indent}{n}. By `:{var}`, one of {}:", arms.len());
                for (i, arm) in arms.iter().enumerate() {
                    let _ = writeln!(out, "{indent}   {}. in {} of {all} transactions:", i + 1, arm.share);
                    steps(work, &arm.body, &format!("{indent}      "), out);
                }
            }
        }
    }
    body.len()
}

fn value(generator: &Generator) -> String {
    match *generator {
        Generator::Sequence => {
            "the next number of the job's own sequence (0, 1, 2, … over all its transactions); the values below follow \
             from it"
                .to_owned()
        }
        Generator::OwnRow { rows } => format!(
            "the key of the next of the job's own {}, in turn: its first key + (D + sequence) mod {rows}; D is drawn for \
             the job in each test",
            count(rows, "row")
        ),
        Generator::OwnRange { rows, ranges } => format!(
            "the first key of the next of the job's own {} of {rows} consecutive rows, in turn: its first key + ((D + sequence) \
             mod {ranges}) · {rows}; D is drawn for the job in each test",
            count(ranges, "range")
        ),
        Generator::Payload { bytes } => format!(
            "{bytes} bytes of the job's pool of {} KiB of random bytes (made from the seed; with \
             `--payload-compressibility`, a share of them zeros), from an offset that follows from the sequence",
            POOL_BYTES / 1024
        ),
        Generator::Uniform { from, range, .. } => format!(
            "a uniform random number from {from} to {}; it follows from seed, job and sequence, so both drivers draw the \
             same",
            i128::from(from) + i128::from(range) - 1
        ),
        Generator::Turn { of } => format!(
            "a number from 0 to {}, in turn with the sequence; each job starts at another",
            of.saturating_sub(1)
        ),
        Generator::NewKey => "a key that no other job and no earlier transaction used".to_owned(),
        Generator::Constant(value) => value.to_string(),
        Generator::Plus { ref var, by } => format!("`:{var}` + {by}"),
    }
}

fn computation(kernel: Kernel, times: u32) -> String {
    match kernel {
        Kernel::Add => format!("add the numbers from 1 to {times} in a loop"),
        Kernel::Fibonacci => format!(
            "compute the Fibonacci number {} by a routine that calls itself, {times} times, and add up the results",
            FIBONACCI.0
        ),
        Kernel::Prime => format!("count the primes up to {times} by trial division"),
        Kernel::Text => format!("{times} rounds of cutting, joining and searching texts"),
        Kernel::Builtin => format!("{times} rounds of calls of built-in functions"),
    }
}

/// The tables that a workload works on.
pub(super) fn tables(work: &Work) -> Vec<Value> {
    let table = |table: &Table| {
        let total = count(table.total_rows(&work.params, 1), "row");
        let rows = match &table.rows {
            RowCount::PerJob(param) => {
                format!("every job owns {total} of it (parameter `{param}`), loaded before the first test")
            }
            RowCount::Total(param) => {
                format!("{total} (parameter `{param}`, independent of `--size`), loaded before the first test")
            }
            RowCount::Fixed(rows) => format!("{}, loaded before the first test", count(*rows, "row")),
            RowCount::Share { .. } => {
                let size = loadline_model::format::bytes(work.params.size_bytes() as f64);
                format!("as many rows as `--size` asks for ({total} at {size})")
            }
            RowCount::Empty => "empty before every test: the workload fills it".to_owned(),
        };
        let (shared, in_place) = (table.scope == Scope::DataSet, table.updated_in_place);
        context! { name => table.name, rows, shared, in_place, columns => columns(table) }
    };
    work.workload.tables.iter().map(table).collect()
}

/// Name, type and content of each column.
fn columns(table: &Table) -> Vec<[String; 3]> {
    let column = |(i, c): (usize, &ColumnDef)| {
        let kind = match c.logical {
            LogicalType::Int => "integer, 64 bits",
            LogicalType::Bytes => "bytes",
            LogicalType::Text => "text",
            LogicalType::Timestamp => "timestamp",
            LogicalType::Numeric => "decimal number",
            LogicalType::Boolean => "boolean",
            LogicalType::Json => "JSON",
        };
        let holds = match &c.fill {
            Fill::Key | Fill::PlainKey => "the row's key".to_owned(),
            Fill::Zero => "0".to_owned(),
            Fill::Constant(value) => value.to_string(),
            Fill::Scattered { range, .. } => format!("a scattered number from 0 to {}", range.saturating_sub(1)),
            Fill::Words { length, range, .. } if *range == i64::MAX as u64 => format!("{length} characters"),
            Fill::Words { length, range, .. } => format!("{length} characters, {range} different values"),
            Fill::PayloadOf(bytes) => format!("{bytes} random bytes"),
            Fill::Payload(size) => format!("random bytes; their number is the parameter `{size}`"),
            Fill::FirstHalf(size) | Fill::SecondHalf(size) => format!("random bytes; half of the parameter `{size}`"),
        };
        let holds = match c.logical {
            LogicalType::Timestamp => format!("2000-01-01 00:00:00 and {holds} s"),
            LogicalType::Numeric => format!("{holds} hundredths"),
            LogicalType::Boolean => format!("whether this is odd: {holds}"),
            _ => holds,
        };
        let key = if i == 0 && c.fill != Fill::PlainKey { ", primary key" } else { "" };
        [c.name.clone(), format!("{kind}{key}"), holds]
    };
    table.columns.iter().enumerate().map(column).collect()
}
