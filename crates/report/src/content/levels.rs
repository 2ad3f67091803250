//! Costs of levels of replication: a sentence for each, a table, charts, and a row of each for scripts.

use std::collections::BTreeSet;

use loadline_analyze::levels::{Cost, costs, line_of};
use loadline_model::format::counted;
use loadline_model::variant::{Links, Paired};
use minijinja::{Value, context};

use crate::RunData;
use crate::doc::{Block, Chart, Section, Table};
use crate::listing::Listing;
use crate::spec::TableSpec;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::templates::{items, prose};
use crate::text::for_terminal;
use crate::words::{grouped, millis, of_pairs, percent, signed};

pub struct Costs<'a> {
    paired: &'a Paired,
    links: &'a Links,
    costs: Vec<Cost<'a>>,
}

impl<'a> Costs<'a> {
    /// Of a run of levels; `None` if it is not one.
    pub fn from_run(run: &'a RunData) -> Option<Costs<'a>> {
        let (paired, links) = run.manifest.plan.levels()?;
        Some(Costs { paired, links, costs: costs(&run.records, paired.pairs) })
    }

    pub fn text(&self, width: usize) -> String {
        let blocks: Vec<Block> = Block::table(self.table()).into_iter().chain(Block::list(self.sentences())).collect();
        for_terminal(&blocks, Some(width))
    }

    /// Whether the standbys are the user's own: then nothing of loadline's is in between, and the round trip is not known.
    fn has_own_standbys(&self) -> bool {
        !self.links.standbys.is_empty()
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
            let nearest = costs.first();
            let nearest =
                nearest.and_then(|c| Some(context! { jobs => c.cell.jobs, added => c.added?, rtt => c.rtt_ms }));
            let most = costs.iter().map(|c| c.cell.jobs).max();
            let left = costs.iter().rfind(|c| Some(c.cell.jobs) == most).and_then(|c| {
                let share = c.share?;
                Some(context! { jobs => c.cell.jobs, delay => c.delay_ms.to_string(), share })
            });
            context! { name => self.named(workload, level, ", "), line, nearest, left }
        });
        let too_fast = self.too_fast().into_iter().map(|(cost, most, rtt)| {
            context! { level => cost.level, delay => cost.delay_ms.to_string(), most, rtt }
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

    /// A row of the table and of the CSV for each cost.
    fn rows(&self) -> impl Iterator<Item = Value> {
        let none = || Some("no pair of windows is valid".to_owned());
        self.costs.iter().map(move |c| {
            let (planned, dropped) = (c.cell.pairs.len(), c.dropped());
            context! {
                workload => c.cell.workload, level => c.level, name => self.named(c.cell.workload, c.level, " "),
                jobs => c.cell.jobs, delay_ms => c.delay_ms, delay => c.delay_ms.to_string(), rtt => c.rtt_ms,
                latency => c.latency_ms, p99 => c.p99_ms, tps => c.tps, added => c.added, share => c.share,
                law => c.share_of_law(), has_way => !self.has_own_standbys(), has_law => !self.links.at_once && !self.has_own_standbys(),
                why => c.added.map_or_else(none, |added| added.why_no_interval()),
                pairs => planned - dropped, dropped, of_pairs => of_pairs(planned, dropped),
            }
        })
    }

    fn table(&self) -> Table {
        let rows: Vec<Value> = self.rows().collect();
        let table = TableSpec::<&Value>::new("figures", &rows).columns("table of levels", Clone::clone);
        table.caption("What a level adds to a commit").build()
    }

    /// Added time over the round trip at each number of jobs, and share of throughput over jobs at each distance.
    fn charts(&self) -> Vec<Chart> {
        let added = |c: &Cost<'_>| {
            let (added, x) = (c.added?, c.rtt_ms?);
            let tip = format!("{}: {} ms at a round trip of {} ms", c.level, signed(added.value), millis(x));
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
            self.chart(title, ["Round trip, ms", "Added, ms"], |c| if c.cell.jobs == *jobs { added(c) } else { None })
        });
        let (_, delays) = self.paired.levels_and_delays();
        let delays = if jobs.len() > 1 { delays } else { Vec::new() };
        let of_delays = delays.into_iter().filter_map(|delay_ms| {
            let way = if self.has_own_standbys() { String::new() } else { format!(", {delay_ms} ms one way") };
            let title = format!("Throughput left{way}");
            self.chart(title, ["Jobs", "% of the baseline"], |c| if c.delay_ms == delay_ms { left(c) } else { None })
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

    pub(crate) fn csv(&self) -> String {
        Listing::new("levels", self.rows()).csv()
    }
}

pub(crate) fn section(runs: &[RunData]) -> Section {
    let mut blocks = Vec::new();
    if let [run] = runs
        && let Some(of_run) = Costs::from_run(run).filter(|of_run| !of_run.costs.is_empty())
    {
        blocks.push(Block::List { items: of_run.sentences() });
        blocks.extend(Block::charts(2, of_run.charts()));
        let method = context! { own_standbys => of_run.has_own_standbys(), at_once => of_run.links.at_once };
        blocks.extend([Block::Table(of_run.table()), Block::para(prose("levels", method))]);
    }
    Section::new("levels", "The cost of synchronous replication", blocks)
}
