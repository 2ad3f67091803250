//! Blocks and bytes: the size of a block, and what of it is padding.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity, shown};
use crate::audit::interval::{Interval, Reading, common};
use crate::audit::laws::work::outliers;

const SIZES: [f64; 8] = [512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0];
const MIB: f64 = 1_048_576.0;
/// Bytes of the log with the headers of its blocks, at most.
const HEADERS: f64 = 1.04;

/// Bytes of redo per second: by the size of a transaction if that is more precise.
fn redo_bytes(context: &Context<'_>, row: usize, reading: Reading) -> Option<Interval> {
    let rate = context.interval("redo_mib_per_s", row, reading).map(|i| i.scaled(MIB));
    let size = context
        .interval("redo_kib_per_tx", row, reading)
        .and_then(|size| Some(size.times(context.interval("tps", row, reading)?).scaled(1024.0)));
    let width = |i: &Interval| i.high - i.low;
    match (rate, size) {
        (Some(a), Some(b)) => Some(if width(&a) <= width(&b) { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// Bytes per block in each row of a series.
fn per_block(
    context: &Context<'_>,
    rows: &[usize],
    blocks: &'static str,
    bytes: &dyn Fn(usize) -> Option<Interval>,
) -> Vec<(usize, Interval)> {
    let of = |row: &usize| {
        let blocks = context.interval(blocks, *row, Reading::Loose)?;
        (blocks.low > 0.0).then_some(())?;
        Some((*row, bytes(*row)?.over(blocks)))
    };
    rows.iter().filter_map(of).collect()
}

/// The smallest size that holds the bytes of at least nine rows of ten.
fn size_of(all: &[(usize, Interval)]) -> Option<f64> {
    let holds = |size: f64| all.iter().filter(|(_, i)| i.low <= size).count();
    SIZES.into_iter().find(|size| holds(*size) * 10 >= all.len() * 9)
}

pub(super) fn redo(context: &Context<'_>, findings: &mut Findings) {
    let columns = ["redo_blocks_per_s", "tps", "redo_kib_per_tx", "redo_mib_per_s"];
    // The size is that of a platform: the rows of all its workloads show it.
    let every: Vec<usize> = context.rows().collect();
    let bytes = |row: usize| redo_bytes(context, row, Reading::Loose);
    let over_all = size_of(&per_block(context, &every, "redo_blocks_per_s", &bytes));
    for series in &context.series {
        let all = per_block(context, &series.rows, "redo_blocks_per_s", &bytes);
        let Some(size) = over_all.or_else(|| size_of(&all)) else { continue };
        if framed(context, &series.label, &all, findings) {
            continue;
        }
        // The size is inferred. Where groups grow, blocks fill up and only the largest show it: a row must stand out as well.
        let fullest = all.iter().filter(|(_, i)| i.low <= size).map(|(_, i)| i.at).fold(0.0, f64::max);
        for (row, _) in all.iter().filter(|(_, i)| i.low > size && i.low > fullest * 1.6) {
            let severity = Severity::Warning;
            let text = format!(
                "the bytes are more than blocks of {size} B hold, which is the size of a block in the other rows"
            );
            let least = bytes(*row).map(|b| b.at / size);
            findings.push(context.about_row("redo-blocks", severity, *row, &columns, columns[0], least, text));
        }
        padding(context, &series.label, size, &all, findings);
        // Over jobs, that share is a curve: groups grow, and blocks fill up.
        let floor = if context.sheet.swept() == Some("jobs") { 0.3 } else { 0.1 };
        let shares: Vec<(usize, f64, f64)> = all.iter().map(|(row, i)| (*row, i.at, (i.high - i.low) / 2.0)).collect();
        // Among few rows none is typical; but groups that grow do not fill a block four times as well.
        let emptiest = shares.iter().filter(|(_, share, _)| all.len() < 4 && *share < fullest * 0.25);
        let emptiest = emptiest.map(|(row, ..)| (*row, fullest)).collect::<Vec<_>>();
        for (row, expected) in outliers(&shares, floor).into_iter().chain(emptiest) {
            let Some(needed) = bytes(row).map(|b| b.at / expected) else { continue };
            let text = format!("other rows of this series have {} B of redo in a block", shown(expected, 4));
            context.warn(findings, ("redo-blocks", row), (&columns, columns[0]), Some(needed), text);
        }
    }
}

/// Whether all rows have the same number of bytes per block, a little more than a size: that of the block with its header.
fn framed(context: &Context<'_>, label: &str, all: &[(usize, Interval)], findings: &mut Findings) -> bool {
    let (low, high) =
        all.iter().fold((f64::INFINITY, 0.0f64), |(low, high), (_, i)| (low.min(i.low), high.max(i.high)));
    let size = SIZES.into_iter().rev().find(|size| *size < low);
    let Some(size) = size.filter(|size| all.len() > 1 && high < size * HEADERS && high - low < size * 0.01) else {
        return false;
    };
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    let around = shown((low + high) / 2.0 - size, 3);
    let text = format!("{label}blocks of {size} B, each with {around} B of its own: no padding");
    findings.push(context.about_table("redo-blocks", Severity::Info, &["redo_blocks_per_s", "redo_mib_per_s"], text));
    true
}

/// Says how large the padding is, and whether it is per write or per transaction.
fn padding(context: &Context<'_>, label: &str, size: f64, all: &[(usize, Interval)], findings: &mut Findings) {
    let pad = |row: usize| {
        let blocks = context.value("redo_blocks_per_s", row)?;
        Some(blocks * size - redo_bytes(context, row, Reading::Rounded)?.at)
    };
    // How much it is per one of something, and how much that varies.
    let per = |id: &'static str| {
        let values: Vec<f64> = all
            .iter()
            .filter_map(|(row, _)| Some(pad(*row)? / context.value(id, *row)?))
            .filter(|v| v.is_finite())
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean > 0.0).then(|| (mean, variance.sqrt() / mean))
    };
    let shares: Vec<f64> = all.iter().map(|(_, i)| 1.0 - i.at / size).collect();
    let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64 * 100.0;
    let (tx, write) = (per("tps"), per("redo_writes_per_s"));
    for (id, what) in [("redo_writes_per_s", "write"), ("tps", "transaction")] {
        unlike(context, size, all, (id, what), findings);
    }
    let found = match (tx, write) {
        (Some((tx, by_tx)), Some((_, by_write))) if by_tx <= by_write => Some((tx, "transaction", by_tx)),
        (_, Some((write, by_write))) => Some((write, "write", by_write)),
        (Some((tx, by_tx)), None) => Some((tx, "transaction", by_tx)),
        (None, None) => None,
    };
    let Some((bytes, what, varies)) = found.filter(|_| share > 0.0) else { return };
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    let sure = match (all.len(), varies) {
        (..3, _) => String::new(),
        (_, ..0.3) => format!(", the same in all rows to {} %", shown(varies * 100.0, 2)),
        _ => ", with much scatter".to_owned(),
    };
    let text = format!(
        "{label}blocks of {size} B: {} % of what is written is padding, {} B per {what}{sure}",
        shown(share, 3),
        shown(bytes, 3)
    );
    let columns = ["redo_blocks_per_s", "redo_writes_per_s", "tps", "redo_kib_per_tx", "redo_mib_per_s"];
    findings.push(context.about_table("redo-blocks", Severity::Info, &columns, text));
}

/// Names rows whose padding per write, or per transaction, is not that of all others, where these agree with all their digits.
fn unlike(
    context: &Context<'_>,
    size: f64,
    all: &[(usize, Interval)],
    (id, what): (&'static str, &str),
    findings: &mut Findings,
) {
    let reading = Reading::Loose;
    let of = |row: usize| {
        let blocks = context.interval("redo_blocks_per_s", row, reading)?.scaled(size);
        Some((
            row,
            blocks
                .minus(redo_bytes(context, row, reading)?)
                .over(context.interval(id, row, reading).filter(|i| i.low > 0.0)?),
        ))
    };
    let pads: Vec<(usize, Interval)> = all.iter().filter_map(|(row, _)| of(*row)).collect();
    let intervals: Vec<Interval> = pads.iter().map(|(_, i)| *i).collect();
    let Some((pad, count)) = common(&intervals).filter(|(pad, _)| *pad > 0.0) else { return };
    // What is much wider than the padding says nothing.
    let sharp = intervals.iter().filter(|i| i.holds(pad) && i.high - i.low < 0.2 * pad).count();
    if count + 1 != intervals.len() || sharp < 3 {
        return;
    }
    for (row, found) in pads.iter().filter(|(_, i)| !i.holds(pad) && ((i.at / pad) - 1.0).abs() > 0.04) {
        let text = format!("{} B of padding per {what}, and {} B in the other rows", shown(found.at, 3), shown(pad, 3));
        let columns = ["redo_blocks_per_s", id, "redo_mib_per_s"];
        let expected = context.value(id, *row).map(|v| v * found.at / pad);
        context.warn(findings, ("redo-blocks", *row), (&columns, id), expected, text);
    }
}

pub(super) fn data(context: &Context<'_>, findings: &mut Findings) {
    let columns = ["physical_written_blocks_per_s", "physical_written_mib_per_s", "redo_mib_per_s"];
    let rows: Vec<usize> = context.rows().collect();
    let written = |row: usize| context.interval(columns[1], row, Reading::Loose).map(|i| i.scaled(MIB));
    let data = |row: usize| {
        let redo = context.interval("redo_mib_per_s", row, Reading::Loose)?.scaled(MIB);
        // In the log, blocks have headers, and each write may end with padding.
        let writes = context.interval("redo_writes_per_s", row, Reading::Loose).map_or(0.0, |writes| writes.high);
        let log = Interval { low: redo.low, high: redo.high * HEADERS + writes * SIZES[0], at: redo.at };
        let left = written(row)?.minus(log);
        Some(left.not_negative())
    };
    let all = per_block(context, &rows, columns[0], &written);
    let without = per_block(context, &rows, columns[0], &data);
    if all.is_empty() {
        return;
    }
    let sizes = |given: &[(usize, Interval)]| {
        let fits = |size: f64| given.iter().filter(|(_, i)| i.holds(size)).count();
        let own = rows.first().and_then(|row| context.value("block_bytes", *row));
        SIZES.into_iter().chain(own).map(|size| (size, fits(size))).max_by_key(|(_, fits)| *fits)
    };
    let (plain, less) = (sizes(&all), sizes(&without));
    let most = |found: Option<(f64, usize)>| found.filter(|(_, fits)| *fits * 4 >= all.len() * 3);
    if let Some((size, fits)) = most(plain) {
        let text = format!("blocks of {size} B give the bytes written in {fits} of {} rows", all.len());
        findings.push(context.about_table("data-blocks", Severity::Info, &columns[..2], text));
        for (row, interval) in all.iter().filter(|(_, i)| !i.holds(size)) {
            let expected = context.value(columns[0], *row).map(|blocks| blocks * size / MIB);
            let text = format!("{} B per block, and {size} B in the other rows", shown(interval.at, 4));
            context.warn(findings, ("data-blocks", *row), (&columns[..2], columns[1]), expected, text);
        }
        return;
    }
    let (low, high) = all.iter().fold((f64::INFINITY, 0.0f64), |(low, high), (_, i)| (low.min(i.at), high.max(i.at)));
    let mut text = format!(
        "{} to {} B were written per block counted, which is the size of no block",
        shown(low, 4),
        shown(high, 4)
    );
    if let Some((size, fits)) = less.filter(|(_, fits)| *fits * 2 >= all.len()) {
        text.push_str(&format!(
            "; less the redo and its padding, blocks of {size} B fit in {fits} of {} rows: these bytes, and the writes, hold those of the log",
            all.len()
        ));
    }
    findings.push(context.about_table("data-blocks", Severity::Warning, &columns, text));
    let shares: Vec<(usize, f64, f64)> = all.iter().map(|(row, i)| (*row, i.at, (i.high - i.low) / 2.0)).collect();
    for (row, expected) in outliers(&shares, 0.1) {
        let recomputed = context.value(columns[0], row).map(|blocks| blocks * expected / MIB);
        let text = format!("other rows have {} B per block", shown(expected, 4));
        context.warn(findings, ("data-blocks", row), (&columns[..2], columns[1]), recomputed, text);
    }
}
