//! What a run of variants shows: a table of ratios, and a row of each figure for scripts.

use std::collections::{BTreeMap, BTreeSet};

use loadline_analyze::paired::{Verdict, percent as confidence};
use loadline_analyze::stats::mean;
use loadline_analyze::variants::{Compared, Curves, Precision, Row as Figure, compare, curves};
use loadline_model::CheckId;
use loadline_model::format::{counted, whole};
use loadline_model::manifest::VariantFound;
use loadline_model::variant::{Letter, Paired};
use loadline_model::{Column, Outcome, TestRecord, column};
use minijinja::context;

use super::ratios::{Shown, percent, ratio, table};
use super::sizes;
use super::stop;
use super::wait_profiles;
use crate::RunData;
use crate::bars::intervals;
use crate::doc::{Block, Section, Table};
use crate::templates::prose;

/// The variants of a run and what its pairs show.
pub(crate) struct RunOfVariants<'a> {
    paired: &'a Paired,
    compared: Compared<'a>,
    curves: Vec<Curves<'a>>,
    records: &'a [TestRecord],
    /// The variants' targets as they were found.
    found: &'a [VariantFound],
}

/// Variants of `run`, if it has any that are compared by figures.
pub(crate) fn of_run(run: &RunData) -> Option<RunOfVariants<'_>> {
    let paired = run.manifest.plan.arms()?;
    let found = &run.manifest.variants;
    let compared = compare(&run.records, paired);
    Some(RunOfVariants { paired, compared, curves: curves(&run.records, paired.pairs), records: &run.records, found })
}

/// Whether a window had something that falls into windows by chance.
type Seen = fn(&TestRecord) -> bool;

/// What is counted in the windows of each arm.
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

/// What a setting is about.
enum About {
    /// How much redo a transaction writes.
    Redo,
    /// Which blocks the database's cache holds.
    Cache,
}

impl About {
    fn column(&self) -> &'static Column {
        match self {
            About::Redo => column::REDO_KIB_PER_TX,
            About::Cache => column::BLOCK_READS_PER_S,
        }
    }
}

/// Settings that arms may differ in without any effect on a workload.
const ABOUT: [(&str, About); 8] = [
    ("wal_compression", About::Redo),
    ("full_page_writes", About::Redo),
    ("wal_log_hints", About::Redo),
    ("binlog_row_image", About::Redo),
    ("shared_buffers", About::Cache),
    ("innodb_buffer_pool_size", About::Cache),
    ("cache_size", About::Cache),
    ("mmap_size", About::Cache),
];

/// `LGWR-LAT1 with 4 jobs`.
fn place(row: &Figure<'_>) -> String {
    format!("{} with {}", row.cell.workload, counted(row.cell.jobs as usize, "job"))
}

/// `1,400`: two digits that count.
fn rough(n: usize) -> String {
    let step = 10_usize.pow(n.max(1).ilog10().saturating_sub(1));
    whole((n.div_ceil(step) * step) as f64)
}

/// What the arms of `records` have that a platform should not have.
fn forced<'a>(records: impl Iterator<Item = &'a TestRecord>) -> BTreeSet<(Letter, String)> {
    records.filter_map(|r| Some((r.arm()?, Option::from(r.forced.clone())?))).collect()
}

