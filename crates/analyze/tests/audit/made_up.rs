//! Tables made up from a model of queues, forwards: what jobs, CPUs and a log writer do is computed first, then printed with
//! some digits. No formula of the laws is used, so that a law that is wrong finds errors in them.

use loadline_model::random::Random;

/// From 0 to 1.
pub(crate) fn unit(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1u64 << 53) as f64
}

/// An index below `n`.
pub(crate) fn below(random: &mut Random, n: usize) -> usize {
    (random.next() % n as u64) as usize
}

/// Between two values, each order of magnitude as likely.
fn around(random: &mut Random, low: f64, high: f64) -> f64 {
    (low.ln() + (high / low).ln() * unit(random)).exp()
}

/// A table with the decimals with which its columns are printed.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    /// Ids of the columns, and their headers, which may name other units.
    pub(crate) columns: Vec<(&'static str, &'static str)>,
    /// The workload of each row; a column of their names is printed if there are several.
    pub(crate) works: Vec<usize>,
    pub(crate) values: Vec<Vec<f64>>,
    pub(crate) decimals: Vec<usize>,
}

impl Made {
    /// The place of a column.
    pub(crate) fn at(&self, id: &str) -> Option<usize> {
        self.columns.iter().position(|(known, _)| *known == id)
    }

    pub(crate) fn csv(&self) -> String {
        let several = self.works.iter().any(|work| *work > 0);
        let first = |name: &str| if several { format!("{name},") } else { String::new() };
        let headers: Vec<&str> = self.columns.iter().map(|(_, header)| *header).collect();
        let mut out = first("workload") + &headers.join(",") + "\n";
        for (work, row) in self.works.iter().zip(&self.values) {
            let cells: Vec<String> = row.iter().zip(&self.decimals).map(|(v, d)| format!("{v:.d$}")).collect();
            out += &(first(["Order", "Payment", "Scan"][*work]) + &cells.join(",") + "\n");
        }
        out
    }
}

/// Time of a transaction of `n` jobs by mean value analysis of a closed network: CPUs, a log writer, a delay.
fn response(n: u32, cpu_s: f64, log_s: f64, delay_s: f64, think_s: f64) -> f64 {
    let (mut at_cpu, mut at_log, mut time) = (0.0, 0.0, 0.0);
    for jobs in 1..=n {
        let (r_cpu, r_log) = (cpu_s * (1.0 + at_cpu), log_s * (1.0 + at_log));
        time = r_cpu + r_log + delay_s;
        let rate = f64::from(jobs) / (time + think_s);
        (at_cpu, at_log) = (rate * r_cpu, rate * r_log);
    }
    time
}

/// One consistent table: one workload, or several, one below the other or side by side at each number of jobs.
pub(crate) fn table(random: &mut Random) -> Made {
    let (test, works) = (1 + below(random, 300), 1 + below(random, 6).saturating_sub(3));
    let platform = Platform {
        cpus: [2.0, 8.0, 24.0, 96.0][below(random, 4)],
        block: [512.0, 4096.0, 8192.0][below(random, 3)],
        per_write: below(random, 2) == 0,
        iowait: if below(random, 2) == 0 { 0.0 } else { 0.3 * unit(random) },
        think: if below(random, 4) == 0 { around(random, 1e-3, 1e-1) } else { 0.0 },
        seconds: [60.0, 300.0, 600.0][below(random, 3)],
    };
    let mut rows: Vec<(usize, Vec<f64>)> = Vec::new();
    for work in 0..works {
        rows.extend(series(random, &platform).into_iter().map(|row| (work, row)));
    }
    if below(random, 2) == 0 {
        rows.sort_by(|a, b| a.1[1].total_cmp(&b.1[1]));
    }
    rows.iter_mut().enumerate().for_each(|(i, (_, row))| row[0] = (test + i) as f64);
    print(random, rows)
}

/// What all workloads of a table share: the machine, and how the jobs are driven.
struct Platform {
    cpus: f64,
    /// Bytes of a block of redo, and whether it is padded once for a write, or for each transaction.
    block: f64,
    per_write: bool,
    /// Share of the idle time that waits for I/O.
    iowait: f64,
    /// s between transactions.
    think: f64,
    seconds: f64,
}

