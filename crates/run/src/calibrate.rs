//! Calibration: finds the payload (and, if the log holds whole pages, the number of rows) with which a transaction of
//! a log-writer workload writes its nominal redo.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_database::{Observer, Target, TargetError, Work};
use loadline_model::manifest::Calibration;
use loadline_model::snapshot::counter;
use loadline_workload::RedoSize;

/// Transactions per measurement: enough to make other redo negligible.
const TRANSACTIONS: u32 = 64;
/// Minimum redo per measurement, bytes: enough to average the log's page headers.
const MIN_BYTES: f64 = 1024.0 * 1024.0;
/// Calibration ends within this share of nominal.
const REDO_TOLERANCE: f64 = 0.02;
const ROUNDS: u32 = 8;

#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("{0}")]
    NoRedo(&'static str),
}

/// Finds the parameters of `work` with redo nearest to nominal. `probe` measures redo per transaction, bytes.
pub fn calibrate(
    work: &Work,
    probe: impl FnMut(&Work) -> Result<f64, MeasureError>,
) -> Result<Calibration, TargetError> {
    let mut best = Calibration::default();
    let Some(size) = work.workload.redo else {
        best.note = Some("the workload is not defined by its redo".into());
        return Ok(best);
    };
    best.nominal = Some([size.min, size.nominal, size.max]);
    let is_met = |seen: f64| (seen - size.nominal).abs() <= REDO_TOLERANCE * size.nominal;
    match fit(work, size, is_met, probe) {
        Ok((parameters, seen)) => (best.parameters, best.redo_bytes_per_tx) = (parameters, seen),
        Err(MeasureError::Target(e)) => return Err(e),
        Err(MeasureError::NoRedo(reason)) => best.note = Some(format!("not calibrated: {reason}")),
    }
    if let Some(seen) = best.redo_bytes_per_tx.filter(|b| !(size.min..=size.max).contains(b)) {
        best.note = Some(format!(
            "no payload gives {:.2} to {:.2} KiB of redo per transaction here: the nearest is {:.2} KiB",
            size.min / 1024.0,
            size.max / 1024.0,
            seen / 1024.0
        ));
    }
    Ok(best)
}

/// The parameters of `work` with redo nearest to nominal of those that are tried until it `is_met`, and that redo, bytes.
pub(crate) fn fit(
    work: &Work,
    size: RedoSize,
    is_met: impl Fn(f64) -> bool,
    mut probe: impl FnMut(&Work) -> Result<f64, MeasureError>,
) -> Result<(BTreeMap<String, i64>, Option<f64>), MeasureError> {
    let mut best: (BTreeMap<String, i64>, Option<f64>) = Default::default();
    let mut tried = Vec::new();
    let mut given: BTreeMap<String, i64> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let work = with(work, &given);
        let seen = probe(&work)?;
        // Redo inside the defined range is better than nearer redo outside.
        let off = |bytes: f64| (!(size.min..=size.max).contains(&bytes), (bytes - size.nominal).abs());
        if best.1.is_none_or(|best| off(seen) < off(best)) {
            best = (given, Some(seen));
        }
        if is_met(seen) {
            break;
        }
        tried.push((work.params.get(size.payload), work.params.get(size.rows), seen));
        match next_parameters(&work, size, &tried) {
            Some(parameters) => given = parameters,
            None => break,
        }
    }
    Ok(best)
}

/// `work` with some parameters replaced; unchanged if any is out of range.
pub fn with(work: &Work, given: &BTreeMap<String, i64>) -> Work {
    let mut all = work.params.to_map();
    all.extend(given.iter().map(|(k, v)| (k.clone(), *v)));
    match work.workload.params(&all) {
        Ok(params) => {
            let params = params.with_size(work.params.size_bytes()).with_keys(work.params.keys);
            Work { draws: work.draws, ..Work::new(Arc::clone(&work.workload), params, work.seed, work.payload) }
        }
        Err(_) => work.clone(),
    }
}

/// The parameters to try next: a payload changed by the missing redo per row; if that was tried without success,
/// another number of rows.
fn next_parameters(work: &Work, size: RedoSize, tried: &[(i64, i64, f64)]) -> Option<BTreeMap<String, i64>> {
    let (payload, rows, seen) = *tried.last()?;
    let range = |name: &str| work.workload.params.iter().find(|p| p.name == name).map_or((1, 1), |p| (p.min, p.max));
    // The mean, if transactions differ.
    let changed = work.program.mean_rows_changed_per_tx().max(1.0);
    // A log that also holds the old row (undo) grows by two bytes per byte of payload.
    let slope = match tried {
        [.., (p, r, s), _] if *r == rows && *p != payload => (seen - s) / ((payload - p) as f64 * changed),
        _ => 1.0,
    };
    let doubled = (1.5..=2.5).contains(&slope);
    let missing_per_row = (size.nominal - seen) / changed / if doubled { slope } else { 1.0 };
    let (low, high) = range(size.payload);
    let payload_next = (payload + missing_per_row.round() as i64).clamp(low, high);
    let overshot = tried.iter().any(|(p, _, _)| *p == payload_next)
        || !doubled && tried.windows(2).any(|t| (t[1].2 - size.nominal).abs() >= (t[0].2 - size.nominal).abs());
    let given = |payload: i64, rows: i64| [(size.payload.to_owned(), payload), (size.rows.to_owned(), rows)].into();
    if !overshot && payload_next != payload {
        return Some(given(payload_next, rows));
    }
    // The log grows in steps larger than a byte of payload: change the number of rows of the first try.
    let (first_payload, first_rows, first_seen) = *tried.first()?;
    let (low, high) = range(size.rows);
    let rows_next = ((first_rows as f64 * size.nominal / first_seen.max(1.0)).round() as i64).clamp(low, high);
    let is_new = first_rows != 1 && tried.iter().all(|(_, r, _)| *r != rows_next);
    is_new.then(|| given(first_payload, rows_next))
}

