//! Time series of a test: a row per second, or ten in a short window.

use loadline_analyze::steady;
use loadline_collect::Point;
use loadline_load::{Measured, SECOND_NS, course_step_ns};
use loadline_model::snapshot::counter;
use loadline_model::{Driver, Series, column};

use super::MIB;

/// The rows of a test: ten per second of a short window, unless transactions are so long that most rows had none.
pub(crate) fn series(measured: &Measured, driver: Driver) -> Series {
    let (open_ns, window_ns) = (measured.schedule.open_ns, measured.schedule.window_ns());
    let rate = measured.merged.transaction.count() as f64 * 1e9 / window_ns as f64;
    let (jobs, fine_ns) = (measured.jobs.len() as u32, course_step_ns(window_ns));
    // In-database jobs say once a second what they have done.
    let fine = driver == Driver::Client && rate > 0.0 && steady::steps(rate, jobs, fine_ns as f64 / 1e9) == 1;
    let (step_ns, counts) =
        if fine { (fine_ns, measured.merged.per_step.clone()) } else { (SECOND_NS, measured.per_second()) };
    let length_ns = |i: usize| window_ns.saturating_sub(i as u64 * step_ns).clamp(1, step_ns);
    let rates: Vec<f64> = counts.iter().enumerate().map(|(i, n)| *n as f64 * 1e9 / length_ns(i) as f64).collect();
    series_of(&measured.collected.points, open_ns, window_ns, step_ns, Some(&rates))
}