/// The tests of one workload over rising jobs.
fn series(random: &mut Random, platform: &Platform) -> Vec<Vec<f64>> {
    let Platform { cpus, block, per_write, iowait, think, seconds } = *platform;
    let demand = around(random, 2e-5, 2e-3);
    // Jobs that get in each other's way need more CPU time.
    let more = if below(random, 3) == 0 { around(random, 1e-4, 2e-2) } else { 0.0 };
    let (log, delay) = (around(random, 1e-6, 3e-4), around(random, 2e-5, 5e-3));
    let kib = around(random, 0.3, 500.0);
    let rows_per_tx = [1.0, 2.0, 5.0, 10.0, 50.0, 100.0][below(random, 6)];
    let user = 0.6 + 0.39 * unit(random);
    let spread = 0.2 + 0.8 * unit(random);
    let count = 4 + below(random, 9);
    let step = 1.3 + unit(random);
    let mut jobs = 1 + below(random, 3) as u32;
    let mut values = Vec::new();
    for _ in 0..count {
        let demand = demand * (1.0 + more * f64::from(jobs - 1));
        let time = response(jobs, demand / cpus, log, delay, think);
        let rate = f64::from(jobs) / (time + think);
        let busy = (rate * demand / cpus).min(1.0) * 100.0;
        let waiting = (100.0 - busy) * iowait;
        // Commits that meet at the log writer share its writes.
        let group = 1.0 + (f64::from(jobs) - 1.0) * 0.5 * (1.0 - (-rate * log).exp());
        let writes = rate / group;
        let bytes = rate * kib * 1024.0;
        let padded =
            if per_write { bytes + writes * block / 2.0 } else { rate * (kib * 1024.0 / block).ceil() * block };
        // Log-normal times with this mean.
        let median = time / (spread * spread / 2.0).exp();
        let at = |z: f64| median * (spread * z).exp();
        let cpu = [busy, busy * user, busy * (1.0 - user), 100.0 - busy - waiting, waiting];
        let log = [padded / block, writes, rate, bytes / 1_048_576.0, kib, (log + delay * 0.5) * 1e3, seconds];
        let times = [median * 1e9, at(2.326) * 1e9, at(4.5) * 1e9];
        let counts = [rows_per_tx, rate * rows_per_tx, rate * seconds];
        values.push([&[0.0, f64::from(jobs)][..], &cpu, &[rate, time * 1e3], &log, &times, &counts].concat());
        jobs = (f64::from(jobs) * step).ceil() as u32 + 1;
    }
    values
}

const COLUMNS: [&str; 22] = [
    "test", "jobs", "cpu_busy_pct", "cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct", "cpu_iowait_pct",
    "commit_throughput_tps", "commit_latency_ms", "redo_blocks_per_s", "redo_writes_per_s", "redo_sync_writes_per_s",
    "redo_mib_per_s", "redo_kib_per_tx", "log_file_sync_ms", "elapsed_s", "transaction_time_ns_p50",
    "transaction_time_ns_p99", "transaction_time_ns_max", "rows_per_tx", "rows_per_s", "commits",
];

/// Columns as others head them, and what their figures are then in units with a factor of 1000, and in others.
const HEADERS: [(&str, &str, [f64; 2]); 5] = [
    ("redo_mib_per_s", "Redo [MB/s]", [1.048576, 1.0]),
    ("redo_kib_per_tx", "Redo [kB/tx]", [1.024, 1.0]),
    ("commit_throughput_tps", "Throughput [ktps]", [1e-3, 1e-3]),
    ("commit_latency_ms", "Latency [us]", [1e3, 1e3]),
    ("rows_per_s", "Rows [krows/s]", [1e-3, 1e-3]),
];

/// Prints some of the columns with some digits: as many decimals as leave the smallest value of a column 2 to 5 digits.
fn print(random: &mut Random, rows: Vec<(usize, Vec<f64>)>) -> Made {
    let (works, mut values): (Vec<usize>, Vec<Vec<f64>>) = rows.into_iter().unzip();
    let mut columns: Vec<(&str, &str)> = COLUMNS.iter().map(|id| (*id, *id)).collect();
    let units = below(random, 4);
    for (id, header, factors) in HEADERS.iter().filter(|_| units < 2) {
        for (c, column) in columns.iter_mut().enumerate().filter(|(_, (known, _))| known == id) {
            column.1 = header;
            values.iter_mut().for_each(|row| row[c] *= factors[units]);
        }
    }
    let whole = ["test", "jobs", "elapsed_s", "rows_per_tx", "commits"];
    let mut kept: Vec<usize> = (0..COLUMNS.len()).filter(|_| unit(random) < 0.8).collect();
    if kept.len() < 2 {
        kept = (0..COLUMNS.len()).collect();
    }
    let decimals = |c: usize, random: &mut Random| {
        if whole.contains(&COLUMNS[c]) {
            return 0;
        }
        if COLUMNS[c].starts_with("cpu_") {
            return below(random, 2);
        }
        let least = values.iter().map(|row| row[c]).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let digits = 2 + below(random, 4) as i32;
        usize::try_from(digits - 1 - least.log10().floor() as i32).unwrap_or(0).min(9)
    };
    let decimals: Vec<usize> = kept.iter().map(|c| decimals(*c, random)).collect();
    let columns = kept.iter().map(|c| columns[*c]).collect();
    Made { columns, works, values: values.iter().map(|row| kept.iter().map(|c| row[*c]).collect()).collect(), decimals }
}
