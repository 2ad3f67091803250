//! What columns are that their headers leave open: by the other columns, and by their figures.

use super::{Bound, How, Mapping, SAMPLE, Sheet};
use crate::header::Header;
use crate::names;
use crate::unit::{Of, Per, Unit};

/// The largest of several shares of a busy platform is no smaller than this part of it.
const PARTS_OF_ONE: f64 = 0.2;

/// Words of headers that say that a figure is a rate.
const RATES: [&str; 10] =
    ["rate", "throughput", "bandwidth", "speed", "tps", "qps", "iops", "persecond", "limit", "ops"];

/// Whether a header has the unit of the column that its words mean.
pub(super) fn has_own_dimension(header: &Header) -> bool {
    let id = names::by_words(&header.words, header.unit.as_ref());
    id.is_some_and(|id| header.unit.as_ref().is_none_or(|u| u.dimension == Unit::of_id(id).dimension))
}

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
            let rate = header.words.iter().any(|w| RATES.contains(&w.as_str()));
            c.how == How::Inferred && own.per == Per::Second && bare && !rate
        };
        self.columns.iter().filter(is_open).map(|c| c.id).collect()
    }

    /// Makes a rate of a count over the whole test.
    pub(crate) fn over_elapsed(&mut self, id: &str) {
        let elapsed: Vec<Option<super::Figure>> =
            (0..self.table.rows()).map(|row| self.figure("elapsed_s", row)).collect();
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

    /// Uses no column for `id`, as what stands for it may be a count or a rate.
    pub(crate) fn leave_out(&mut self, id: &str) {
        let Some(at) = self.columns.iter().position(|c| c.id == id) else { return };
        let name = self.table.headers[self.columns.remove(at).index].clone();
        self.remarks.retain(|r| !r.message.starts_with(&format!("column '{name}' was taken for")));
        self.remark(format!(
            "column '{name}' was left out: it may be a count or a rate, and no other column says which; --columns '{name}={id}' says that \
             it is a rate"
        ));
    }

    /// Beside I/O per second, a column that is only a unit of bytes per second is their bandwidth.
    pub(super) fn bare_bandwidth(&mut self, headers: &[Header]) {
        let is_rate =
            |h: &Header| h.unit.as_ref().is_some_and(|u| u.dimension.of == Of::Bytes && u.dimension.per == Per::Second);
        let bare = headers.iter().position(|h| h.words.is_empty() && h.second.is_none() && is_rate(h));
        let (Some(index), true, false) = (bare, self.has("io_per_s"), self.has("data_mib_per_s")) else { return };
        let text = self.table.headers[index].clone();
        if let Ok(mapping) = Mapping::parse(&format!("{text}=data_mib_per_s")) {
            self.bind(index, &headers[index], How::Mapped, &mapping);
            self.remark(format!("column '{text}' was taken for data_mib_per_s, as it stands beside I/O per second"));
        }
    }

    /// What tests are compared by, where no column is called a platform: vendors, instances, kinds of storage, versions.
    pub(super) fn compared(&mut self, headers: &[Header]) {
        const WORDS: [&str; 10] = [
            "vendor",
            "provider",
            "cloud provider",
            "cloud",
            "instance",
            "instance type",
            "storage",
            "storage type",
            "version",
            "release",
        ];
        let is = |h: &Header| h.unit.is_none() && WORDS.contains(&h.words.join(" ").as_str());
        let found = headers.iter().position(is).filter(|i| self.columns.iter().all(|c| c.index != *i));
        let (Some(index), false) = (found, ["platform", "arm", "level", "driver"].iter().any(|id| self.has(id))) else {
            return;
        };
        let text = self.table.headers[index].clone();
        if let Ok(mapping) = Mapping::parse(&format!("{text}=platform")) {
            self.bind(index, &headers[index], How::Mapped, &mapping);
        }
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
        let first = self.columns.remove(at);
        let remarks = self.remarks.clone();
        let name = |index: usize| self.table.headers[index].clone();
        for (index, header) in headers.iter().enumerate().filter(|(i, _)| *i != first.index) {
            if names::by_words(&header.words, header.unit.as_ref()) != Some(id) || header.second.is_some() {
                continue;
            }
            let (old, new) = (name(first.index), name(index));
            self.bind(index, header, How::Inferred, &Mapping::default());
            if self.columns.last().is_some_and(|c| c.id == id && c.index == index && most(self.busy(c))) {
                let of = |text: &str| [&old, &new].iter().any(|n| text.starts_with(&format!("column '{n}' ")));
                self.remarks.retain(|r| !of(&r.message));
                self.remark(format!(
                    "column '{new}' was taken for {id} rather than '{old}', as it is the rate that Little's law gives with the printed time"
                ));
                return;
            }
            self.columns.retain(|c| c.index != index);
            self.remarks.clone_from(&remarks);
        }
        self.columns.push(first);
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
        let named = |text: &str| self.remarks.iter().any(|r| r.message.contains(&format!("'{text}'")));
        let unused: Vec<String> = (0..self.table.headers.len())
            .filter(|i| !known.contains(i) && numbers(*i) * 2 > rows && !named(&self.table.headers[*i]))
            .map(|i| format!("'{}'", self.table.headers[i]))
            .collect();
        if !unused.is_empty() && !known.is_empty() {
            let few: Vec<String> = unused.iter().take(20).cloned().collect();
            let more = if unused.len() > few.len() {
                format!(" and {} more", unused.len() - few.len())
            } else {
                String::new()
            };
            self.remark(format!(
                "no law knows what these columns are, say it with --columns: {}{more}",
                few.join(", ")
            ));
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
        let share =
            |row| Some(self.value(rate, row)? * self.value("commit_latency_ms", row)? / 1e3 / self.value("jobs", row)?);
        let mut shares: Vec<f64> = (0..self.table.rows().min(SAMPLE)).filter_map(share).filter(|s| *s > 0.0).collect();
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
            if !unnamed || Unit::of_id(column.id).dimension.of != Of::Share {
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
