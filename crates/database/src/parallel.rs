//! The queries of a workload written out, to try how many parallel workers run them.

use loadline_workload::{Arg, Execute, Program};

use crate::error::TargetError;
use crate::work::Work;

/// Notes a program's statements with their numbers, and touches as many rows as each must.
struct Notes<'a> {
    program: &'a Program,
    statements: Vec<(usize, Vec<i64>)>,
}

impl Execute for Notes<'_> {
    type Error = TargetError;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let numbers = args.iter().map(|arg| match arg {
            Arg::Int(i) => Ok(*i),
            Arg::Bytes(_) => Err(TargetError::Usage("a query with bytes is not tried beforehand".into())),
        });
        self.statements.push((statement, numbers.collect::<Result<_, _>>()?));
        Ok(self.program.statements.get(statement).and_then(|s| s.effect.rows()).unwrap_or(0))
    }

    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, TargetError> {
        Ok(rows.into())
    }
}

/// Queries of the first transaction of job 0, in full: with numbers in place of variables.
///
/// # Errors
/// When the program is not sound, or a query takes what is no number.
pub(crate) fn queries(
    work: &Work,
    table: impl Fn(&str) -> String,
    first_rows: impl Fn(u64, u64) -> String,
) -> Result<Vec<String>, TargetError> {
    let mut notes = Notes { program: &work.program, statements: Vec::new() };
    work.stream(0)?.transaction(&mut notes)?;
    let text = |(statement, numbers): &(usize, Vec<i64>)| {
        let s = work.program.statements.get(*statement).filter(|s| s.effect.reads())?;
        let mut numbers = numbers.iter();
        // In brackets: a minus before a number must not meet another.
        let number = |_: &str| numbers.next().map_or_else(String::new, |n| format!("({n})"));
        Some(s.template.render_with(&table, number, &first_rows))
    };
    Ok(notes.statements.iter().filter_map(text).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use loadline_workload::limit;

    use super::*;

    #[test]
    fn queries_are_written_out() {
        let workload = loadline_workload::find("DA-PARALLEL").unwrap();
        let work = Work::new(workload, workload.params(&BTreeMap::new()).unwrap(), 1, 0.0);
        let all = queries(&work, |t| format!("<{t}>"), limit).unwrap();
        assert_eq!(all.len(), 1);
        assert!(all[0].contains("FROM <fact> WHERE day >= (-") && all[0].ends_with("LIMIT 10"), "{}", all[0]);
        assert_eq!(work.parallel_workers(), Some(2));
    }
}
