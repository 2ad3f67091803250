//! Answer of a run of variants: a table of ratios, and a row of each figure for scripts.

mod via;

use std::collections::{BTreeMap, BTreeSet};

use loadline_analyze::paired::percent as confidence;
use loadline_analyze::stats::mean;
use loadline_analyze::variants::{Cell, Compared, Curves, Row as Figure, compare, curves};
use loadline_model::CheckId;
use loadline_model::format::{counted, whole};
use loadline_model::manifest::VariantFound;
use loadline_model::variant::{Letter, Paired};
use loadline_model::{Column, Outcome, TestRecord, column};
use minijinja::{Value, context};

use super::ratios::{Found, Shown, chart, table};
use super::{profiles, stop};
use crate::RunData;
use crate::doc::{Block, Section, Table};
use crate::templates::{items, prose};
use crate::words::percent;

/// The variants of a run and what its pairs show.
pub(crate) struct RunOfVariants<'a> {
    paired: &'a Paired,
    compared: Compared<'a>,
    pub(crate) curves: Vec<Curves<'a>>,
    records: &'a [TestRecord],
    found: &'a [VariantFound],
}

pub(crate) fn of_run(run: &RunData) -> Option<RunOfVariants<'_>> {
    let paired = run.manifest.plan.arms()?;
    let found = &run.manifest.variants;
    let compared = compare(&run.records, paired);
    Some(RunOfVariants { paired, compared, curves: curves(&run.records, paired.pairs), records: &run.records, found })
}

/// Whether a window had something that falls into windows by chance.
type Seen = fn(&TestRecord) -> bool;

/// Counts in the windows of each arm.
const BURSTS: [(&str, Seen); 4] = [
    (CHECKPOINT, |r| r.figure(column::CHECKPOINTS).is_some_and(|n| n > 0.0)),
    ("autovacuum", |r| r.figure(column::AUTOVACUUM_SHARE_PCT).is_some_and(|share| share > 0.0)),
    ("a stall or a change of level", |r| {
        r.checks.iter().any(|c| c.id == CheckId::Steady && c.outcome == Outcome::Noted)
    }),
    ("a disturbance by others", |r| r.disturbed_by.is_some()),
];
const CHECKPOINT: &str = "a checkpoint";
/// Redo per transaction up to which it may be the database's own, KiB.
const LEAST_REDO_KIB: f64 = 0.1;

/// Block reads up to which what is read fits the cache, 1/s: a server reads its catalogue now and then.
const LEAST_READS_PER_S: f64 = 10.0;

/// Settings that arms may differ in without any effect on a workload, and the figure that shows what each is about: how much redo a
/// transaction writes, or which blocks the database's cache holds.
const ABOUT: [(&str, &Column); 8] = [
    ("wal_compression", column::REDO_KIB_PER_TX),
    ("full_page_writes", column::REDO_KIB_PER_TX),
    ("wal_log_hints", column::REDO_KIB_PER_TX),
    ("binlog_row_image", column::REDO_KIB_PER_TX),
    ("shared_buffers", column::BLOCK_READS_PER_S),
    ("innodb_buffer_pool_size", column::BLOCK_READS_PER_S),
    ("cache_size", column::BLOCK_READS_PER_S),
    ("mmap_size", column::BLOCK_READS_PER_S),
];

/// `1,400`: two digits that count.
fn rough(n: usize) -> String {
    let step = 10_usize.pow(n.max(1).ilog10().saturating_sub(1));
    whole((n.div_ceil(step) * step) as f64)
}

/// States of the arms of `records` that a platform should not have.
fn forced<'a>(records: impl Iterator<Item = &'a TestRecord>) -> BTreeSet<(Letter, String)> {
    records.filter_map(|r| Some((r.arm()?, Option::from(r.forced.clone())?))).collect()
}

/// Means of `column` over the windows of both variants in the valid pairs of `row`.
fn means_of(row: &Figure<'_>, column: &Column) -> Option<[f64; 2]> {
    let pairs = row.cell.pairs_of(column);
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().filter_map(|pair| pair.a.zip(pair.b)).unzip();
    Some([mean(&a)?, mean(&b)?])
}

