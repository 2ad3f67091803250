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

/// A number of jobs and its 90 % interval, up to [`FARTHEST`] times the measured jobs, or these if forecasts beyond are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jobs {
    /// Jobs, by the forecast itself; `None` if it does not get there in the range looked at.
    pub at: Option<f64>,
    /// Jobs by the end of the interval that gets there first.
    pub earliest: Option<f64>,
    /// Jobs by the end that gets there last.
    pub latest: Option<f64>,
}

impl Fitted {
    /// Jobs up to which answers are looked for.
    #[must_use]
    pub fn looked_to(&self) -> f64 {
        self.measured_to() * if self.refused.is_some() { 1.0 } else { FARTHEST }
    }

    /// The answer to `question`; `None` if the series lacks the figure.
    #[must_use]
    pub fn ask(&self, question: Question) -> Option<Jobs> {
        let figure = |jobs: f64| Some((jobs, self.figure(question.figure(), jobs)?.0));
        let looked_to = self.looked_to();
        // Every number of jobs up to 1,000, then a thousandth at a time.
        let jobs = std::iter::successors(Some(1.0), |jobs: &f64| Some((jobs + 1.0).max((jobs * 1.001).floor())));
        let mut all: Vec<(f64, Estimate)> = jobs.take_while(|jobs| *jobs <= looked_to).map_while(figure).collect();
        if let Question::Exceeds(..) = question {
            let measured = all.iter().take_while(|(jobs, _)| *jobs <= self.measured_to()).enumerate();
            all.drain(..measured.min_by(|(_, a), (_, b)| a.1.value.total_cmp(&b.1.value))?.0);
        }
        all.first()?;
        let first =
            |end: fn(&Estimate) -> f64| all.iter().find(|(_, e)| question.is_met(end(e))).map(|(jobs, _)| *jobs);
        // Higher values get there first.
        Some(Jobs { at: first(|e| e.value), earliest: first(|e| e.high), latest: first(|e| e.low) })
    }
}
