//! The jobs at which an objective breaks, and the jobs that a throughput needs: forecasts read the other way round.

use serde::Serialize;

use super::figures::Figure;
use super::fitted::Fitted;

/// How far beyond the measured jobs an answer is looked for, as a multiple of them.
pub const FARTHEST: f64 = 8.0;

/// A number of jobs and its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Jobs {
    /// Jobs, by the forecast itself; `None` if it does not get there in the range looked at.
    pub at: Option<f64>,
    /// The same by the end of the interval that gets there first.
    pub earliest: Option<f64>,
    /// The same by the end that gets there last.
    pub latest: Option<f64>,
    /// End of the range looked at: [`FARTHEST`] times the measured jobs, or those if forecasts beyond are refused.
    pub looked_to: f64,
}

impl Fitted {
    /// The first number of jobs at which `figure` is above `limit`: a time or a share that is an objective breaks there. It is
    /// looked for from where the figure is lowest in the measured range, because few jobs may be slow while the machine wakes up.
    /// If it is above there already, the objective does not hold anywhere. `None` if the series lacks the figure.
    #[must_use]
    pub fn breaks(&self, figure: Figure, limit: f64) -> Option<Jobs> {
        let value = |jobs: f64| Some((jobs, self.figure(figure, jobs)?.0.value));
        let measured = self.looked_at().take_while(|jobs| *jobs <= self.measured_to()).filter_map(value);
        let (lowest, _) = measured.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1.0, 0.0));
        self.first(figure, lowest, |value| value > limit)
    }

    /// Whether `figure` keeps `limit` at `jobs`.
    #[must_use]
    pub fn holds(&self, figure: Figure, limit: f64, jobs: f64) -> bool {
        self.figure(figure, jobs).is_some_and(|(e, _)| e.value <= limit)
    }

    /// The first number of jobs at which throughput is `tps` or more.
    #[must_use]
    pub fn needs(&self, tps: f64) -> Option<Jobs> {
        // To the precision of the solution.
        self.first(Figure::Tps, 1.0, |value| value >= tps * (1.0 - 1e-9))
    }

    /// Jobs with the highest throughput / latency, the load line without an objective; `None` if that still rises at the end of the
    /// range looked at.
    #[must_use]
    pub fn highest_power(&self) -> Option<f64> {
        let mut best: Option<(f64, f64)> = None;
        let mut last = 0.0;
        for jobs in self.looked_at() {
            let (Some((tps, _)), Some((latency, _))) = (self.tps(jobs), self.figure(Figure::LatencyMs, jobs)) else {
                break;
            };
            let power = tps.value / latency.value;
            if best.is_none_or(|(_, most)| power > most) {
                best = Some((jobs, power));
            }
            last = jobs;
        }
        best.map(|(jobs, _)| jobs).filter(|jobs| *jobs < last)
    }

    fn looked_to(&self) -> f64 {
        self.measured_to() * if self.refused.is_some() { 1.0 } else { FARTHEST }
    }

    /// Every number of jobs up to 1,000, then a thousandth at a time.
    fn looked_at(&self) -> impl Iterator<Item = f64> + use<> {
        let end = self.looked_to();
        std::iter::successors(Some(1.0), |jobs: &f64| Some((jobs + 1.0).max((jobs * 1.001).floor())))
            .take_while(move |jobs| *jobs <= end)
    }

    fn first(&self, figure: Figure, from: f64, there: impl Fn(f64) -> bool) -> Option<Jobs> {
        self.figure(figure, self.measured_to())?;
        let mut found = Jobs { at: None, earliest: None, latest: None, looked_to: self.looked_to() };
        for jobs in self.looked_at().skip_while(|jobs| *jobs < from) {
            let (e, _) = self.figure(figure, jobs)?;
            // Higher values get there first.
            for (place, value) in [(&mut found.earliest, e.high), (&mut found.at, e.value), (&mut found.latest, e.low)]
            {
                if place.is_none() && there(value) {
                    *place = Some(jobs);
                }
            }
            if found.latest.is_some() {
                break;
            }
        }
        Some(found)
    }
}
