//! Verdicts of one or several comparisons, with the rate of false ones held.
//!
//! All comparisons of a run are judged together: at most 5 % of the *verdicts* (faster, slower, equivalent) are expected to be false,
//! a false one being an interval that misses the true ratio. The p value of a comparison is the smallest error at which its interval
//! gives a verdict; Benjamini and Hochberg find the number R of verdicts among m comparisons; then every interval has the error R/m ×
//! 5 %. This is proved for independent comparisons; for figures of the same windows it is simulated. With `looks` > 1, the error is
//! that of each look ([`super::verdict`]).
//!
//! Sources: Benjamini and Hochberg, Journal of the Royal Statistical Society B 57 (1995) 289; Benjamini and Yekutieli, False
//! discovery rate-adjusted multiple confidence intervals for selected parameters, Journal of the American Statistical Association 100
//! (2005) 71.

use serde::Serialize;

use super::flips::Sample;
use super::ratio::{PairedEstimate, paired_ratio};
use super::verdict::{Verdict, verdict_of};
use super::{Pair, percent};

#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// A figure of all planned pairs, in order.
    pub pairs: &'a [Pair],
    pub higher_is_better: bool,
    /// Margin of equivalence, 0.02 for ±2 %; 0 for none.
    pub margin: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Answer {
    /// The ratio B/A, with the interval of the family; `None` if no pair is valid.
    pub ratio: Option<PairedEstimate>,
    pub verdict: Verdict,
    /// The smallest error at which this comparison alone has a verdict.
    pub p: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Family {
    /// One answer a question, in order.
    pub answers: Vec<Answer>,
    /// The share of false verdicts that is held, 0.05 for 5 %.
    pub error: f64,
    /// Verdicts given, by Benjamini and Hochberg.
    pub verdicts: usize,
    pub looks: usize,
    /// Confidence of every interval.
    pub confidence: f64,
}

/// Judges comparisons together, with a share `error` of false verdicts (0.05), after one of `looks` declared looks.
pub fn judge(questions: &[Question<'_>], error: f64, looks: usize) -> Family {
    let looks = looks.max(1);
    let p: Vec<f64> = questions.iter().map(|q| (p_value(q) * looks as f64).min(1.0)).collect();
    let verdicts = discoveries(&p, error);
    let share = verdicts.max(1) as f64 / questions.len().max(1) as f64;
    let error_each = error * share / looks as f64;
    let answer = |(question, p): (&Question<'_>, &f64)| {
        let ratio = paired_ratio(question.pairs, error_each);
        let interval = ratio.and_then(|r| r.interval);
        let shown = verdict_of(interval, question.higher_is_better, question.margin);
        Answer { ratio, verdict: shown, p: *p }
    };
    let answers = questions.iter().zip(&p).map(answer).collect();
    Family { answers, error, verdicts, looks, confidence: 1.0 - error_each }
}

impl Family {
    /// Treatment of several comparisons, in a sentence; `None` for a single one.
    pub fn says(&self) -> Option<String> {
        (self.answers.len() > 1).then(|| {
            format!(
                "{} comparisons judged together: at most {} % of verdicts are expected to be false (Benjamini and \
                 Hochberg); intervals of {} % to match {} verdicts (Benjamini and Yekutieli)",
                self.answers.len(),
                percent(self.error),
                percent(self.confidence),
                self.verdicts
            )
        })
    }
}

/// The smallest error at which the interval of `question` gives a verdict: it leaves out 1, or is within the margin.
fn p_value(question: &Question<'_>) -> f64 {
    let sample = Sample::from_pairs(question.pairs, Pair::log_ratio);
    let differs = sample.above(0.0).min(sample.below(0.0));
    let within = if question.margin > 0.0 {
        let end = question.margin.ln_1p();
        sample.above(-end).max(sample.below(end))
    } else {
        1.0
    };
    (2.0 * differs.min(within)).min(1.0)
}

/// How many of the hypotheses with these p values are rejected with a false discovery rate of `error`: the largest k
/// for which k of them are at most k/m × `error`.
pub fn discoveries(p: &[f64], error: f64) -> usize {
    let mut sorted = p.to_vec();
    sorted.sort_by(f64::total_cmp);
    let m = sorted.len() as f64;
    sorted.iter().enumerate().rposition(|(k, p)| *p <= (k + 1) as f64 / m * error).map_or(0, |k| k + 1)
}

#[cfg(test)]
mod tests {
    use super::super::simulated::Machine;
    use super::*;
    use loadline_model::Random;

    #[test]
    fn the_example_of_benjamini_and_hochberg() {
        // Section 4 of their paper: four of 15 are rejected at 5 %, where Bonferroni rejects three.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        assert_eq!(discoveries(&p, 0.05), 4);
        assert_eq!(p.iter().filter(|p| **p <= 0.05 / 15.0).count(), 3);
        assert_eq!(discoveries(&[0.04, 0.05, 0.03], 0.05), 3);
        assert_eq!(discoveries(&[], 0.05), 0);
    }

    /// 20 comparisons in one run, of which the first `different` have a ratio of `ratio`. Each `alike` of them in
    /// turn have the same noise, as figures of the same windows have.
    fn run(seed: u64, machine: Machine, different: usize, ratio: f64, alike: u64) -> (Family, Vec<f64>) {
        let truth: Vec<f64> = (0..20).map(|n| if n < different { ratio } else { 1.0 }).collect();
        let noise = |n: u64| Random::new(1000 * seed + n / alike);
        let figures: Vec<Vec<Pair>> = (0..).zip(&truth).map(|(n, r)| machine.run(&mut noise(n), 24, *r)).collect();
        let question = |pairs| Question { pairs, higher_is_better: true, margin: 0.02 };
        (judge(&figures.iter().map(|f| question(f)).collect::<Vec<_>>(), 0.05, 1), truth)
    }

    #[test]
    fn of_20_comparisons_5_percent_of_the_verdicts_are_false_at_most() {
        for (machine, different, ratio, alike) in [
            (Machine::QUIET, 0, 1.0, 1),
            (Machine::QUIET, 5, 1.05, 5),
            (Machine::ROUGH, 10, 1.10, 1),
            (Machine::QUIET, 12, 1.05, 10),
        ] {
            let (mut share, mut right) = (0.0, 0);
            for seed in 0..100 {
                let (family, truth) = run(seed, machine, different, ratio, alike);
                let false_verdict = |(a, r): &(&Answer, &f64)| match a.verdict {
                    Verdict::Faster => **r <= 1.0,
                    Verdict::Slower => **r >= 1.0,
                    Verdict::Equivalent => **r >= 1.02,
                    Verdict::NotShown => false,
                };
                let wrong = family.answers.iter().zip(&truth).filter(false_verdict).count();
                let given = family.answers.iter().filter(|a| a.verdict != Verdict::NotShown).count();
                assert_eq!(given, family.verdicts, "{family:?}");
                share += wrong as f64 / given.max(1) as f64 / 100.0;
                right += given - wrong;
            }
            // Three standard deviations above 5 % if each of 100 runs has one verdict or none.
            assert!(share <= 0.115, "{machine:?}, {different} differ: {share}");
            assert!(different == 0 || right > 300, "{machine:?}, {different} differ: {right}");
        }
    }

    #[test]
    fn a_single_comparison_is_judged_at_95_percent_and_says_nothing_of_others() {
        let pairs = Machine::QUIET.run(&mut Random::new(3), 12, 2.0);
        let question = Question { pairs: &pairs, higher_is_better: false, margin: 0.02 };
        let family = judge(&[question], 0.05, 1);
        assert_eq!((family.answers[0].verdict, family.verdicts, family.says()), (Verdict::Slower, 1, None));
        assert_eq!(family.answers[0].ratio, paired_ratio(&pairs, 0.05));
        assert!((family.answers[0].p - 2.0 / 64.0).abs() < 1e-12);
        // Six blocks cannot have a 99 % interval: with five looks nothing is shown, however large the difference is.
        let looks = judge(&[question], 0.05, 5);
        assert_eq!((looks.answers[0].verdict, looks.verdicts), (Verdict::NotShown, 0));
        assert_eq!(looks.answers[0].ratio.and_then(|r| r.interval), None);
        assert!(judge(&[question, question], 0.05, 1).says().unwrap().contains("2 verdicts"));
        let none = judge(&[Question { pairs: &[], ..question }], 0.05, 1);
        assert_eq!((none.answers[0].ratio, none.answers[0].verdict), (None, Verdict::NotShown));
        assert!(judge(&[], 0.05, 1).answers.is_empty());
    }
}
