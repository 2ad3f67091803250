//! What a run of two arms shows: a table of ratios, and a row of each figure for scripts.

use std::collections::BTreeSet;

use loadline_analyze::arms::{Compared, Row as Figure, compare};
use loadline_analyze::paired::{Verdict, percent as confidence};
use loadline_model::arms::ArmName;
use loadline_model::format::whole;
use loadline_model::plan::Arms;
use loadline_model::{TestRecord, column};

use super::count;
use super::ratios::{Shown, percent, ratio, table};
use super::wait_profiles;
use crate::RunData;
use crate::doc::{Block, Chart, Section, Table};
use crate::svg_ratios::ratios;

/// The arms of a run and what its pairs show.
pub(crate) struct OfRun<'a> {
    arms: &'a Arms,
    compared: Compared<'a>,
    records: &'a [TestRecord],
    /// What each arm was measured in spite of.
    forced: BTreeSet<(ArmName, &'a str)>,
    /// Windows of each arm with a checkpoint, if they differ.
    checkpoints: Option<[usize; 2]>,
}

/// Of `run`, if it has arms.
pub(crate) fn of(run: &RunData) -> Option<OfRun<'_>> {
    let arms = run.manifest.plan.arms.as_deref()?;
    let forced = run.records.iter().filter_map(|r| Some((r.arm?, r.forced.as_deref()?))).collect();
    let with_checkpoint =
        |arm: ArmName, r: &&TestRecord| r.arm == Some(arm) && r.figure(column::CHECKPOINTS).is_some_and(|n| n > 0.0);
    let checkpoints = ArmName::ALL.map(|arm| run.records.iter().filter(|r| with_checkpoint(arm, r)).count());
    let checkpoints = Some(checkpoints).filter(|[a, b]| a != b);
    Some(OfRun { arms, compared: compare(&run.records, arms), records: &run.records, forced, checkpoints })
}

/// `1,400`: two digits that count.
fn rough(n: usize) -> String {
    let step = 10_usize.pow(n.max(1).ilog10().saturating_sub(1));
    whole((n.div_ceil(step) * step) as f64)
}

impl OfRun<'_> {
    /// The answer in a sentence for each main figure, and what an arm has that no platform should have.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let answers = self.compared.rows.iter().filter(|row| row.main).map(|row| self.sentence(row));
        let forced = self.forced.iter().map(|(arm, why)| format!("Arm {arm} was measured although {why}."));
        let checkpoints = self.checkpoints.map(|[a, b]| {
            format!(
                "A checkpoint fell into {} of A and {b} of B: its writes are in the figures of one arm more than in those of the \
                 other. Windows as long as the time between checkpoints (--duration) share them out.",
                count(a, "window", "windows")
            )
        });
        answers.chain(forced).chain(checkpoints).collect()
    }

    fn sentence(&self, row: &Figure<'_>) -> String {
        let place = format!("{} with {}", row.workload, count(row.jobs as usize, "job", "jobs"));
        let Some(found) = &row.ratio else { return format!("{place}: no pair of windows is valid.") };
        let title = row.metric.column.title.to_lowercase();
        let interval = found.interval.map_or_else(
            || found.why_no_interval().map_or_else(String::new, |why| format!(" ({why})")),
            |i| format!(" ({} % interval {} to {})", confidence(found.confidence), ratio(i.low), ratio(i.high)),
        );
        let said = match row.verdict {
            Some(Verdict::Faster) => "B is faster".to_owned(),
            Some(Verdict::Slower) => "B is slower".to_owned(),
            Some(Verdict::Equivalent) => format!("the arms are equivalent within ±{}", percent(self.arms.margin)),
            _ => "no difference is shown".to_owned(),
        };
        let mut text = format!("{place}: {said}; {title} of B is {} of A's{interval}", ratio(found.value));
        if let Some(pairs) = row.together_takes {
            text +=
                &format!("; that is the interval of this figure alone, all figures judged together take {pairs} pairs");
        }
        if found.by_pairs && found.interval.is_some() {
            text += "; with so few pairs the interval assumes that neighbouring windows vary independently";
        }
        if row.verdict == Some(Verdict::NotShown) {
            if let Some(seen) = row.detectable {
                text += &format!("; a difference of {} would have been seen in four of five such runs", percent(seen));
            }
            if let Some(more) = row.more_pairs.filter(|more| *more > 0 && found.interval.is_some()) {
                text += &format!("; to tell {} takes about {} more pairs", percent(self.arms.margin), rough(more));
            }
        }
        text + "."
    }

    /// What the sessions of the arms waited for.
    pub(crate) fn waits(&self) -> Option<Table> {
        let of = |arm| self.records.iter().filter(|r| r.arm == Some(arm)).collect::<Vec<_>>();
        wait_profiles::table(&of(ArmName::A), &of(ArmName::B))
    }

    /// All figures.
    pub(crate) fn rows(&self) -> Vec<Shown> {
        let shown = |row: &Figure<'_>| Shown {
            workload: row.workload.to_owned(),
            jobs: Some(row.jobs),
            column: row.metric.column,
            main: row.main,
            sides: row.ratio.map(|_| (row.a, row.b)),
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
                    count(self.compared.family.answers.len(), "comparison", "comparisons")
                )),
                (Some(r), None) => r.why_no_interval(),
            },
        };
        self.compared.rows.iter().map(shown).collect()
    }

    /// How to read it.
    fn method(&self) -> String {
        let looks = match self.arms.looks.as_slice() {
            [_] => String::new(),
            looks => format!(
                " Measured until the interval was ±{} wide, looked at after {} pairs, which were set before the run.",
                percent(self.arms.precision.unwrap_or_default()),
                looks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        let family = self.compared.family.says().map_or_else(String::new, |says| format!(" The main figures: {says}."));
        format!(
            "Windows of both arms in turns, in blocks ABBA or BAAB by coin, so that a device that drifts is the same for both. \
             The ratio is that of neighbouring windows, at {} % confidence; equivalent means within ±{}.{looks}{family} \
             docs/statistics.md says how.",
            confidence(self.compared.family.confidence),
            percent(self.arms.margin)
        )
    }
}

/// The section of a report on one run of two arms.
pub(crate) fn section(of_run: Option<&OfRun<'_>>) -> Section {
    let mut blocks = Vec::new();
    if let Some(of_run) = of_run {
        let rows = of_run.rows();
        blocks.push(Block::List { items: of_run.sentences() });
        let title = "B/A of the main figures; the band is what is called equivalent";
        if let Some(svg) = ratios(title, &rows, of_run.arms.margin) {
            blocks.push(Block::Charts { charts: vec![Chart { svg }], per_row: 1 });
        }
        blocks.push(Block::Table(table(&rows, "Pairs")));
        blocks.extend(of_run.waits().map(Block::Table));
        blocks.push(Block::Para { text: of_run.method() });
    }
    Section::of("arms", "Which is faster", blocks)
}
