//! Rates of blocks on platforms whose blocks differ in size.

use loadline_model::{Column, column, format};

use crate::kpi::Metric;
use crate::stats::ratio;
use crate::sweep::SweepPoint;

/// Rates of blocks, or of calls that move blocks, with the bytes that they move.
const OF_BLOCKS: [(&Column, Option<&Column>); 4] = [
    (column::BLOCK_READS_PER_S, Some(column::READ_MIB_PER_S)),
    (column::IO_PER_S, None),
    (column::PHYSICAL_WRITES_PER_S, Some(column::PHYSICAL_WRITTEN_MIB_PER_S)),
    (column::PHYSICAL_WRITTEN_BLOCKS_PER_S, Some(column::PHYSICAL_WRITTEN_MIB_PER_S)),
];

/// The sizes of the blocks if they differ and a compared figure depends on them, with the factor of the bytes.
pub(super) fn of_other_size(names: (&str, &str), metrics: &[Metric], a: &SweepPoint, b: &SweepPoint) -> Option<String> {
    let [x, y] = [a, b].map(|p| p.figure(column::BLOCK_BYTES).map(|e| e.mean));
    let (x, y) = (x?, y?);
    let compared = |c: &Column| metrics.iter().any(|m| m.column == c) && a.figure(c).is_some() && b.figure(c).is_some();
    let (_, moved) = OF_BLOCKS.into_iter().find(|(rate, _)| compared(rate)).filter(|_| x != y)?;
    let bytes = moved
        .and_then(|c| Some((c, ratio(b.figure(c)?, a.figure(c)?)?)))
        .map(|(c, factor)| format!("; the factor of {} [{}] is {:.2}", c.title.to_lowercase(), c.unit, factor.value));
    Some(format!(
        "blocks of {} on '{}', of {} on '{}': as many blocks are not as many bytes{}",
        format::bytes(x),
        names.0,
        format::bytes(y),
        names.1,
        bytes.unwrap_or_default()
    ))
}