impl RunOfVariants<'_> {
    /// The answer in a sentence for each main figure, what an arm has that no platform should have, what did not fall into both
    /// arms alike, and how many figures were judged together.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let answers = self.main().map(|row| self.sentence(row)).chain(self.curves.iter().map(of_curves));
        let forced = forced(self.records.iter()).into_iter().map(|(arm, why)| although(arm, &why) + ".");
        let families = ["Main figures", "Other figures"].into_iter().zip(&self.compared.families);
        let families = families.filter_map(|(which, family)| Some(format!("{which}: {}.", family.says()?)));
        let why = self.other_redo().chain(self.same_work());
        let not_alike = self.others().filter_map(|letter| self.not_alike(letter));
        answers.chain(why).chain(forced).chain(not_alike).chain(families).collect()
    }

    /// Whether curves of commit time over redo are compared.
    pub(crate) fn has_curves(&self) -> bool {
        !self.curves.is_empty()
    }

    /// The variants that are compared with the first.
    fn others(&self) -> impl Iterator<Item = Letter> + use<> {
        (1..self.paired.variants.len()).map(Letter::nth)
    }

    /// The variant of `row`, where there are several.
    fn arm(&self, row: &Figure<'_>) -> Option<Letter> {
        (self.paired.variants.len() > 2).then(|| row.cell.other())
    }

    /// `LGWR-LAT1 with 4 jobs`, after the variant where there are several.
    fn named(&self, row: &Figure<'_>) -> String {
        self.arm(row).map_or_else(String::new, |arm| format!("{arm}, ")) + &place(row)
    }

    fn main(&self) -> impl Iterator<Item = &Figure<'_>> {
        self.compared.rows.iter().filter(|row| row.main)
    }

    /// How much redo a transaction is in each arm, where it differs by a tenth or more: often why one is faster.
    fn other_redo(&self) -> impl Iterator<Item = String> {
        self.main().filter_map(|row| {
            let [a, b] = self.means_of(row, column::REDO_KIB_PER_TX)?;
            let (less, more) = (a.min(b), a.max(b));
            (more > LEAST_REDO_KIB && more >= less * 1.1).then(|| {
                let arm = row.cell.other();
                format!("{}: {a:.2} KiB of redo per transaction in A, {b:.2} KiB in {arm}.", self.named(row))
            })
        })
    }

    /// Figures that show what a setting of the arms is about, where they are the same in both: then the comparison cannot show it.
    fn same_work(&self) -> Vec<String> {
        let of_setting = |(name, about): &(&str, About), row: &Figure<'_>| {
            let [a, b] = self.means_of(row, about.column()).filter(|_| self.differ(name, row.cell.other()))?;
            let said = match about {
                About::Redo if a.max(b) <= a.min(b) * 1.01 => {
                    format!("both arms wrote {a:.2} KiB of redo per transaction: {name} changed nothing of it here")
                }
                About::Cache if a.max(b) < LEAST_READS_PER_S => {
                    format!("neither arm read a block from outside its cache: what is read fits {name} of both")
                }
                _ => return None,
            };
            Some(format!("{}: {said}.", self.named(row)))
        };
        let rows: Vec<&Figure<'_>> = self.main().collect();
        ABOUT
            .iter()
            .flat_map(|setting| rows.iter().map(move |row| (setting, *row)))
            .filter_map(|(setting, row)| of_setting(setting, row))
            .collect()
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

    /// Means of `column` over the valid windows of both variants of `row`.
    fn means_of(&self, row: &Figure<'_>, column: &Column) -> Option<[f64; 2]> {
        let [a, b] = [Letter::A, row.cell.other()].map(|arm| {
            let windows = self.of_row(row).filter(|r| r.is_usable() && r.arm() == Some(arm));
            mean(&windows.filter_map(|r| r.figure(column)).collect::<Vec<_>>())
        });
        Some([a?, b?])
    }

    /// The windows of `row`.
    fn of_row(&self, row: &Figure<'_>) -> impl Iterator<Item = &TestRecord> {
        self.records.iter().filter(|r| row.cell.has(r))
    }

    /// The windows of `arm` in the pairs that compare `other` with the first variant.
    fn windows(&self, arm: Letter, other: Letter) -> impl Iterator<Item = &TestRecord> {
        let is_in = move |r: &&TestRecord| r.variant.as_ref().is_some_and(|w| (w.arm, w.beside) == (arm, other));
        self.records.iter().filter(is_in)
    }

    /// What fell into windows of one variant more often than into those of the other.
    fn not_alike(&self, other: Letter) -> Option<String> {
        let seen_in = |seen: Seen| [Letter::A, other].map(|arm| self.windows(arm, other).filter(|r| seen(r)).count());
        let found: Vec<(&str, [usize; 2])> =
            BURSTS.into_iter().map(|(what, seen)| (what, seen_in(seen))).filter(|(_, [a, b])| a != b).collect();
        let said: Vec<String> = found
            .iter()
            .map(|(what, [a, b])| format!("{what} in {} of A and {b} of {other}", counted(*a, "window")))
            .collect();
        let cycles = if found.iter().any(|(what, _)| *what == CHECKPOINT) {
            " Windows as long as the time between checkpoints (--duration) share them out."
        } else {
            ""
        };
        (!said.is_empty()).then(|| {
            format!(
                "Not the same in both arms: {}. What hit an arm by chance is in its figures; if the arm brings it about, that is part \
                 of the answer.{cycles}",
                said.join("; ")
            )
        })
    }

    fn sentence(&self, row: &Figure<'_>) -> String {
        let arm = row.cell.other();
        let place = self.named(row);
        let Some(found) = &row.ratio else { return format!("{place}: no pair of windows is valid.") };
        let title = row.metric.column.title.to_lowercase();
        let interval = found.interval.map_or_else(
            || found.why_no_interval().map_or_else(String::new, |why| format!(" ({why})")),
            |i| format!(" ({} % interval {} to {})", confidence(found.confidence), ratio(i.low), ratio(i.high)),
        );
        let said = match row.verdict {
            Some(Verdict::Faster) => format!("{arm} is faster"),
            Some(Verdict::Slower) => format!("{arm} is slower"),
            Some(Verdict::Equivalent) => format!("the arms are equivalent within ±{}", percent(self.paired.margin)),
            _ => "no difference is shown".to_owned(),
        };
        let mut text = format!("{place}: {said}; {title} of {arm} is {} of A's{interval}", ratio(found.value));
        if let Some(pairs) = row.together_takes {
            text +=
                &format!("; that is the interval of this figure alone, all figures judged together take {pairs} pairs");
        }
        if let Some(Precision { half_width, more_pairs: Some(more) }) =
            row.precision.filter(|p| p.more_pairs != Some(0))
        {
            text += &format!(
                "; ±{} was not reached with {}, the interval is ±{} wide: that takes about {} more",
                percent(self.paired.precision.unwrap_or_default()),
                counted(found.pairs, "pair"),
                percent(half_width.unwrap_or_default()),
                rough(more)
            );
        } else if let Some(Precision { more_pairs: None, .. }) = row.precision {
            text += &format!("; ±{} was not reached", percent(self.paired.precision.unwrap_or_default()));
        }
        if found.by_pairs && found.interval.is_some() {
            text += "; with so few pairs the interval assumes that neighbouring windows vary independently";
        }
        if row.verdict == Some(Verdict::NotShown) {
            if let Some(seen) = row.detectable {
                text += &format!("; a difference of {} would have been seen in four of five such runs", percent(seen));
            }
            if let Some(more) = row.more_pairs.filter(|more| *more > 0 && found.interval.is_some()) {
                text += &format!("; to tell {} takes about {} more pairs", percent(self.paired.margin), rough(more));
            }
        }
        text + "."
    }

    /// What the sessions of each variant and the first waited for.
    pub(crate) fn waits(&self) -> impl Iterator<Item = Table> {
        self.others().filter_map(|other| {
            let [a, b] = [Letter::A, other].map(|arm| self.windows(arm, other).collect::<Vec<_>>());
            let mut table = wait_profiles::table(&a, &b)?;
            if self.paired.variants.len() > 2 {
                table.caption += &format!(", in {other} beside A");
            }
            Some(table)
        })
    }

    /// All figures.
    pub(crate) fn rows(&self) -> Vec<Shown> {
        let shown = |row: &Figure<'_>| Shown {
            workload: row.cell.workload.to_owned(),
            jobs: Some(row.cell.jobs),
            arm: self.arm(row),
            column: row.metric.column,
            main: row.main,
            sides: row.ratio.map(|_| row.levels),
            ratio: row.ratio.map(|r| r.value),
            interval: row.ratio.and_then(|r| r.interval),
            verdict: row.verdict,
            detectable: row.detectable,
            pairs: row.ratio.map_or(0, |r| r.pairs),
            dropped: row.ratio.map_or(0, |r| r.dropped),
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

    /// How to read it.
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

/// The shapes of commit time over redo, and whether they differ.
fn of_curves(curves: &Curves<'_>) -> String {
    let (workload, arm) = (curves.cell.workload, curves.cell.other());
    let Some([a, b]) = curves.shapes.as_ref().map(|shapes| shapes.each_ref().map(sizes::sentence)) else {
        return format!("{workload}: no pair of tests is valid.");
    };
    let said = match curves.differ() {
        Some(true) => {
            "the curves differ: one of them alone has a period, or the 95 % intervals of their periods do not overlap"
        }
        Some(false) => "no difference of their periods is shown",
        None => "whether they differ is not known",
    };
    format!("{workload}: {said}. A: {a}. {arm}: {b}.")
}

/// `Arm B was measured although commits do not wait`.
fn although(arm: Letter, why: &str) -> String {
    format!("Arm {arm} was measured although {}", stop(why))
}

/// The section of a report on one run of variants.
pub(crate) fn section(of_run: Option<&RunOfVariants<'_>>) -> Section {
    let mut blocks = Vec::new();
    if let Some(of_run) = of_run {
        let rows = of_run.rows();
        let what = if of_run.paired.variants.len() > 2 { "Ratio to A" } else { "B/A" };
        let title = format!("{what} of the main figures; the band is what is called equivalent");
        let main = rows.iter().filter(|row| row.main);
        let ratios: Vec<_> =
            main.filter_map(|row| Some((row.place(), row.ratio.filter(|r| *r > 0.0)?, row.interval))).collect();
        blocks.push(Block::List { items: of_run.sentences() });
        blocks.extend(Block::charts(1, intervals(&title, &ratios, of_run.paired.margin)));
        blocks.extend(Block::table(table(&rows, "Pairs")));
        blocks.extend(of_run.waits().map(Block::Table));
        blocks.push(Block::Para { text: of_run.method() });
    }
    Section::of("arms", "Which is faster", blocks)
}
