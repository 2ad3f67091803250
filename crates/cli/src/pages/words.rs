//! A transaction program and its tables as the template of pages takes them, which says them in words: what a DBA reads before the SQL of
//! a target.

use loadline_database::Work;
use loadline_model::format::bytes;
use loadline_workload::kernel::{FIBONACCI, STARTS};
use loadline_workload::{POOL_BYTES, Scope, Step, Table};
use minijinja::{Value, context};

/// The program of `work`: a line for each of its steps, its commit, and its size.
pub(super) fn program(work: &Work) -> Value {
    let program = &work.program;
    let mut lines = Vec::new();
    steps(work, &program.body, "", &mut lines);
    context! {
        steps => lines,
        number => program.body.len() + 1,
        commit => program.commit,
        writes => program.writes(),
        pool_kib => POOL_BYTES / 1024,
        starts => STARTS,
        fibonacci => FIBONACCI.0,
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

/// Adds `body` to `lines`, and the steps within its steps.
fn steps(work: &Work, body: &[Step], indent: &str, lines: &mut Vec<Value>) {
    let within = format!("{indent}   ");
    for (number, step) in (1..).zip(body) {
        let more = match step {
            Step::Execute { statement } => {
                let statement = work.program.statements.get(*statement);
                let sql = statement.map(|s| s.template.render(str::to_owned, |v| format!(":{v}")));
                context! { sql, effect => statement.map(|s| s.effect) }
            }
            Step::Bulk { table, .. } => context! { table => work.workload.tables.get(*table).map(|t| &t.name) },
            Step::Compute { kernel, times } => {
                context! { operations => kernel.operations(*times), result => kernel.expected(*times) }
            }
            _ => context! {},
        };
        lines.push(context! { indent, number, ..context! { ..more, ..Value::from_serialize(step) } });
        match step {
            Step::Repeat { body, .. } => steps(work, body, &within, lines),
            Step::Choose { arms, .. } => {
                let all: u64 = arms.iter().map(|arm| arm.share).sum();
                for (number, arm) in (1..).zip(arms) {
                    lines.push(context! { indent => within, number, share => arm.share, all });
                    steps(work, &arm.body, &format!("{within}   "), lines);
                }
            }
            _ => {}
        }
    }
}

pub(super) fn tables(work: &Work) -> Vec<Value> {
    let table = |table: &Table| {
        context! {
            name => table.name,
            rows => table.rows,
            total => table.total_rows(&work.params, 1),
            size => bytes(work.params.size_bytes() as f64),
            shared => table.scope == Scope::DataSet,
            in_place => table.updated_in_place,
            columns => table.columns,
        }
    };
    work.workload.tables.iter().map(table).collect()
}