/// One row per `step_ns`: rates of counters between `points`, and transactions per second as the jobs counted them, or else commits as
/// the database did. What is read once a second is in the row that ends with a second.
pub(crate) fn series_of(
    points: &[Point],
    open_ns: u64,
    window_ns: u64,
    step_ns: u64,
    counted: Option<&[f64]>,
) -> Series {
    let columns = [
        column::COMMIT_THROUGHPUT_TPS,
        column::REDO_MIB_PER_S,
        column::REDO_WRITES_PER_S,
        column::REDO_SYNC_WRITES_PER_S,
        column::CPU_BUSY_PCT,
        column::CPU_IOWAIT_PCT,
        column::DEVICE_WRITES_PER_S,
        column::DEVICE_UTIL_PCT,
        column::BLOCK_READS_PER_S,
    ];
    // The reading nearest to a time, if it is at most a fifth of the row's length away.
    let near = |ns: u64, each_ns: u64, has: fn(&Point) -> bool| {
        let away = |p: &&Point| p.system.at_ns.abs_diff(open_ns + ns);
        points.iter().filter(|p| has(p)).min_by_key(away).filter(|p| away(p) < each_ns / 5)
    };
    let between = |[begin, end]: [u64; 2], each_ns: u64, has: fn(&Point) -> bool| {
        near(begin, each_ns, has).zip(near(end, each_ns, has)).filter(|(a, b)| b.system.at_ns > a.system.at_ns)
    };
    let [has_cpu, has_disk]: [fn(&Point) -> bool; 2] = [|p| p.system.cpu.is_some(), |p| p.system.disk.is_some()];
    // Of the operating system where it is read between seconds; never of a machine that only the database's own session sees.
    let is_fine = |has: fn(&Point) -> bool| points.iter().any(|p| p.snapshot.is_none() && has(p));
    let (fine_cpu, fine_disk) = (is_fine(has_cpu), is_fine(has_disk));
    let rows = (0..window_ns.div_ceil(step_ns)).map(|i| {
        let begin = i * step_ns;
        let end = (begin + step_ns).min(window_ns);
        let ends_second = end.is_multiple_of(SECOND_NS) || end == window_ns;
        let second = ends_second.then_some([end.saturating_sub(1) / SECOND_NS * SECOND_NS, end]);
        let pair = |is_fine: bool, has: fn(&Point) -> bool| {
            if is_fine { between([begin, end], step_ns, has) } else { between(second?, SECOND_NS, has) }
        };
        let counters = pair(false, |p| p.snapshot.is_some());
        let counters = counters.and_then(|(a, b)| a.snapshot.as_ref().zip(b.snapshot.as_ref()));
        let counters = counters.filter(|(a, b)| a.seconds_until(b) > 0.0);
        let rate = |name: &str| counters.and_then(|(a, b)| a.delta(b, name).map(|n| n / a.seconds_until(b)));
        let rates = |is_fine, has| pair(is_fine, has).map(|(a, b)| a.system.rates_until(&b.system));
        let cpu = rates(fine_cpu, has_cpu).and_then(|r| r.cpu);
        let disk = rates(fine_disk, has_disk).and_then(|r| r.disk);
        vec![
            Some(end as f64 / 1e9),
            match counted {
                Some(rates) => rates.get(i as usize).copied(),
                None => rate(counter::COMMITS),
            },
            rate(counter::REDO_BYTES).map(|r| r / MIB),
            rate(counter::REDO_WRITES),
            rate(counter::REDO_SYNCS),
            cpu.map(|c| c.busy_pct),
            cpu.map(|c| c.iowait_pct),
            disk.map(|d| d.writes_per_s),
            disk.map(|d| d.util_pct),
            rate(counter::BLOCK_READS),
        ]
    });
    Series {
        columns: std::iter::once("t_s").chain(columns.map(|c| c.id)).map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use loadline_collect::System;
    use loadline_collect::os::CpuTimes;

    use super::*;

    const TENTH_NS: u64 = SECOND_NS / 10;

    /// A reading after so many tenths of a second, in which half of a CPU was busy; with the database's counters if it is a whole second.
    fn point(tenths: u64) -> Point {
        let cpu = CpuTimes::parse(&format!("cpu {} 0 0 {} 0 0 0 0 0 0\n", 5 * tenths, 5 * tenths)).unwrap();
        let at_ns = 7 * SECOND_NS + tenths * TENTH_NS;
        let read = || crate::testing::snapshot(at_ns, &[(counter::REDO_SYNCS, 3.0 * tenths as f64)]);
        let snapshot = tenths.is_multiple_of(10).then(read);
        Point { system: System { at_ns, cpu: Some(cpu), ..System::default() }, snapshot }
    }

    #[test]
    fn a_short_window_has_ten_rows_per_second_and_counters_at_whole_ones() {
        let points: Vec<Point> = (0..=20).filter(|i| *i != 3).map(point).collect();
        let rates: Vec<f64> = (0..20).map(f64::from).collect();
        let series = series_of(&points, 7 * SECOND_NS, 2 * SECOND_NS, TENTH_NS, Some(&rates));
        let column = |column: &loadline_model::Column| series.column(column.id).unwrap();
        assert_eq!(column(column::COMMIT_THROUGHPUT_TPS), rates.iter().copied().map(Some).collect::<Vec<_>>());
        let syncs = column(column::REDO_SYNC_WRITES_PER_S);
        assert_eq!(
            syncs.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?))).collect::<Vec<_>>(),
            [(9, 30.0), (19, 30.0)]
        );
        let missed: Vec<usize> =
            column(column::CPU_BUSY_PCT).iter().enumerate().filter_map(|(i, v)| v.is_none().then_some(i)).collect();
        assert_eq!(missed, [2, 3], "without a reading at 0.3 s");
        assert!(column(column::CPU_BUSY_PCT).into_iter().flatten().all(|pct| pct == 50.0));
    }

    #[test]
    fn a_long_window_has_a_row_per_second_and_what_is_left() {
        let points: Vec<Point> = [0, 10, 20, 25].map(point).into();
        let series = series_of(&points, 7 * SECOND_NS, 25 * TENTH_NS, SECOND_NS, None);
        assert_eq!(series.column("t_s").unwrap(), [1.0, 2.0, 2.5].map(Some));
        assert_eq!(series.column(column::CPU_BUSY_PCT.id).unwrap(), [50.0; 3].map(Some));
        assert_eq!(series.column(column::REDO_SYNC_WRITES_PER_S.id).unwrap(), [Some(30.0), Some(30.0), None]);
    }
}
