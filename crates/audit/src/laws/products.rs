//! Laws of the form a × b = c × d: rates, sizes, counts and times that are one figure said twice.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::{Interval, Reading};
use crate::judge::{Equation, SAMPLE, Side, Sides, judge, missed, most_meet};

/// `constant` × the product of `top` = the product of `bottom`.
pub(crate) struct Product {
    pub(crate) top: &'static [&'static str],
    pub(crate) bottom: &'static [&'static str],
    pub(crate) constant: f64,
    /// The column whose printed figure is compared.
    pub(crate) target: &'static str,
    pub(crate) above: Side,
    pub(crate) below: Side,
    /// Relative deviation that has known causes.
    pub(crate) slack: f64,
    /// A column whose whole numbers are exact, rather than rounded means, if most rows then agree.
    pub(crate) exact: Option<&'static str>,
}

impl Product {
    /// The quotient of both sides in a row.
    pub(crate) fn quotient(
        &self,
        context: &Context<'_>,
        row: usize,
        exact: Option<&'static str>,
        reading: Reading,
    ) -> Option<Interval> {
        let figure = |id: &'static str| match context.value(id, row) {
            Some(value) if Some(id) == exact && value.fract() == 0.0 => Some(Interval::exact(value)),
            _ => context.interval(id, row, reading),
        };
        let product =
            |ids: &[&'static str]| ids.iter().try_fold(Interval::exact(1.0), |all, id| Some(all.times(figure(id)?)));
        let (top, bottom) = (product(self.top)?, product(self.bottom)?);
        // Of nothing at all, both sides are 0.
        if top.low <= 0.0 && bottom.low <= 0.0 {
            let zero = |ids: &[&'static str]| ids.iter().any(|id| context.value(id, row) == Some(0.0));
            if zero(self.top) && zero(self.bottom) {
                return None;
            }
        }
        Some(top.scaled(self.constant).over(bottom))
    }

    /// The target as the other columns give it.
    fn recomputed(&self, context: &Context<'_>, row: usize) -> Option<f64> {
        let value = |ids: &[&'static str]| {
            let others = ids.iter().filter(|id| **id != self.target);
            others.copied().try_fold(1.0, |all, id| Some(all * context.value(id, row)?))
        };
        let (top, bottom) = (value(self.top)? * self.constant, value(self.bottom)?);
        let found = if self.top.contains(&self.target) { bottom / top } else { top / bottom };
        Some(found).filter(|v| v.is_finite())
    }

    pub(crate) fn check(&self, law: &Law, context: &Context<'_>, findings: &mut Findings) {
        let times = self.kilobyte(law, context, findings);
        let rows = |exact| {
            missed(context.rows(), 1.0, |row, reading| Some(self.quotient(context, row, exact, reading)?.scaled(times)))
        };
        let sharp = self.exact.map(|id| rows(Some(id)).filter(|all| most_meet(all, 1.0)));
        let all = sharp.flatten().or_else(|| rows(None)).unwrap_or_default();
        let columns: Vec<&'static str> = self.top.iter().chain(self.bottom).copied().collect();
        let equation = Equation {
            law: law.id,
            formula: law.formula,
            columns: &columns,
            target: self.target,
            equal: 1.0,
            above: self.above,
            below: self.below,
            slack: self.slack,
            recompute: &|row, _| self.recomputed(context, row),
        };
        judge(&equation, &all, context, findings);
        self.fill(law, &columns, context, findings);
    }

    /// What the quotient is multiplied by if a header leaves open which kilobyte it means: that with which most rows meet.
    fn kilobyte(&self, law: &Law, context: &Context<'_>, findings: &mut Findings) -> f64 {
        let open = |ids: &[&'static str], up: bool| -> Vec<f64> {
            let columns = ids.iter().filter_map(|id| context.sheet.column(context.resolve(id)?));
            let other = columns.filter_map(|c| c.or.map(|or| or / c.factor));
            other.map(|times| if up { times } else { 1.0 / times }).collect()
        };
        let (top, bottom) = (open(self.top, true), open(self.bottom, false));
        let mut factors = vec![1.0];
        for times in top.iter().chain(&bottom) {
            factors.extend(factors.clone().iter().map(|f| f * times));
        }
        if factors.len() == 1 {
            return 1.0;
        }
        let sample = 0..context.rows().len().min(SAMPLE);
        let all: Vec<Sides> =
            sample.filter_map(|row| Sides::of(row, |reading| self.quotient(context, row, None, reading))).collect();
        let fits = |times: f64| all.iter().filter(|s| s.meets(1.0 / times)).count();
        let mut best = (fits(1.0), 1.0);
        for times in factors {
            if fits(times) > best.0 {
                best = (fits(times), times);
            }
        }
        if best.1 != 1.0 {
            let columns: Vec<&'static str> = self.top.iter().chain(self.bottom).copied().collect();
            let text = format!("{}: fits in {} of {} rows if KB and MB are binary", law.formula, best.0, all.len());
            findings.push(context.about_table("kilobyte", Severity::Info, &columns, text));
        }
        best.1
    }

    /// Says what a missing target must have been.
    fn fill(&self, law: &Law, columns: &[&'static str], context: &Context<'_>, findings: &mut Findings) {
        let missing = |row: &usize| context.value(self.target, *row).is_none();
        for row in context.rows().filter(missing) {
            if let Some(value) =
                self.recomputed(context, row).filter(|v| *v > 0.0 && findings.wants(law.id, Severity::Info))
            {
                let text = format!("{}: {} is not printed; it was {}", law.formula, self.target, shown(value, 4));
                findings.push(context.about_row(law.id, Severity::Info, row, columns, self.target, Some(value), text));
            }
        }
    }
}

const KIB_PER_MIB: f64 = 1.0 / 1024.0;
const MIB_PER_BYTE: f64 = 1.0 / 1_048_576.0;
const DIFFERENT: Side = Side::Never("one of these figures is wrong, or they are not of the same test");
const WINDOWS: Side = Side::Unless("they can differ only if they were counted over different times");

pub(crate) static REDO_RATE: Law = Law {
    id: "redo-rate",
    name: "Rate × size = bandwidth",
    formula: "tps × redo_kib_per_tx / 1024 = redo_mib_per_s",
    needs: &[&["tps", "redo_kib_per_tx", "redo_mib_per_s"]],
    tolerance: "1 %, and none where the other rows agree within their digits",
    meaning: "A wrong digit or unit, or redo and transactions of different times",
    check: Check::Product(Product {
        top: &["tps", "redo_kib_per_tx"],
        bottom: &["redo_mib_per_s"],
        constant: KIB_PER_MIB,
        target: "redo_mib_per_s",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static REDO_BYTES: Law = Law {
    id: "redo-bytes",
    name: "Redo per transaction, twice",
    formula: "redo_bytes_per_tx / 1024 = redo_kib_per_tx",
    needs: &[&["redo_bytes_per_tx", "redo_kib_per_tx"]],
    tolerance: "none",
    meaning: "A wrong digit or unit",
    check: Check::Product(Product {
        top: &["redo_bytes_per_tx"],
        bottom: &["redo_kib_per_tx"],
        constant: KIB_PER_MIB,
        target: "redo_kib_per_tx",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.001,
        exact: None,
    }),
};

pub(crate) static READ_RATE: Law = Law {
    id: "read-rate",
    name: "Blocks × block size = bytes read",
    formula: "block_reads_per_s × block_bytes / 1024² = read_mib_per_s",
    needs: &[&["block_reads_per_s", "block_bytes", "read_mib_per_s"]],
    tolerance: "2 %, and none where the other rows agree within their digits",
    meaning: "Reads are counted as calls of several blocks, another block size, or a wrong digit",
    check: Check::Product(Product {
        top: &["block_reads_per_s", "block_bytes"],
        bottom: &["read_mib_per_s"],
        constant: MIB_PER_BYTE,
        target: "read_mib_per_s",
        above: Side::Never("fewer bytes were read than the blocks have"),
        below: Side::Unless("more bytes than these blocks have: reads are counted as calls of several blocks"),
        slack: 0.02,
        exact: None,
    }),
};

pub(crate) static IO_RATE: Law = Law {
    id: "io-rate",
    name: "I/O × its size = bandwidth",
    formula: "io_per_s × block_bytes / 1024² = data_mib_per_s",
    needs: &[&["io_per_s", "block_bytes", "data_mib_per_s"]],
    tolerance: "always a warning: requests may have other sizes",
    meaning: "Requests of another size than stated, or a bandwidth of something else",
    check: Check::Product(Product {
        top: &["io_per_s", "block_bytes"],
        bottom: &["data_mib_per_s"],
        constant: MIB_PER_BYTE,
        target: "data_mib_per_s",
        above: Side::Unless("the requests are smaller than stated, or not all of them are in the bandwidth"),
        below: Side::Unless("the requests are larger than stated, or the bandwidth holds more than they"),
        slack: 0.02,
        exact: None,
    }),
};

pub(crate) static ROWS: Law = Law {
    id: "rows",
    name: "Rows = transactions × rows per transaction",
    formula: "tps × rows_per_tx = rows_per_s",
    needs: &[&["tps", "rows_per_tx", "rows_per_s"]],
    tolerance: "0.5 %, and none where the other rows agree within their digits",
    meaning: "A wrong digit; where rows per transaction are printed as 0, their true number is the recomputed one",
    check: Check::Product(Product {
        top: &["tps", "rows_per_tx"],
        bottom: &["rows_per_s"],
        constant: 1.0,
        target: "rows_per_tx",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.005,
        exact: Some("rows_per_tx"),
    }),
};

pub(crate) static COMMITS: Law = Law {
    id: "commits",
    name: "Commits = throughput × time",
    formula: "tps × elapsed_s = commits",
    needs: &[&["tps", "elapsed_s", "commits"]],
    tolerance: "1 %, and none where the other rows agree within their digits",
    meaning: "The rate is that of another time than the printed one, or a wrong digit",
    check: Check::Product(Product {
        top: &["tps", "elapsed_s"],
        bottom: &["commits"],
        constant: 1.0,
        target: "commits",
        above: Side::Never("the rate is higher than commits / time"),
        below: Side::Never("the rate is lower than commits / time"),
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static COMMITS_DATABASE: Law = Law {
    id: "commits-database",
    name: "Commits as the database counts them",
    formula: "commits = commits_database",
    needs: &[&["commits", "commits_database"]],
    tolerance: "1 %",
    meaning: "Others committed as well, or commits were lost",
    check: Check::Product(Product {
        top: &["commits"],
        bottom: &["commits_database"],
        constant: 1.0,
        target: "commits",
        above: Side::Unless(
            "the database counted fewer: its snapshots are of a shorter time, or not all were committed",
        ),
        below: Side::Unless("the database counted more: others committed, or its snapshots are of a longer time"),
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static REDO_SYNCS: Law = Law {
    id: "redo-syncs",
    name: "Syncs = rate × time",
    formula: "redo_sync_writes_per_s × elapsed_s = redo_syncs",
    needs: &[&["redo_sync_writes_per_s", "elapsed_s", "redo_syncs"]],
    tolerance: "1 %, and none where the other rows agree within their digits",
    meaning: "Counted over another time, or a wrong digit",
    check: Check::Product(Product {
        top: &["redo_sync_writes_per_s", "elapsed_s"],
        bottom: &["redo_syncs"],
        constant: 1.0,
        target: "redo_syncs",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static COMMITS_PER_SYNC: Law = Law {
    id: "commits-per-sync",
    name: "Commits per sync, recomputed",
    formula: "tps / redo_sync_writes_per_s = commits_per_redo_sync",
    needs: &[&["tps", "redo_sync_writes_per_s", "commits_per_redo_sync"]],
    tolerance: "always a warning: the database's commits may be other ones",
    meaning: "The database counted commits that the throughput does not hold",
    check: Check::Product(Product {
        top: &["tps"],
        bottom: &["redo_sync_writes_per_s", "commits_per_redo_sync"],
        constant: 1.0,
        target: "commits_per_redo_sync",
        above: WINDOWS,
        below: WINDOWS,
        slack: 0.02,
        exact: None,
    }),
};

pub(crate) static TX_RATE: Law = Law {
    id: "tx-rate",
    name: "Throughput, twice",
    formula: "commit_throughput_tps = tx_per_s",
    needs: &[&["commit_throughput_tps", "tx_per_s"]],
    tolerance: "1 %, and none where the other rows agree within their digits",
    meaning: "A wrong digit, or one of them counts something else",
    check: Check::Product(Product {
        top: &["commit_throughput_tps"],
        bottom: &["tx_per_s"],
        constant: 1.0,
        target: "tx_per_s",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static MEAN_TIME: Law = Law {
    id: "mean-time",
    name: "Mean transaction time, twice",
    formula: "commit_latency_ms × 10⁶ = transaction_time_ns_mean",
    needs: &[&["commit_latency_ms", "transaction_time_ns_mean"]],
    tolerance: "1 %, and none where the other rows agree within their digits",
    meaning: "A wrong digit or unit, or one of them times something else",
    check: Check::Product(Product {
        top: &["commit_latency_ms"],
        bottom: &["transaction_time_ns_mean"],
        constant: 1e6,
        target: "transaction_time_ns_mean",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static LIMIT_SHARE: Law = Law {
    id: "limit-share",
    name: "Share of the limit, recomputed",
    formula: "tps / limit_tps × 100 = limit_share_pct",
    needs: &[&["tps", "limit_tps", "limit_share_pct"]],
    tolerance: "1 %",
    meaning: "A wrong digit, or the limit of another test",
    check: Check::Product(Product {
        top: &["tps"],
        bottom: &["limit_tps", "limit_share_pct"],
        constant: 100.0,
        target: "limit_share_pct",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static OPERATIONS: Law = Law {
    id: "operations",
    name: "Operations = jobs × operations per job",
    formula: "jobs × mops_per_s_per_job = mops_per_s",
    needs: &[&["jobs", "mops_per_s_per_job", "mops_per_s"]],
    tolerance: "1 %, and none where the other rows agree within their digits",
    meaning: "A wrong digit",
    check: Check::Product(Product {
        top: &["jobs", "mops_per_s_per_job"],
        bottom: &["mops_per_s"],
        constant: 1.0,
        target: "mops_per_s",
        above: DIFFERENT,
        below: DIFFERENT,
        slack: 0.01,
        exact: None,
    }),
};

pub(crate) static DEVICE_SHARE: Law = Law {
    id: "device-share",
    name: "Share of the bytes from the device, recomputed",
    formula: "device_read_mib_per_s / read_mib_per_s × 100 = device_read_share_pct",
    needs: &[&["device_read_mib_per_s", "read_mib_per_s", "device_read_share_pct"]],
    tolerance: "always a warning",
    meaning: "A wrong digit, or figures of different times",
    check: Check::Product(Product {
        top: &["device_read_mib_per_s"],
        bottom: &["read_mib_per_s", "device_read_share_pct"],
        constant: 100.0,
        target: "device_read_share_pct",
        above: WINDOWS,
        below: WINDOWS,
        slack: 0.02,
        exact: None,
    }),
};
