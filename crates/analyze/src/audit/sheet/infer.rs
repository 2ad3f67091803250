//! What columns are that their headers leave open: by the other columns, and by their figures.

use super::{Bound, Figure, How, SAMPLE, Sheet};
use crate::audit::header::Header;
use crate::audit::names;
use crate::audit::unit::{Of, Per, Unit};

/// The largest of several shares of a busy platform is no smaller than this part of it.
const PARTS_OF_ONE: f64 = 0.2;

/// Whether the words of a header say that its figures are rates.
pub(crate) fn is_rate(header: &Header) -> bool {
    const RATES: [&str; 11] =
        ["rate", "throughput", "bandwidth", "bw", "speed", "tps", "qps", "iops", "persecond", "limit", "ops"];
    header.words.iter().any(|w| RATES.contains(&w.as_str()))
}

/// Whether a header has the unit of the column that it means.
pub(super) fn has_own_dimension(header: &Header, id: &str) -> bool {
    header.unit.as_ref().is_none_or(|u| u.dimension == Unit::of_id(id).dimension)
}

/// Parts of the CPU time; the last, which some count as idle or busy.
const CPU_PARTS: [&str; 8] = [
    "cpu_user_pct", "cpu_sys_pct", "cpu_nice_pct", "cpu_irq_pct", "cpu_softirq_pct", "cpu_steal_pct", "cpu_idle_pct",
    "cpu_iowait_pct",
];

