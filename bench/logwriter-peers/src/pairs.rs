//! One job beside one other contestant, in pairs: what both get from the storage at the moment is the same.

use std::path::Path;
use std::time::Duration;

use crate::harness::{Length, Outcome, duel, measure};
use crate::open::{LAT1, Open, ours_name};
use crate::ours::Device;
use crate::postgres::Postgres;
use crate::raw::Raw;

/// Ratios of loadline's log to the other, pair by pair.
pub(crate) struct Pairs {
    pub(crate) what: String,
    pub(crate) wanted: f64,
    pub(crate) ratios: Vec<Result<f64, String>>,
}

impl Pairs {
    fn new(what: String, wanted: f64) -> Pairs {
        Pairs { what, wanted, ratios: Vec::new() }
    }
}

/// loadline's logs on `devices`, each alternating every few commits with a raw stream that syncs in the same way.
pub(crate) fn turns(open: &Open, devices: &[Device], rounds: usize, length: Length) -> Vec<Pairs> {
    let raw = |device| match device {
        Device::Fdatasync => Raw::Fdatasync,
        Device::Dsync => Raw::Dsync,
        Device::DirectDsync(_) => Raw::DirectDsync,
        Device::DirectFdatasync(_) => Raw::DirectFdatasync,
    };
    let what = |d: Device| format!("{}, 1 job, to raw {}, in turns of a few commits", ours_name(d), raw(d).name());
    let mut list: Vec<Pairs> = devices.iter().map(|d| Pairs::new(what(*d), 0.97)).collect();
    let length = Length { window: length.window * 3, ..length };
    for _ in 0..rounds {
        for (pairs, device) in list.iter_mut().zip(devices) {
            let turns = || {
                let (log, stream) = (open.log(*device)?, open.raw(raw(*device))?);
                let (ours, raw) = duel((log, LAT1), (stream, stream.bytes), length)?;
                eprintln!("in turns: {}: {ours:.0}/s, raw {raw:.0}/s", ours_name(*device));
                Outcome::Ok(ours / raw)
            };
            pairs.ratios.push(turns().map_err(|e| e.to_string()));
        }
    }
    list
}

/// loadline's logs with one job, each measured before and after PostgreSQL with one job; the mean of both counts.
pub(crate) fn postgres(
    open: &Open,
    devices: &[Device],
    binary: &Path,
    root: &Path,
    rounds: usize,
    length: Length,
) -> Vec<Pairs> {
    let what = |d: &Device| format!("{}, 1 job, to PostgreSQL, in-database, in pairs", ours_name(*d));
    let mut list: Vec<Pairs> = devices.iter().map(|d| Pairs::new(what(d), 1.0)).collect();
    let logs =
        || devices.iter().map(|d| Ok(measure(open.log(*d)?, 1, LAT1, length)?.0.rate)).collect::<Outcome<Vec<f64>>>();
    for _ in 0..rounds {
        let pair = || {
            let before = logs()?;
            let window = length.window.max(Duration::from_secs(3));
            let postgres = Postgres::find(binary)?.rate(root, 1, Length { window, ..length })?;
            let mean: Vec<f64> = before.iter().zip(logs()?).map(|(before, after)| (before + after) / 2.0).collect();
            eprintln!("PostgreSQL {postgres:.0}/s, loadline {mean:.0?}/s");
            Outcome::Ok(mean.into_iter().map(|ours| ours / postgres).collect::<Vec<f64>>())
        };
        let ratios = pair().map_err(|e| e.to_string());
        for (number, pairs) in list.iter_mut().enumerate() {
            pairs.ratios.push(ratios.clone().and_then(|r| r.get(number).copied().ok_or_else(|| "no ratio".into())));
        }
    }
    list
}
