//! Price of a proxy or pooler between jobs and server, and with how many jobs it pays.

use loadline_analyze::kpi::LATENCY;
use loadline_analyze::paired::{PairedEstimate, Verdict, paired_difference, percent};
use loadline_analyze::stats::mean;
use loadline_analyze::variants::{ERROR, Row as Figure};
use loadline_model::variant::Letter;
use loadline_model::{Column, column};
use minijinja::{Value, context};

use super::{RunOfVariants, means_of};
use crate::doc::Table;
use crate::spec::TableSpec;
use crate::words::grouped;

const P99: &Column = column::TRANSACTION_TIME_NS_P99;
const CPU: &Column = column::VIA_CPU_US_PER_TX;

impl RunOfVariants<'_> {
    /// The main figures of arms whose jobs go through a proxy.
    fn through(&self) -> impl Iterator<Item = &Figure<'_>> {
        self.main().filter(|row| self.via(row).is_some())
    }

    fn via(&self, row: &Figure<'_>) -> Option<&String> {
        self.paired.variants.get(row.cell.other().index())?.via.as_ref()
    }

    /// CPU time of the proxy of `row`, µs per transaction; or why it is unknown.
    fn proxy_cpu(&self, row: &Figure<'_>) -> Result<f64, String> {
        let windows: Vec<_> = self.of_row(row).filter(|r| r.is_usable() && r.arm() == Some(row.cell.other())).collect();
        let known: Vec<f64> = windows.iter().filter_map(|r| r.figure(CPU)).collect();
        let why = || windows.iter().find_map(|r| r.absent.get(CPU.id).cloned());
        mean(&known).ok_or_else(|| why().unwrap_or_else(|| "no window is valid".to_owned()))
    }

    /// Share of runs in which an interval misses, as of a ratio: the looks of a run that may stop early share it.
    fn error(&self) -> f64 {
        ERROR / self.paired.looks.len().max(1) as f64
    }

    /// Time that the way of `row` adds to `column`, ms.
    fn added(&self, row: &Figure<'_>, column: &Column) -> Option<PairedEstimate> {
        let in_ms = if column == P99 { 1e-6 } else { 1.0 };
        paired_difference(&row.cell.pairs_by(|r| Some(r.figure(column)? * in_ms)), self.error())
    }

    /// Of each proxy and workload: what it adds, and with how many jobs it pays.
    pub(super) fn via_says(&self) -> Vec<Value> {
        let measured = self.through().filter(|row| row.ratio.is_some());
        let said = |((arm, workload), mut rows): ((Letter, &str), Vec<&Figure<'_>>)| {
            rows.sort_by_key(|row| row.cell.jobs);
            let at = |is: fn(Verdict) -> bool| {
                let jobs = rows.iter().filter(move |row| row.verdict.is_some_and(is)).map(|row| row.cell.jobs);
                jobs.collect::<Vec<u32>>()
            };
            let (pays, not_shown) = (at(|v| v == Verdict::Faster), at(|v| v == Verdict::NotShown));
            let shown_not = at(|v| matches!(v, Verdict::Slower | Verdict::Equivalent));
            let is_above = |from: &u32| rows.iter().all(|row| row.cell.jobs < *from || pays.contains(&row.cell.jobs));
            let from = pays.first().copied().filter(is_above);
            let added = |row: &Figure<'_>| Some((row.cell.jobs, self.added(row, LATENCY)?.value));
            context! {
                arm, workload, from, pays, not_shown,
                below => shown_not.iter().rfind(|jobs| from.is_some_and(|from| **jobs < from)),
                url => rows.first().and_then(|row| self.via(row)),
                added => rows.iter().filter_map(|row| added(row)).collect::<Vec<_>>(),
                is_least => from.is_some() && from == rows.first().map(|row| row.cell.jobs),
                most => rows.last().map(|row| row.cell.jobs),
                costs => at(|v| v == Verdict::Slower),
                keep => self.records.iter().all(|r| r.load().reconnect_every.is_none()),
            }
        };
        grouped(measured, |row| (row.cell.other(), row.cell.workload)).into_iter().map(said).collect()
    }

    /// Latency on both ways, and the proxy's CPU time; `None` without a proxy.
    pub(super) fn via_table(&self) -> Option<Table> {
        let row = |row: &Figure<'_>| {
            let added = [LATENCY, P99].map(|column| self.added(row, column));
            let cpu = self.proxy_cpu(row);
            context! {
                workload => row.cell.workload, jobs => row.cell.jobs, arm => row.cell.other(),
                several => self.paired.variants.len() > 2, titles => [LATENCY, P99, CPU].map(|c| c.title),
                both => means_of(row, LATENCY), added, why => added.map(|added| added?.why_no_interval()),
                cpu => cpu.as_ref().ok(), no_cpu => cpu.as_ref().err(), cpu_unit => CPU.unit,
            }
        };
        TableSpec::<&Figure<'_>>::new("via", self.through())
            .columns("table of the way", row)
            .caption("The price of the way: latency through the proxy beside that of direct sessions")
            .sub(format!("added: from pairs of windows, with {} % intervals", percent(1.0 - self.error())))
            .if_rows()
    }
}
