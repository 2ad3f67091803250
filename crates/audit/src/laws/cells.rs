//! Cells that hold no figure, or one that cannot be.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity};

pub(crate) static CELLS: Law = Law {
    id: "cells",
    name: "Cells hold figures",
    formula: "a figure is a number ≥ 0; jobs, nodes, elapsed_s > 0",
    needs: &[],
    tolerance: "negative numbers, and no jobs with throughput, are errors; what is no number, or all nines, a warning",
    meaning: "A counter that was reset, a division by nothing, a number too long for its cell",
    check: Check::Own(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for column in &context.sheet.columns {
        let id = column.id;
        let mut say = |severity: Severity, row: usize, text: &str| {
            if findings.wants(CELLS.id, severity) {
                findings.push(context.about_row(CELLS.id, severity, row, &[id], id, None, text.to_owned()));
            }
        };
        for row in &column.broken {
            say(Severity::Warning, *row, "no number: a division by nothing, or one that is too long for its cell");
        }
        // A column of names is none of ours.
        if column.unread.len() * 2 <= context.rows().len() {
            for row in &column.unread {
                say(Severity::Warning, *row, "not read as a number: text, another style of numbers, or another unit");
            }
        }
        let must = ["jobs", "nodes", "elapsed_s", "threads"].contains(&id);
        for row in context.rows() {
            let Some(figure) = column.figure(row) else { continue };
            if figure.value < 0.0 {
                say(Severity::Error, row, "a negative figure: a counter that was reset, or a wrong sign");
            } else if must && figure.value == 0.0 {
                let busy = context.value("tps", row).is_some_and(|tps| tps > 0.0) && figure.half() < 0.5;
                let severity = if busy { Severity::Error } else { Severity::Warning };
                say(severity, row, "0, and still there is work in the other cells");
            } else if figure.value >= 9999.0 && figure.value <= 1e15 {
                let text = context.sheet.table.cell(row, column.index);
                if text.len() >= 4 && text.bytes().all(|b| b == b'9') {
                    say(Severity::Warning, row, "all nines: it may be the largest number that its cell holds");
                }
            }
        }
    }
}
