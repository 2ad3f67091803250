//! Which kilobyte was meant.

use super::{Check, find};
use crate::audit::context::Context;
use crate::audit::finding::{Finding, Severity};
use crate::audit::judge::{SAMPLE, Sides};

/// A kilobyte of 1,000 bytes in KiB, and a megabyte of 1,000,000 in MiB.
const KILO: f64 = 1000.0 / 1024.0;
const MEGA: f64 = 1e6 / 1_048_576.0;

/// Finds out which units fit, and reads the columns with them. Comes before all laws.
pub(crate) fn settle(context: &mut Context<'_>) -> Option<Finding> {
    let law = find("redo-rate").filter(|law| law.applies(context))?;
    let Check::Product(product) = &law.check else { return None };
    let all: Vec<Sides> = (0..context.rows().len().min(SAMPLE))
        .filter_map(|row| Sides::of(row, |reading| product.quotient(context, row, None, reading)))
        .collect();
    if all.is_empty() {
        return None;
    }
    // Whether the header says 1,000 (KB, MB), 1,024 (KiB, MiB, an id of ours), or leaves it open.
    let open = |id| context.sheet.column(id).is_some_and(|c| c.or.is_some());
    let (small_open, large_open) = (open("redo_kib_per_tx"), open("redo_mib_per_s"));
    let own = |id| context.sheet.column(id).and_then(|c| c.printed.as_ref()).map(|u| u.text.clone());
    // For each reading: the factors by which both columns are multiplied, and whether the header allows it.
    let readings =
        |open: bool, size: f64| if open { [(1.0, true), (1.0 / size, true)] } else { [(1.0, true), (size, false)] };
    let mut best: Option<(usize, bool, f64, f64)> = None;
    let mut counts = Vec::new();
    for (small, small_allowed) in readings(small_open, KILO) {
        for (large, large_allowed) in readings(large_open, MEGA) {
            let fits = all.iter().filter(|s| s.meets(large / small)).count();
            let allowed = small_allowed && large_allowed;
            counts.push((small, large, fits));
            if best.is_none_or(|(most, was, ..)| (fits, allowed) > (most, was)) {
                best = Some((fits, allowed, small, large));
            }
        }
    }
    let (fits, allowed, small, large) = best?;
    let printed = counts.first().map_or(0, |(_, _, fits)| *fits);
    let count = all.len();
    // Too few rows speak for it.
    if fits * 4 < count * 3 || (!allowed && (count < 3 || printed * 2 > count)) {
        return None;
    }
    let size = |open: bool, factor: f64| match (open, factor == 1.0) {
        (false, true) | (true, false) => 1024,
        _ => 1000,
    };
    let (kilo, mega) = (size(small_open, small), size(large_open, large));
    // Only the ratio of both units is known: two decimal ones differ from two binary ones, mixed ones from both.
    let other = counts.iter().filter(|(s, l, _)| (s, l) != (&small, &large)).map(|(.., fits)| *fits).max().unwrap_or(0);
    if other == fits {
        return None;
    }
    let names =
        [("redo_kib_per_tx", "KiB"), ("redo_mib_per_s", "MiB")].map(|(id, unit)| own(id).unwrap_or(unit.to_owned()));
    let columns = ["tps", "redo_kib_per_tx", "redo_mib_per_s"];
    let text = format!(
        "tps × redo per transaction gives the redo rate in {fits} of {count} rows if the kilobyte of the size has {kilo} bytes and the \
         megabyte of the rate {} bytes; with the next best reading in {other}",
        if mega == 1024 { "1024²" } else { "1000²" },
    );
    let (severity, text) = if allowed {
        (Severity::Info, text)
    } else {
        (Severity::Warning, format!("{text}; printed are {} and {}, which fit in {printed}", names[0], names[1]))
    };
    let finding = context.about_table("kilobyte", severity, &columns, text);
    context.sheet.scale("redo_kib_per_tx", small);
    context.sheet.scale("redo_mib_per_s", large);
    Some(finding)
}
