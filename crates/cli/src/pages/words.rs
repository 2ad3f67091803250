//! A transaction program in words: what a DBA reads before the SQL of a target.

use std::fmt::Write;

use loadline_database::Work;
use loadline_workload::kernel::{FIBONACCI, STARTS};
use loadline_workload::{
    Commit, Effect, Fill, Generator, Kernel, LogicalType, POOL_BYTES, RowCount, Scope, Step, Sweep, Table, Workload,
};

/// The program of `work` as a numbered list, one line a step.
pub(super) fn program(work: &Work) -> String {
    let mut out = String::new();
    let mut number = steps(work, &work.program.body, "", &mut out);
    number += 1;
    let commit = match work.program.commit {
        Commit::Wait if !work.program.writes() => "Commit: there is nothing to make durable.",
        Commit::Wait => "Commit, and wait until it is durable.",
        Commit::Nowait => "Commit, and do not wait until it is durable.",
    };
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(out, "{number}. {commit}");
    if work.program.computations_per_tx() > 0 {
        let _ = writeln!(out, "\nIn all: {}, and the commit.", count(work.program.operations_per_tx(), "operation"));
        return out;
    }
    let (statements, rows) = (work.program.statements_per_tx(), work.program.rows_per_tx());
    // Of some statements nothing says how many rows they touch.
    let open = work.program.statements.iter().any(|s| s.effect.rows().is_none());
    if open {
        let mean = work.program.mean_statements_per_tx();
        let largest = count(statements, "statement");
        let _ = if work.program.varies() {
            writeln!(
                out,
                "\nIn all, on average: {mean:.2} statements, and the commit. The largest transaction has {largest}."
            )
        } else {
            writeln!(out, "\nIn all: {largest}, and the commit.")
        };
        return out;
    }
    if work.program.varies() {
        let _ = writeln!(
            out,
            "\nIn all, on average: {:.2} statements, which touch {:.2} rows, and the commit. The largest transaction has {}, \
             which touch {}.",
            work.program.mean_statements_per_tx(),
            work.program.mean_rows_per_tx(),
            count(statements, "statement"),
            count(rows, "row")
        );
        return out;
    }
    let _ = writeln!(
        out,
        "\nIn all: {}, which touch{} {}, and the commit.",
        count(statements, "statement"),
        if statements == 1 { "es" } else { "" },
        count(rows, "row")
    );
    out
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
pub(super) fn tables(work: &Work) -> String {
    let mut out = String::new();
    for table in &work.workload.tables {
        let in_place = if table.updated_in_place { " Rows are changed in place, over and over." } else { "" };
        let total = table.total_rows(&work.params, 1);
        let rows = match &table.rows {
            RowCount::PerJob(param) => {
                format!(
                    "every job owns {} of it (parameter `{param}`), loaded before the first test",
                    count(total, "row")
                )
            }
            RowCount::Total(param) => {
                format!(
                    "{} (parameter `{param}`, independent of `--size`), loaded before the first test",
                    count(total, "row")
                )
            }
            RowCount::Fixed(rows) => format!("{}, loaded before the first test", count(*rows, "row")),
            RowCount::Share { .. } => format!(
                "as many rows as `--size` asks for ({} at {})",
                count(total, "row"),
                loadline_model::format::bytes(work.params.size_bytes() as f64)
            ),
            RowCount::Empty => "empty before every test: the workload fills it".to_owned(),
        };
        let shared = match table.scope {
            Scope::DataSet => " It belongs to the data set, which many workloads read and none changes.",
            Scope::Workload => "",
        };
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}`{}`: {rows}.{shared}{in_place}\n", table.name);
        out.push_str(&columns(table));
    }
    out
}

fn columns(table: &Table) -> String {
    let mut out = "| column | type | holds at first |\n| --- | --- | --- |\n".to_owned();
    for (i, c) in table.columns.iter().enumerate() {
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
        let _ = writeln!(out, "| `{}` | {kind}{key} | {holds} |", c.name);
    }
    out
}

/// How the load grows.
pub(super) fn load(w: &Workload, work: &Work) -> String {
    if let Sweep::Parameter { name, values, then_jobs, .. } = &w.sweep {
        let values = values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let then = if *then_jobs { " A sweep over jobs follows, with the parameter's default." } else { "" };
        return format!(
            "One session repeats this transaction, with the parameter `{name}` at {values} in turn.{}{then}",
            if w.workers.as_ref() == Some(name) {
                " The sweep ends at the most workers that the server allows."
            } else {
                ""
            }
        );
    }
    if w.sweep == Sweep::Once {
        return "One session repeats this transaction: there is a single test.".to_owned();
    }
    let Some(scan) = &w.scan else {
        return "A job is one session that repeats this transaction. A sweep doubles the number of jobs from 1 until \
                throughput no longer grows, or takes those of `--jobs`."
            .to_owned();
    };
    let value = |name: &str| work.params.get(name);
    let pace = match value(&scan.pace_mib) {
        0 => "as fast as the target can".to_owned(),
        mib => format!("no faster than {mib} MiB/s (`{}`)", scan.pace_mib),
    };
    format!(
        "One session runs this transaction with a varying number of repetitions, so that it writes 0 to {} KiB of redo \
         (`{}`) in steps of {} KiB (`{}`): {} of each size (`{}`), all in random order. Redo is generated {pace}. Each commit \
         is timed. The transaction above is one step: the repetitions (`{}`) that write 64 KiB of redo.",
        value(&scan.most_kib),
        scan.most_kib,
        value(&scan.step_kib),
        scan.step_kib,
        count(value(&scan.samples).max(0) as u64, "transaction"),
        scan.samples,
        scan.rows
    )
}

/// `1 row`, `25 rows`.
fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
