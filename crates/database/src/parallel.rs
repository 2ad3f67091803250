//! The queries of a workload with literal values, to try how many parallel workers run them.

use loadline_workload::{Arg, Execute, Program};

use crate::dialect::Dialect;
use crate::error::TargetError;
use crate::work::Work;

/// Records the statements of a program with their integer arguments. Returns the row counts that the program expects.
struct Recorder<'a> {
    program: &'a Program,
    statements: Vec<(usize, Vec<i64>)>,
}

impl Execute for Recorder<'_> {
    type Error = TargetError;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let numbers = args.iter().map(|arg| match arg {
            Arg::Int(i) => Ok(*i),
            Arg::Bytes(_) => {
                Err(TargetError::Usage("a query with a bytes parameter cannot be tried before the test".into()))
            }
        });
        self.statements.push((statement, numbers.collect::<Result<_, _>>()?));
        Ok(self.program.statements.get(statement).and_then(|s| s.effect.rows()).unwrap_or(0))
    }

    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, TargetError> {
        Ok(rows.into())
    }
}

/// Queries of the first transaction of job 0, with literal numbers in place of variables.
pub(crate) fn queries(work: &Work, dialect: &Dialect) -> Result<Vec<String>, TargetError> {
    let mut recorder = Recorder { program: &work.program, statements: Vec::new() };
    work.stream(0)?.transaction(&mut recorder)?;
    let text = |(statement, numbers): &(usize, Vec<i64>)| {
        let s = work.program.statements.get(*statement).filter(|s| s.effect.reads())?;
        let mut numbers = numbers.iter();
        // In parentheses: two minus signs in a row would begin a comment.
        let number = |_: &str| numbers.next().map_or_else(String::new, |n| format!("({n})"));
        Some(dialect.rendered(work, &s.template, number))
    };
    Ok(recorder.statements.iter().filter_map(text).collect())
}