/// Bytes of redo per transaction of `work`, of about `expected` bytes, by default the nominal redo; measured with one session at the
/// client. Makes the tables of `work` anew, because a statement may keep the length of the payloads that were loaded.
/// Fails if the user has `interrupted` the run: a thousand commits take ten seconds on a slow disk.
pub fn measure(
    target: &Arc<dyn Target>,
    work: &Work,
    expected: Option<f64>,
    interrupted: &AtomicBool,
) -> Result<f64, MeasureError> {
    let expected = expected.unwrap_or_else(|| work.workload.redo.map_or(1024.0, |redo| redo.nominal));
    target.create(work)?;
    target.load(work, 1)?;
    let mut observer = target.observer()?;
    let mut session = target.client_session(work, 0)?;
    let mut stream = work.stream(0)?;
    let mut run = |n: u32| -> Result<(), TargetError> {
        for _ in 0..n {
            if interrupted.load(Ordering::Relaxed) {
                return Err(TargetError::Lost("interrupted".to_owned()));
            }
            session.begin()?;
            stream.transaction(session.as_mut())?;
            session.commit()?;
        }
        session.publish_counters()
    };
    let redo = |o: &mut dyn Observer| o.snapshot().map(|s| s.counters.get(counter::REDO_BYTES).copied());
    // Whole cycles, so that a mix has its nominal shares.
    let whole = |n: u64| n.next_multiple_of(work.program.cycle()) as u32;
    let n = whole(u64::from(if expected > MIN_BYTES { 4 } else { TRANSACTIONS.max((MIN_BYTES / expected) as u32) }));
    // The first change of a page after a checkpoint logs the whole page: change every row of the job once.
    let own = work.workload.tables.first().map_or(0, |t| t.batch_rows(&work.params));
    let first = whole((own as f64 / work.program.mean_rows_per_tx().max(1.0)) as u64 + 1);
    run(first)?;
    let before = redo(observer.as_mut())?;
    run(n)?;
    let after = redo(observer.as_mut())?;
    match before.zip(after) {
        Some((before, after)) if after > before => Ok((after - before) / f64::from(n)),
        Some(_) => Err(MeasureError::NoRedo("the target's redo counter did not change")),
        None => Err(MeasureError::NoRedo("the target does not count its redo")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_workload::CATALOGUE;

    fn work(code: &str) -> Work {
        Work::from_catalogue(code, &[]).unwrap()
    }

    fn by_bytes(work: &Work) -> f64 {
        60.0 + work.program.mean_rows_changed_per_tx() * (work.params.get("payload") + 72) as f64
    }

    #[test]
    fn a_log_of_bytes_meets_nominal() {
        for w in CATALOGUE.iter().filter(|w| w.redo.is_some()) {
            let c = calibrate(&work(&w.code), |w| Ok(by_bytes(w))).unwrap();
            let (seen, size) = (c.redo_bytes_per_tx.unwrap(), w.redo.unwrap());
            assert!((seen / size.nominal - 1.0).abs() <= 0.02, "{}: {seen}", w.code);
            assert_eq!(
                by_bytes(&with(&work(&w.code), &c.parameters)),
                seen,
                "the parameters are those that were measured"
            );
        }
    }

    #[test]
    fn a_log_of_pages_stays_within_the_definition() {
        // One page of 1,048 bytes a row, two as soon as a payload needs an overflow page.
        let pages = |w: &Work| {
            w.program.mean_rows_changed_per_tx() * if w.params.get("payload") > 970 { 2096.0 } else { 1048.0 }
        };
        for w in CATALOGUE.iter().filter(|w| w.redo.is_some()) {
            let c = calibrate(&work(&w.code), |w| Ok(pages(w))).unwrap();
            let (seen, size) = (c.redo_bytes_per_tx.unwrap(), w.redo.unwrap());
            assert!((size.min..=size.max).contains(&seen), "{}: {seen}", w.code);
        }
        // Pages of 4 KiB cannot make an LGWR-LAT1, which is noted.
        let c = calibrate(&work("LGWR-LAT1"), |_| Ok(4120.0)).unwrap();
        assert!(c.note.is_some_and(|n| n.contains("4.02 KiB")));
        // LGWR-LAT125 needs 31 of them: fewer rows.
        let pages = |w: &Work| w.params.get("rows") as f64 * 4120.0;
        let c = calibrate(&work("LGWR-LAT125"), |w| Ok(pages(w))).unwrap();
        assert!((28..=34).contains(&c.parameters["rows"]), "{c:?}");
        assert!(c.note.is_none());
    }

    #[test]
    fn a_target_without_redo_is_not_calibrated() {
        let c = calibrate(&work("LGWR-LAT1"), |_| Err(MeasureError::NoRedo("it has none"))).unwrap();
        assert!(c.redo_bytes_per_tx.is_none() && c.note.unwrap().contains("it has none"));
    }
}
