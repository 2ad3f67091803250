//! Costs of levels of replication: a sentence for each, a table, charts, and a row of each for scripts.

use std::collections::BTreeSet;

use loadline_analyze::levels::{Cost, Line, costs, line_of};
use loadline_analyze::stats::Interval;
use loadline_model::format::{counted, whole};
use loadline_model::variant::{Links, Paired};
use minijinja::context;

use crate::RunData;
use crate::doc::{Block, Cell, Chart, Section, Table};
use crate::listing::{Listing, Named};
use crate::spec::TableSpec;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::templates::{items, prose};
use crate::text::for_terminal;
use crate::words::{grouped, of_pairs, percent};

/// Costs of the levels of a run.
pub struct Costs<'a> {
    paired: &'a Paired,
    links: &'a Links,
    costs: Vec<Cost<'a>>,
}

/// `0.412`: three digits after the point, or four that count.
fn ms(value: f64) -> String {
    if value.abs() < 100.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

fn signed(value: f64) -> String {
    if value < 0.0 { format!("−{}", ms(-value)) } else { format!("+{}", ms(value)) }
}

/// ` (−0.5 to 0.8)`; nothing without an interval.
fn between(interval: Option<Interval>, shown: fn(f64) -> String) -> String {
    let shown = |v: f64| if v < 0.0 { format!("−{}", shown(-v)) } else { shown(v) };
    interval.map_or_else(String::new, |i| format!(" ({} to {})", shown(i.low), shown(i.high)))
}

impl<'a> Costs<'a> {
    /// Of a run of levels; `None` if it is not one.
    pub fn from_run(run: &'a RunData) -> Option<Costs<'a>> {
        let (paired, links) = run.manifest.plan.levels()?;
        Some(Costs { paired, links, costs: costs(&run.records, paired.pairs) })
    }

    /// The costs for a terminal `width` characters wide.
    pub fn text(&self, width: usize) -> String {
        for_terminal(&[Block::Table(self.table()), Block::List { items: self.sentences() }], Some(width))
    }

    /// Whether the standbys are the user's own: then nothing of loadline's is in between, and the round trip is not known.
    fn has_own_standbys(&self) -> bool {
        !self.links.standbys.is_empty()
    }

    /// Whether a commit is compared with its round trip.
    fn has_law(&self) -> bool {
        !self.links.at_once && !self.has_own_standbys()
    }

    fn groups(&self) -> Vec<((&'a str, &'a str), Vec<&Cost<'a>>)> {
        grouped(&self.costs, |cost| (cost.cell.workload, cost.level))
    }

    /// The level, with its workload if there are several.
    fn named(&self, workload: &str, level: &str, between: &str) -> String {
        let several = self.costs.iter().any(|c| c.cell.workload != self.costs[0].cell.workload);
        if several { format!("{workload}{between}{level}") } else { level.to_owned() }
    }

    /// The answer in a sentence for each level, and what breaks the law that a commit cannot be faster than its round trip.
    fn sentences(&self) -> Vec<String> {
        let groups = self.groups();
        let levels = groups.iter().map(|((workload, level), costs)| {
            // Without intervals a line says more than is known.
            let line = line_of(costs).filter(|(_, line)| line.slope.1.is_some() && line.intercept.1.is_some());
            let line = line.map(|(jobs, Line { slope, intercept })| {
                let two = |v: f64| format!("{v:.2}");
                let added = signed(intercept.0) + " ms" + &between(intercept.1, ms);
                let sign = if slope.0 < 0.0 { "−" } else { "+" };
                context! { jobs, added, slope => format!("{sign} {}", two(slope.0.abs())), within => between(slope.1, two) }
            });
            let nearest = costs.first().and_then(|c| {
                let added = c.added?;
                let shown = signed(added.value) + " ms" + &between(added.interval, ms);
                Some(context! { jobs => c.cell.jobs, added => shown, rtt => c.rtt_ms.map(ms) })
            });
            let most = costs.iter().map(|c| c.cell.jobs).max();
            let left = costs.iter().rfind(|c| Some(c.cell.jobs) == most).and_then(|c| {
                let share = c.share?;
                Some(context! { jobs => c.cell.jobs, delay => c.delay_ms.to_string(), share })
            });
            context! { name => self.named(workload, level, ", "), line, nearest, left }
        });
        let too_fast = self.too_fast().into_iter().map(|(cost, most, rtt)| {
            context! { level => cost.level, delay => cost.delay_ms.to_string(), most => ms(most), rtt => ms(rtt) }
        });
        let (levels, too_fast) = (levels.collect::<Vec<_>>(), too_fast.collect::<Vec<_>>());
        items("levels-say", context! { levels, too_fast, own_standbys => self.has_own_standbys() })
    }

    /// Costs whose added time is shown to be below the round trip, although commits wait for one; with the most that may be added, and the
    /// round trip, ms. Not of a copy that is sent at once, whose way is in part that of the own log, nor of several jobs: those that wait for
    /// replicas do not queue for the log meanwhile.
    fn too_fast(&self) -> Vec<(&Cost<'a>, f64, f64)> {
        if self.links.at_once {
            return Vec::new();
        }
        let mut found = Vec::new();
        let all = self.groups().into_iter().flat_map(|(_, costs)| costs);
        for cost in all.filter(|cost| cost.waits() && cost.cell.jobs == 1) {
            if let Some((rtt, within)) = cost.rtt_ms.zip(cost.added.and_then(|a| a.interval))
                && within.high < rtt * 0.98
            {
                found.push((cost, within.high, rtt));
            }
        }
        found
    }

    /// Whether each cost has a valid pair of windows, and no commit that should wait was faster than its round trip.
    pub fn holds(&self) -> bool {
        self.costs.iter().all(|c| c.added.is_some()) && self.too_fast().is_empty()
    }

    fn table(&self) -> Table {
        let named = |cost: &Cost<'_>| self.named(cost.cell.workload, cost.level, " ");
        let none = || Some("no pair of windows is valid".to_owned());
        let why = |cost: &Cost<'_>| cost.added.map_or_else(none, |added| added.why_no_interval());
        let added = |cost: &Cost<'_>| Cell::from(cost.added.map(|a| signed(a.value))).noted(why(cost), &named(cost));
        let range = |i: Interval, shown: fn(f64) -> String| format!("{} – {}", shown(i.low), shown(i.high));
        let has_way = !self.has_own_standbys();
        TableSpec::<&Cost<'_>>::new("figures", &self.costs)
            .text("Level", named)
            .number("Jobs", "", |c| c.cell.jobs)
            .once()
            .number("Delay", "ms", |c| c.delay_ms.to_string())
            .when(has_way)
            .number("Round trip", "ms", |c| c.rtt_ms.map(ms))
            .when(has_way)
            .number("Baseline", "ms", |c| c.latency_ms.map(|[base, _]| ms(base)))
            .number("Commit", "ms", |c| c.latency_ms.map(|[_, level]| ms(level)))
            .number("p99", "ms", |c| c.p99_ms.map(|[_, level]| ms(level)))
            .number("Added", "ms", added)
            .number("Interval", "ms", |c| Some(range(c.added?.interval?, signed)))
            .number("Throughput", "tps", |c| c.tps.map(|[_, tps]| whole(tps)))
            .number("Share", "", |c| c.share.map(|s| percent(s.value)))
            .number("Interval", "", |c| Some(range(c.share?.interval?, percent)))
            .number("Of law", "", |c| c.share_of_law().map(|share| format!("{share:.2}")))
            .when(self.has_law())
            .number("Pairs", "", |c| of_pairs(c.cell.pairs.len(), c.dropped()))
            .caption("What a level adds to a commit")
            .tips("tips of levels")
            .build()
    }

    /// Added time over the round trip at each number of jobs, and share of throughput over jobs at each distance.
    fn charts(&self) -> Vec<Chart> {
        let added = |c: &Cost<'_>| {
            let (added, x) = (c.added?, c.rtt_ms?);
            let tip = format!("{}: {} ms at a round trip of {} ms", c.level, signed(added.value), ms(x));
            Some(ChartPoint { x, y: added.value, bar: added.interval.map(|i| (i.low, i.high)), tip })
        };
        let left = |c: &Cost<'_>| {
            let share = c.share?;
            let (y, bar) = (share.value * 100.0, share.interval.map(|i| (i.low * 100.0, i.high * 100.0)));
            let jobs = counted(c.cell.jobs as usize, "job");
            let tip = format!("{}, {jobs}: {} of the baseline", c.level, percent(share.value));
            Some(ChartPoint { x: f64::from(c.cell.jobs), y, bar, tip })
        };
        let jobs: BTreeSet<u32> = self.costs.iter().map(|c| c.cell.jobs).collect();
        let of_jobs = jobs.iter().filter_map(|jobs| {
            let title = format!("Added to a commit, {}", counted(*jobs as usize, "job"));
            self.chart(title, ["Round trip, ms", "Added, ms"], |c| added(c).filter(|_| c.cell.jobs == *jobs))
        });
        let (_, delays) = self.paired.levels_and_delays();
        let delays = delays.into_iter().filter(|_| jobs.len() > 1);
        let of_delays = delays.filter_map(|delay_ms| {
            let way = if self.has_own_standbys() { String::new() } else { format!(", {delay_ms} ms one way") };
            let title = format!("Throughput left{way}");
            self.chart(title, ["Jobs", "% of the baseline"], |c| left(c).filter(|_| c.delay_ms == delay_ms))
        });
        of_jobs.chain(of_delays).collect()
    }

    fn chart(
        &self,
        title: String,
        labels: [&str; 2],
        point: impl Fn(&Cost<'_>) -> Option<ChartPoint>,
    ) -> Option<Chart> {
        let mut lines = Vec::new();
        for (colour, ((_, level), costs)) in self.groups().into_iter().enumerate() {
            let points: Vec<ChartPoint> = costs.into_iter().filter_map(&point).collect();
            if points.len() > 1 {
                lines.push(ChartLine { name: level.to_owned(), points, colour, ..ChartLine::default() });
            }
        }
        svg::Chart { signed: true, ..svg::Chart::of_points(title, labels.map(str::to_owned), lines) }.drawn()
    }

    fn method(&self) -> String {
        prose("levels", context! { own_standbys => self.has_own_standbys(), at_once => self.links.at_once })
    }

    pub(crate) fn csv(&self) -> String {
        let columns: [Named<Cost<'_>>; 19] = [
            ("level", |c| c.level.into()),
            ("delay_ms", |c| c.delay_ms.into()),
            ("rtt_ms", |c| c.rtt_ms.into()),
            ("jobs", |c| c.cell.jobs.into()),
            ("commit_latency_ms", |c| c.latency_ms.map(|l| l[1]).into()),
            ("added_ms", |c| c.added.map(|a| a.value).into()),
            ("added_low_ms", |c| c.added.and_then(|a| a.interval).map(|i| i.low).into()),
            ("added_high_ms", |c| c.added.and_then(|a| a.interval).map(|i| i.high).into()),
            ("tps_share", |c| c.share.map(|s| s.value).into()),
            ("tps_share_low", |c| c.share.and_then(|s| s.interval).map(|i| i.low).into()),
            ("tps_share_high", |c| c.share.and_then(|s| s.interval).map(|i| i.high).into()),
            ("baseline_latency_ms", |c| c.latency_ms.map(|l| l[0]).into()),
            ("commit_throughput_tps", |c| c.tps.map(|t| t[1]).into()),
            ("baseline_throughput_tps", |c| c.tps.map(|t| t[0]).into()),
            ("transaction_p99_ms", |c| c.p99_ms.map(|p| p[1]).into()),
            ("baseline_p99_ms", |c| c.p99_ms.map(|p| p[0]).into()),
            ("workload", |c| c.cell.workload.into()),
            ("pairs", |c| (c.cell.pairs.len() - c.dropped()).into()),
            ("pairs_dropped", |c| c.dropped().into()),
        ];
        Listing::new(&columns, &self.costs).csv()
    }
}

pub(crate) fn section(runs: &[RunData]) -> Section {
    let mut blocks = Vec::new();
    if let [run] = runs
        && let Some(of_run) = Costs::from_run(run).filter(|of_run| !of_run.costs.is_empty())
    {
        blocks.push(Block::List { items: of_run.sentences() });
        blocks.extend(Block::charts(2, of_run.charts()));
        blocks.extend([Block::Table(of_run.table()), Block::Para { text: of_run.method() }]);
    }
    Section::new("levels", "The cost of synchronous replication", blocks)
}