impl RunOfVariants<'_> {
    /// The answer in a sentence for each main figure, and what qualifies it.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let families = ["Main figures", "Other figures"].into_iter().zip(&self.compared.families);
        let forced = forced(self.records.iter()).into_iter().map(|(arm, why)| although(arm, &why));
        let context = context! {
            main => self.main().map(|row| self.answer(row)).collect::<Vec<_>>(),
            margin => self.paired.margin,
            wanted => self.paired.precision,
            curves => self.curves.iter().map(shapes).collect::<Vec<_>>(),
            redo => self.other_redo(),
            same => self.same_work(),
            forced => forced.collect::<Vec<_>>(),
            not_alike => self.others().filter_map(|letter| self.not_alike(letter)).collect::<Vec<_>>(),
            via => self.via_says(),
            families => families.filter_map(|(which, family)| Some((which, family.says()?))).collect::<Vec<_>>(),
        };
        items("arms-say", context)
    }

    fn others(&self) -> impl Iterator<Item = Letter> + use<> {
        (1..self.paired.variants.len()).map(Letter::nth)
    }

    /// The variant of `row`, where there are several.
    fn arm(&self, row: &Figure<'_>) -> Option<Letter> {
        (self.paired.variants.len() > 2).then(|| row.cell.other())
    }

    /// `LGWR-LAT1 with 4 jobs`, after the variant where there are several.
    fn named(&self, row: &Figure<'_>) -> String {
        let arm = self.arm(row).map_or_else(String::new, |arm| format!("{arm}, "));
        format!("{arm}{} with {}", row.cell.workload, counted(row.cell.jobs as usize, "job"))
    }

    fn main(&self) -> impl Iterator<Item = &Figure<'_>> {
        self.compared.rows.iter().filter(|row| row.main)
    }

    /// How much redo a transaction is in each arm, where it differs by a tenth or more: often why one is faster.
    fn other_redo(&self) -> Vec<Value> {
        let differing = |row: &Figure<'_>| {
            let kib = means_of(row, column::REDO_KIB_PER_TX)?;
            let (less, more) = (kib[0].min(kib[1]), kib[0].max(kib[1]));
            let differs = more > LEAST_REDO_KIB && more >= less * 1.1;
            differs.then(|| context! { place => self.named(row), arm => row.cell.other(), kib })
        };
        self.main().filter_map(differing).collect()
    }

    /// Figures that show what a setting of the arms is about, where they are the same in both: then the comparison cannot show it.
    fn same_work(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for (name, about) in ABOUT {
            for row in self.main().filter(|row| self.differ(name, row.cell.other())) {
                let Some([a, b]) = means_of(row, about) else { continue };
                let of_redo = about == column::REDO_KIB_PER_TX;
                let is_same = if of_redo { a.max(b) <= a.min(b) * 1.01 } else { a.max(b) < LEAST_READS_PER_S };
                if is_same {
                    found.push(context! { place => self.named(row), name, redo_kib => of_redo.then_some(a) });
                }
            }
        }
        found
    }

    /// Whether the setting `name` of `arm`, as it was given or found, is another than that of the first.
    fn differ(&self, name: &str, arm: Letter) -> bool {
        // Users write innodb-buffer-pool-size as well.
        let value = |of: &BTreeMap<String, String>| {
            of.iter().find(|(n, _)| n.replace('-', "_") == name).map(|(_, value)| value.clone())
        };
        let found = |n: usize| self.found.get(n).and_then(|found| value(&found.target.settings));
        let given = |n: usize| self.paired.variants.get(n).and_then(|variant| value(&variant.settings));
        found(0) != found(arm.index()) || given(0) != given(arm.index())
    }

    fn of_row(&self, row: &Figure<'_>) -> impl Iterator<Item = &TestRecord> {
        self.records.iter().filter(|r| row.cell.has(r))
    }

    /// The windows of `arm` in the pairs that compare `other` with the first variant.
    fn windows(&self, arm: Letter, other: Letter) -> impl Iterator<Item = &TestRecord> {
        let is_in = move |r: &&TestRecord| r.variant.as_ref().is_some_and(|w| (w.arm, w.beside) == (arm, other));
        self.records.iter().filter(is_in)
    }

    /// Events that fell into windows of one variant more often than into those of the other.
    fn not_alike(&self, other: Letter) -> Option<Value> {
        let count = |arm: Letter, seen: Seen| self.windows(arm, other).filter(|r| seen(r)).count();
        let seen = BURSTS.map(|(what, seen)| (what, count(Letter::A, seen), count(other, seen)));
        let seen: Vec<(&str, usize, usize)> = seen.into_iter().filter(|(_, a, b)| a != b).collect();
        let cycles = seen.iter().any(|(what, ..)| *what == CHECKPOINT);
        (!seen.is_empty()).then(|| context! { arm => other, seen, cycles })
    }

    fn answer(&self, row: &Figure<'_>) -> Value {
        // A precision that was reached needs no word.
        let precision = row.precision.filter(|p| p.more_pairs != Some(0));
        context! {
            place => self.named(row),
            arm => row.cell.other(),
            title => row.metric.title.to_lowercase(),
            found => row.ratio,
            why => row.ratio.and_then(|r| r.why_no_interval()),
            verdict => row.verdict,
            together => row.together_takes,
            precision => precision.map(|p| (p.half_width.unwrap_or_default(), p.more_pairs.map(rough))),
            detectable => row.detectable,
            more => row.more_pairs.filter(|more| *more > 0).map(rough),
        }
    }

    /// Times of each kind of transaction of each variant and the first, and what their sessions waited for.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = Table> {
        self.others().flat_map(|other| {
            let all = self.main().map(|row| &row.cell).chain(self.curves.iter().map(|curves| &curves.cell));
            let cells: Vec<&Cell<'_>> = all.filter(|cell| cell.other() == other).collect();
            let mut tables = profiles::of_pairs(&cells);
            if self.paired.variants.len() > 2 {
                tables.iter_mut().for_each(|table| table.caption += &format!(", in {other} beside A"));
            }
            tables
        })
    }

    pub(crate) fn rows(&self) -> Vec<Shown> {
        let shown = |row: &Figure<'_>| Shown {
            workload: row.cell.workload.to_owned(),
            jobs: Some(row.cell.jobs),
            arm: self.arm(row),
            column: row.metric,
            main: row.main,
            found: row.ratio.zip(row.verdict).map(|(ratio, verdict)| Found {
                sides: row.levels,
                ratio: ratio.value,
                interval: ratio.interval,
                verdict,
                detectable: row.detectable,
                pairs: ratio.pairs,
                dropped: ratio.dropped,
            }),
            why: match (row.ratio, row.together_takes) {
                (None, _) => Some("no pair of windows is valid".to_owned()),
                (Some(r), Some(pairs)) => Some(format!(
                    "interval of each figure alone ({} %); a verdict among {} takes {pairs} pairs",
                    confidence(r.confidence),
                    counted(self.compared.families[usize::from(!row.main)].answers.len(), "figure")
                )),
                (Some(r), None) => r.why_no_interval(),
            },
            but: self.although(row),
        };
        self.compared.rows.iter().map(shown).collect()
    }

    /// In spite of what an arm was measured in the windows of `row`.
    fn although(&self, row: &Figure<'_>) -> Option<String> {
        let said: Vec<String> = forced(self.of_row(row)).into_iter().map(|(arm, why)| although(arm, &why)).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    fn method(&self) -> String {
        let context = context! {
            confidence => confidence(self.compared.families[0].confidence),
            margin => percent(self.paired.margin),
            precision => self.paired.precision.map(percent),
            pairs => self.paired.pairs,
            looks => self.paired.looks,
        };
        prose("arms", context)
    }
}

fn shapes(curves: &Curves<'_>) -> Value {
    let shapes = curves.shapes.as_ref().map(|shapes| shapes.each_ref().map(|shape| prose("shape", shape)));
    context! { workload => curves.cell.workload, arm => curves.cell.other(), shapes, differ => curves.differ() }
}

/// `Arm B was measured although commits do not wait`.
fn although(arm: Letter, why: &str) -> String {
    format!("Arm {arm} was measured although {}", stop(why))
}

pub(crate) fn section(runs: &[RunData]) -> Section {
    let mut blocks = Vec::new();
    if let [run] = runs
        && let Some(of_run) = of_run(run)
    {
        let rows = of_run.rows();
        blocks.push(Block::List { items: of_run.sentences() });
        blocks.extend(chart(&rows, of_run.paired.margin));
        blocks.extend(of_run.via_table().map(Block::Table));
        blocks.extend(Block::table(table(&rows, "Pairs")));
        blocks.extend(of_run.profiles().map(Block::Table));
        blocks.push(Block::Para { text: of_run.method() });
    }
    Section::new("arms", "Which is faster", blocks)
}
