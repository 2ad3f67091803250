//! Cells that hold no figure, or one that cannot be.

use crate::audit::context::Context;
use crate::audit::finding::Severity;
use crate::audit::law::Law;
use crate::audit::reason::Reason;
use crate::audit::sheet::{Column, How};

pub(super) fn check(law: &'static Law, context: &Context<'_>) {
    let table = context.sheet.table;
    for (place, column) in context.sheet.columns.iter().enumerate() {
        let say = |severity, row, why| context.find((law.id, severity), row, &[place], None, why);
        column.broken.iter().for_each(|row| say(Severity::Warning, *row, Reason::NotANumber));
        // A column of names is none of ours, and a row of nothing but a name is a heading.
        let heading = |row: usize| (0..table.headers.len()).filter(|c| !table.cell(row, *c).is_empty()).count() == 1;
        let few = column.unread.len() * 2 <= context.rows();
        for row in column.unread.iter().filter(|row| few && !heading(**row)) {
            let figure = table.cell(*row, column.index).contains(|c: char| c.is_ascii_digit());
            say(if figure { Severity::Warning } else { Severity::Info }, *row, Reason::Unread);
        }
        for row in 0..context.rows() {
            if let Some((severity, why)) = impossible(context, column, row) {
                say(severity, row, why);
            }
        }
    }
}

/// What is wrong with a figure alone.
fn impossible(context: &Context<'_>, column: &Column, row: usize) -> Option<(Severity, Reason)> {
    let value = column.value(row).filter(|v| *v <= 0.0 || *v >= 9999.0)?;
    let graver = |sure: bool| if sure { Severity::Error } else { Severity::Warning };
    if value < 0.0 {
        return Some((graver(column.how <= How::Id), Reason::Negative));
    }
    if value == 0.0 && ["jobs", "nodes", "elapsed_s", "threads"].contains(&column.id) {
        let exact = column.interval(row, false).is_some_and(|i| i.high < 0.5);
        let works = context.value("tps", row).is_some_and(|tps| tps > 0.0);
        return Some((graver(works && exact && (column.how <= How::Id || column.id == "jobs")), Reason::NoJobs));
    }
    if value == 0.0 {
        let is_rate = context.sheet.throughput() == Some(column.id);
        let jobs = context.value("jobs", row).is_some_and(|jobs| jobs > 0.0);
        return (is_rate && jobs).then_some((Severity::Warning, Reason::NoWork));
    }
    let digits = || context.sheet.table.cell(row, column.index).bytes().filter(|b| *b != b'.');
    let nines = value <= 1e15 && digits().count() >= 4 && digits().all(|b| b == b'9');
    nines.then_some((Severity::Warning, Reason::Nines))
}
