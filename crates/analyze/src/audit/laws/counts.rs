//! Whether a column whose header names a thing, such as "transactions" or "rows inserted", counts it per second or over the
//! whole test. A name alone says neither: the other columns do, or the column is left out.

use super::{Check, LAWS, little};
use crate::audit::context::Context;
use crate::audit::interval::{Interval, Reading};
use crate::audit::sheet::Sheet;

/// Rows by which it is decided.
const SAMPLE: usize = 1000;
/// How near the median of two figures of one thing is to the same.
const NEAR: std::ops::Range<f64> = 0.8..1.25;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Rate,
    Count,
    Unknown,
}

/// Finds out which columns are counts, makes rates of them by the elapsed time, and leaves out what can be either.
pub(crate) fn settle(mut sheet: Sheet<'_>) -> Sheet<'_> {
    let mut open = sheet.may_be_counts();
    while !open.is_empty() {
        let context = Context::new(sheet.clone(), &[]);
        let found = open.iter().map(|id| (*id, kind(&context, id, &open))).find(|(_, kind)| *kind != Kind::Unknown);
        match found {
            Some((id, kind)) => {
                if kind == Kind::Count {
                    sheet.over_elapsed(id);
                }
                open.retain(|other| *other != id);
            }
            // The only throughput there is, and nothing speaks against it.
            None => {
                let only = sheet.throughput().filter(|id| open.contains(id) && !sheet.has("elapsed_s"));
                let only = only.filter(|_| little::busy(&context, 0).is_none());
                open.iter().filter(|id| Some(**id) != only).for_each(|id| {
                    sheet.leave_out(id, "it may be a count or a rate, and no other column says which");
                });
                break;
            }
        }
    }
    sheet.throughput_of_others();
    sheet
}

/// What `id` is by columns that are not `open` themselves.
fn kind(context: &Context<'_>, id: &'static str, open: &[&'static str]) -> Kind {
    for law in LAWS {
        let Check::Product(product) = &law.check else { continue };
        let ids = || product.top.iter().chain(product.bottom).filter_map(|of| context.resolve(of));
        if ids().filter(|of| *of == id).count() != 1 || ids().any(|of| of != id && open.contains(&of)) {
            continue;
        }
        let on_top = product.top.iter().any(|of| context.resolve(of) == Some(id));
        let turned = |q: Interval| if on_top { q.at } else { 1.0 / q.at };
        let found = by(context, &NEAR, &NEAR, |row| product.quotient(context, row, None, Reading::Rounded).map(turned));
        if found != Kind::Unknown {
            return found;
        }
    }
    if context.sheet.throughput() == Some(id) {
        return by(context, &(0.02..1.1), &(0.2..1.1), |row| little::busy(context, row).map(|busy| busy.at));
    }
    Kind::Unknown
}

/// Whether the median of a quotient fits as it is, or divided by the elapsed time.
fn by(
    context: &Context<'_>,
    rate: &std::ops::Range<f64>,
    count: &std::ops::Range<f64>,
    quotient: impl Fn(usize) -> Option<f64>,
) -> Kind {
    let median = |of: &dyn Fn(usize) -> Option<f64>| {
        let mut all: Vec<f64> =
            context.rows().take(SAMPLE).filter_map(of).filter(|q| q.is_finite() && *q > 0.0).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let over = |row| Some(quotient(row)? / context.value("elapsed_s", row)?);
    if rate.contains(&median(&quotient)) {
        Kind::Rate
    } else if count.contains(&median(&over)) {
        Kind::Count
    } else {
        Kind::Unknown
    }
}