impl Sheet<'_> {
    /// Whether a size of redo without "per transaction" is none of a transaction: that is known, or it is in megabytes.
    pub(super) fn is_total(&self, id: &str, header: &Header) -> bool {
        let Some(unit) = header.unit.as_ref().filter(|u| u.dimension.of == Of::Bytes) else { return false };
        let whole = id == "redo_kib_per_tx" && unit.dimension.per == Per::Whole;
        whole && (unit.size >= 1e6 || self.has(id)) && !self.has("redo_mib_per_s")
    }

    /// Columns of rates whose headers do not say that they are: they may count over the whole test.
    pub(crate) fn may_be_counts(&self) -> Vec<&'static str> {
        let is_open = |c: &&Bound| {
            let own = Unit::of_id(c.id).dimension;
            let header = Header::parse(&self.table.headers[c.index]);
            let unit = header.unit.as_ref().map(|u| u.dimension.per);
            let bare = unit == Some(Per::Whole) || (unit.is_none() && own.of == Of::One);
            c.how == How::Inferred && own.per == Per::Second && bare && !is_rate(&header)
        };
        self.columns.iter().filter(is_open).map(|c| c.id).collect()
    }

    /// Makes a rate of a count over the whole test.
    pub(crate) fn over_elapsed(&mut self, id: &str) {
        let elapsed: Vec<Option<Figure>> = (0..self.table.rows()).map(|row| self.figure("elapsed_s", row)).collect();
        let Some(column) = self.columns.iter_mut().find(|c| c.id == id) else { return };
        for (figure, elapsed) in column.figures.iter_mut().zip(elapsed) {
            let Some(s) = elapsed.filter(|e| e.value > 0.0) else {
                *figure = super::MISSING;
                continue;
            };
            let spread = figure.value * s.half() / s.value.powi(2);
            figure.value /= s.value;
            figure.half = (figure.half() / s.value + spread) as f32;
            figure.loose = (figure.loose() / s.value + spread) as f32;
        }
        column.counted = true;
        let name = self.table.headers[column.index].clone();
        self.remark(format!("column '{name}' is a count over the whole test: divided by elapsed_s it is {id}"));
    }

    /// Throughput from what it is a factor of, where it is not printed itself: commits / time, rows / rows per transaction, redo /
    /// redo per transaction.
    pub(crate) fn throughput_of_others(&mut self) {
        const SOURCES: [(&str, &str, f64); 3] = [
            ("commits", "elapsed_s", 1.0),
            ("rows_per_s", "rows_per_tx", 1.0),
            ("redo_mib_per_s", "redo_kib_per_tx", 1024.0),
        ];
        let source = SOURCES.into_iter().find(|(of, by, _)| self.has(of) && self.has(by));
        let Some((of, by, times)) = source.filter(|_| self.throughput().is_none()) else { return };
        let exact = by == "rows_per_tx";
        let quotient = |row: usize| {
            let (of, by) = (self.figure(of, row)?, self.figure(by, row).filter(|f| f.value > 0.0)?);
            let whole = exact && by.value.fract() == 0.0;
            let by = if whole { Figure { half: 0.0, loose: 0.0, ..by } } else { by };
            let wide = |a: f64, b: f64| (a / by.value + of.value * b / by.value.powi(2)) * times;
            let (half, loose) = (wide(of.half(), by.half()), wide(of.loose(), by.loose()));
            Some(Figure { value: of.value / by.value * times, half: half as f32, loose: loose as f32 })
        };
        let figures: Vec<Figure> = (0..self.table.rows()).map(|row| quotient(row).unwrap_or(super::MISSING)).collect();
        let sure = |id| self.column(id).is_some_and(|c| c.how != How::Inferred);
        let how = if sure(of) && sure(by) { How::Id } else { How::Inferred };
        let Some(index) = self.column(of).map(|c| c.index) else { return };
        self.columns.push(Bound { figures, derived: true, ..Bound::new(index, "commit_throughput_tps", how) });
        self.remark(format!("there is no column of throughput: it is {of} / {by}"));
    }

    /// Uses no column for `id`, as `why` says.
    pub(crate) fn leave_out(&mut self, id: &str, why: &str) {
        let Some(at) = self.columns.iter().position(|c| c.id == id) else { return };
        let index = self.columns.remove(at).index;
        let name = &self.table.headers[index];
        self.remarks.retain(|r| r.column != Some(index));
        self.remark_of(
            index,
            format!("column '{name}' was left out: {why}; --columns '{name}={id}' says that it is {id}"),
        );
    }

    /// A time that rises in equal steps from row to row is when each of them was, and not how long it took.
    pub(super) fn without_clock(&mut self) {
        let all: Vec<f64> = (0..self.table.rows().min(SAMPLE)).filter_map(|row| self.value("elapsed_s", row)).collect();
        let step = |w: &[f64]| w[1] - w[0];
        let first = all.get(..2).map_or(0.0, step);
        if all.len() > 3 && first > 0.0 && all.windows(2).all(|w| (step(w) / first - 1.0).abs() < 0.05) {
            self.leave_out("elapsed_s", "it rises in equal steps, so that it is a time since the start");
        }
    }

    /// Leaves out columns whose names mean much else too, unless the other columns fit what they were taken for.
    pub(super) fn without_ambiguous(&mut self) {
        let rows = self.table.rows().min(SAMPLE);
        let most = |fits: &dyn Fn(usize) -> Option<bool>| {
            let all: Vec<bool> = (0..rows).filter_map(fits).collect();
            all.len() > 1 && all.iter().filter(|f| **f).count() * 4 >= all.len() * 3
        };
        // Parts and the whole of the CPU time add up.
        let adds_up_to = |parts: &[&str], whole: Option<f64>, row| {
            let all = parts.iter().filter_map(|id| self.figure(id, row));
            let (sum, wide) = all.fold((0.0, 0.51), |(sum, wide), f| (sum + f.value, wide + f.half()));
            whole.map(|whole| (sum - whole).abs() <= wide)
        };
        let busy = most(&|row| adds_up_to(&CPU_PARTS[..2], self.value("cpu_busy_pct", row), row));
        let idle = self.has("cpu_idle_pct") && self.has("cpu_user_pct");
        let all = |n: usize| most(&|row| adds_up_to(&CPU_PARTS[..n], Some(100.0), row));
        let adds_up = busy || idle && (all(CPU_PARTS.len()) || all(CPU_PARTS.len() - 1));
        let product = |row| {
            let tps = self.value(self.throughput()?, row)?;
            Some((0.8..1.25).contains(&(tps * self.value("rows_per_tx", row)? / self.value("rows_per_s", row)?)))
        };
        let rows_fit = most(&product);
        let unsure = |c: &&Bound| c.ambiguous && Unit::of_id(c.id).dimension.of != Of::Time;
        for id in self.columns.iter().filter(unsure).map(|c| c.id).collect::<Vec<_>>() {
            let fits = if id.starts_with("cpu_") { adds_up } else { rows_fit };
            match self.columns.iter_mut().find(|c| c.id == id) {
                Some(column) if fits => column.ambiguous = false,
                _ => self.leave_out(id, "its name alone may mean much else, and no other column fits it"),
            }
        }
    }

    /// Beside I/O per second, a column that is only a unit of bytes per second is their bandwidth.
    pub(super) fn bare_bandwidth(&mut self, headers: &[Header]) {
        let is_rate =
            |h: &Header| h.unit.as_ref().is_some_and(|u| u.dimension.of == Of::Bytes && u.dimension.per == Per::Second);
        let bare = headers.iter().position(|h| h.words.is_empty() && h.second.is_none() && is_rate(h));
        let (Some(index), true, false) = (bare, self.has("io_per_s"), self.has("data_mib_per_s")) else { return };
        self.bind(index, &headers[index], "data_mib_per_s", How::Inferred);
    }

    /// Throughput × time / jobs with the figures of `rate` in each row, of the first ones.
    fn busy(&self, rate: &Bound) -> Vec<f64> {
        let of = |row| {
            let (tps, ms) = (rate.figure(row)?.value, self.value("commit_latency_ms", row)?);
            Some(tps * ms / 1e3 / self.value("jobs", row)?).filter(|b| b.is_finite() && *b > 0.0)
        };
        (0..self.table.rows().min(SAMPLE)).filter_map(of).collect()
    }

    /// Of several rates, such as NOPM and TPM, takes that which Little's law holds with the printed time.
    pub(super) fn rate_of_the_times(&mut self, headers: &[Header]) {
        let id = "commit_throughput_tps";
        let Some(at) = self.columns.iter().position(|c| c.id == id && c.how == How::Inferred) else { return };
        let fits = |b: &&f64| (0.97..1.01).contains(*b);
        let most = |busy: Vec<f64>| !busy.is_empty() && busy.iter().filter(fits).count() * 4 >= busy.len() * 3;
        if most(self.busy(&self.columns[at])) {
            return;
        }
        let old = self.columns[at].index;
        for (index, header) in headers.iter().enumerate().filter(|(i, h)| *i != old && h.second.is_none()) {
            if names::read(header).map(|m| m.id) != Some(id) {
                continue;
            }
            let mut other = self.clone();
            other.columns.remove(at);
            other.remarks.retain(|r| r.column != Some(old) && r.column != Some(index));
            other.bind(index, header, id, How::Inferred);
            if other.columns.last().is_some_and(|c| c.index == index && most(other.busy(c))) {
                let name = &self.table.headers[old];
                other.remark_of(
                    old,
                    format!(
                        "it was preferred to '{name}', as it is the rate that Little's law gives with the printed time"
                    ),
                );
                *self = other;
                return;
            }
        }
    }

    /// Where queries are the only rate, the time is that of a query, unless there are more of them than jobs can do.
    pub(super) fn queries_are_transactions(&mut self) {
        if self.throughput().is_some() {
            return;
        }
        let Some(at) = self.columns.iter().position(|c| c.id == "queries_per_s" && c.how == How::Inferred) else {
            return;
        };
        let busy = self.busy(&self.columns[at]);
        if busy.is_empty() || busy.iter().filter(|b| (0.02..1.1).contains(*b)).count() * 2 < busy.len() {
            return;
        }
        self.columns[at].id = "tx_per_s";
        let name = self.table.headers[self.columns[at].index].clone();
        self.remark(format!(
            "each of '{name}' was taken for a transaction, as there is no other rate and the times fit"
        ));
    }

    /// Says which columns of numbers are not used, as nobody should think that they were checked.
    pub(super) fn unused(&mut self) {
        let known: Vec<usize> = self.columns.iter().map(|c| c.index).collect();
        let rows = self.table.rows().min(SAMPLE);
        let begins = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit());
        let numbers = |index: usize| (0..rows).filter(|row| begins(self.table.cell(*row, index))).count();
        let named = |index: usize| self.remarks.iter().any(|r| r.column == Some(index));
        let is_unused = |i: &usize| !known.contains(i) && numbers(*i) * 2 > rows && !named(*i);
        let unused: Vec<usize> = (0..self.table.headers.len()).filter(is_unused).collect();
        if !unused.is_empty() && !known.is_empty() {
            let few: Vec<String> = unused.iter().take(20).map(|i| format!("'{}'", self.table.headers[*i])).collect();
            let more = unused.len() - few.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let few = few.join(", ");
            self.remark(format!("no law knows what these columns are, say it with --columns: {few}{more}"));
        }
    }

    /// A bare rate beside no other one is what was done, and not what was asked for.
    pub(super) fn rate_is_throughput(&mut self, headers: &[Header]) {
        let has = self.throughput().is_some() || self.has("io_per_s") || self.has("rows_per_s");
        let bare = |c: &&mut Bound| c.id == "rate_tps" && c.how == How::Inferred && headers[c.index].words == ["rate"];
        if let Some(rate) = self.columns.iter_mut().find(bare).filter(|_| !has) {
            rate.id = "commit_throughput_tps";
        }
    }

    /// Benchmarks that know no parallel workers call their sessions threads.
    pub(super) fn threads_are_jobs(&mut self) {
        if self.has("jobs") {
            return;
        }
        let Some(at) = self.columns.iter().position(|c| c.id == "threads") else { return };
        self.columns[at].id = "jobs";
        self.columns[at].how = How::Inferred;
        let name = self.table.headers[self.columns[at].index].clone();
        self.remark(format!("column '{name}' was taken for jobs, as there is no other number of sessions"));
    }

    /// Finds the unit of times without one by Little's law: no job can do more than one second of work in a second.
    pub(super) fn infer_times(&mut self) {
        let Some(rate) = self.throughput() else { return };
        let Some(at) = self.columns.iter().position(|c| c.id == "commit_latency_ms") else { return };
        let unnamed =
            |c: &Bound| c.how == How::Inferred && c.printed.is_none() && Unit::of_id(c.id).dimension.of == Of::Time;
        if !unnamed(&self.columns[at]) {
            return;
        }
        let mut shares = self.column(rate).map(|rate| self.busy(rate)).unwrap_or_default();
        shares.sort_by(f64::total_cmp);
        let Some(median) = shares.get(shares.len() / 2).copied() else { return };
        if (0.02..1.1).contains(&median) {
            return;
        }
        let units = [("ns", 1e-6), ("µs", 1e-3), ("s", 1e3)];
        let Some((unit, times)) = units.into_iter().find(|(_, times)| (0.2..1.1).contains(&(median * times))) else {
            return;
        };
        for column in self.columns.iter_mut().filter(|c| unnamed(c) && c.id != "elapsed_s") {
            column.scale(times);
        }
        self.remark(format!("times without a unit were taken for {unit}: then throughput × latency gives the jobs"));
    }

    /// Shares without a unit that are all parts of one.
    pub(super) fn infer_shares(&mut self) {
        let rows = self.table.rows().min(SAMPLE);
        let mut found = Vec::new();
        for column in &mut self.columns {
            let unnamed = column.how == How::Inferred && column.printed.is_none();
            let parts = (0..rows).filter_map(|row| column.figure(row)).any(|f| f.value.fract() > 0.0);
            if !unnamed || !parts || Unit::of_id(column.id).dimension.of != Of::Share {
                continue;
            }
            let most = (0..rows).filter_map(|row| column.figure(row)).map(|f| f.value).fold(0.0, f64::max);
            if (PARTS_OF_ONE..=1.0).contains(&most) {
                column.scale(100.0);
                found.push(column.id);
            }
        }
        if !found.is_empty() {
            self.remark(format!("parts of 1 were taken for percent, as none is larger: {}", found.join(", ")));
        }
    }
}
