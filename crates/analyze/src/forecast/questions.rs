//! Forecasts read the other way round: the jobs at which an objective breaks, and those that a throughput needs.

use super::figures::Figure;
use super::fitted::{Estimate, Fitted};

/// How far beyond the measured jobs an answer is looked for, as a multiple of them.
pub const FARTHEST: f64 = 8.0;

/// What is asked of a forecast: a number of jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Question {
    /// The first at which throughput is this or more, tps.
    Reaches(f64),
    /// The first at which a time or a share is above this, in the unit of the figure: an objective breaks there. It is looked for from
    /// where the figure is lowest in the measured range, because few jobs may be slow while the machine wakes up.
    Exceeds(Figure, f64),
}

impl Question {
    /// The figure that it is about.
    #[must_use]
    pub fn figure(self) -> Figure {
        match self {
            Question::Reaches(_) => Figure::Tps,
            Question::Exceeds(figure, _) => figure,
        }
    }

    fn is_met(self, value: f64) -> bool {
        match self {
            // To the precision of the solution.
            Question::Reaches(tps) => value >= tps * (1.0 - 1e-9),
            Question::Exceeds(_, limit) => value > limit,
        }
    }
}

/// A number of jobs and its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jobs {
    /// Jobs, by the forecast itself; `None` if it does not get there in the range looked at.
    pub at: Option<f64>,
    /// Jobs by the end of the interval that gets there first.
    pub earliest: Option<f64>,
    /// Jobs by the end that gets there last.
    pub latest: Option<f64>,
    /// Start of the range looked at. An objective that breaks there already holds nowhere.
    pub looked_from: f64,
    /// End of the range looked at: [`FARTHEST`] times the measured jobs, or those if forecasts beyond are refused.
    pub looked_to: f64,
}

impl Fitted {
    /// The answer to `question`; `None` if the series lacks the figure.
    #[must_use]
    pub fn ask(&self, question: Question) -> Option<Jobs> {
        let figure = |jobs: f64| Some((jobs, self.figure(question.figure(), jobs)?.0));
        let looked_to = self.measured_to() * if self.refused.is_some() { 1.0 } else { FARTHEST };
        // Every number of jobs up to 1,000, then a thousandth at a time.
        let jobs = std::iter::successors(Some(1.0), |jobs: &f64| Some((jobs + 1.0).max((jobs * 1.001).floor())));
        let all: Vec<(f64, Estimate)> = jobs.take_while(|jobs| *jobs <= looked_to).map_while(figure).collect();
        let measured = all.iter().filter(|(jobs, _)| *jobs <= self.measured_to());
        let looked_from = match question {
            Question::Reaches(_) => all.first()?.0,
            Question::Exceeds(..) => measured.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?.0,
        };
        let first = |end: fn(&Estimate) -> f64| {
            let there = |(jobs, e): &&(f64, Estimate)| *jobs >= looked_from && question.is_met(end(e));
            all.iter().find(there).map(|(jobs, _)| *jobs)
        };
        // Higher values get there first.
        Some(Jobs {
            at: first(|e| e.value),
            earliest: first(|e| e.high),
            latest: first(|e| e.low),
            looked_from,
            looked_to,
        })
    }
}
