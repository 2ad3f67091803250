//! Cells that hold no figure, or one that cannot be.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity};
use crate::audit::sheet::How;

pub(crate) fn check(context: &Context<'_>, findings: &mut Findings) {
    for column in &context.sheet.columns {
        let id = column.id;
        let mut say = |severity: Severity, row: usize, text: &str| {
            if findings.wants("cells", severity) {
                findings.push(context.about_row("cells", severity, row, &[id], id, None, text.to_owned()));
            }
        };
        for row in &column.broken {
            say(Severity::Warning, *row, "no number: a division by nothing, or one that is too long for its cell");
        }
        // A column of names is none of ours, and a row of nothing but a name is a heading.
        let table = context.sheet.table;
        let heading = |row: usize| (0..table.headers.len()).filter(|c| !table.cell(row, *c).is_empty()).count() == 1;
        if column.unread.len() * 2 <= context.rows().len() {
            for row in column.unread.iter().filter(|row| !heading(**row)) {
                let figure = table.cell(*row, column.index).contains(|c: char| c.is_ascii_digit());
                let severity = if figure { Severity::Warning } else { Severity::Info };
                say(severity, *row, "not read as a number: text, another style of numbers, or another unit");
            }
        }
        let must = ["jobs", "nodes", "elapsed_s", "threads"].contains(&id);
        let rate = context.resolve("tps") == Some(id);
        let count = |test: &dyn Fn(f64) -> bool| {
            context.rows().filter_map(|r| column.figure(r)).filter(|f| test(f.value)).count()
        };
        let (negative, above) = (count(&|v| v < 0.0), count(&|v| v > 0.0));
        // A column with many of them holds changes.
        let change = negative * 4 > above && column.how == How::Inferred;
        for row in context.rows() {
            let Some(figure) = column.figure(row) else { continue };
            if figure.value < 0.0 {
                let severity = if change { Severity::Warning } else { Severity::Error };
                say(severity, row, "a negative figure: a counter that was reset, a wrong sign, or a change");
            } else if must && figure.value == 0.0 {
                let busy = context.value("tps", row).is_some_and(|tps| tps > 0.0) && figure.half() < 0.5;
                let sure = column.how != How::Inferred || above > 1;
                let severity = if busy && sure { Severity::Error } else { Severity::Warning };
                say(severity, row, "0, and still there is work in the other cells");
            } else if rate
                && figure.value == 0.0
                && above > 1
                && context.value("jobs", row).is_some_and(|jobs| jobs > 0.0)
            {
                say(
                    Severity::Warning,
                    row,
                    "no throughput, and still there were jobs: the test failed, or its figure is lost",
                );
            } else if figure.value >= 9999.0 && figure.value <= 1e15 {
                let digits = || table.cell(row, column.index).bytes().filter(|b| *b != b'.');
                if digits().count() >= 4 && digits().all(|b| b == b'9') {
                    say(Severity::Warning, row, "all nines: it may be the largest number that its cell holds");
                }
            }
        }
    }
}
