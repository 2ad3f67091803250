//! Contenders measured in turns, and the ratios of what they did in the same rounds.

use loadline_analyze::paired::{Pair, paired_ratio};
use loadline_analyze::stats::{geometric_mean, median};

/// The interval of a ratio misses the truth in this share of runs.
const ERROR: f64 = 0.1;

/// A figure of a measurement: its name, its value, and with how many decimals it is shown.
pub(crate) type Figure<F> = (&'static str, fn(&F) -> f64, usize);

/// Who is compared, at which points, by which figures.
pub(crate) struct Contest<'a, F> {
    pub(crate) points: Vec<String>,
    pub(crate) contenders: Vec<&'a str>,
    pub(crate) figures: &'a [Figure<F>],
}

/// Figures of each contender in each round: by point and contender.
pub(crate) type Rounds<F> = Vec<Vec<Vec<F>>>;

impl<F> Contest<'_, F> {
    /// Measures all contenders at all points in each round, and prints each measurement. Another contender goes first in each round.
    pub(crate) fn measure<E>(
        &self,
        rounds: u32,
        mut one: impl FnMut(usize, usize) -> Result<F, E>,
    ) -> Result<Rounds<F>, E> {
        let count = self.contenders.len();
        let of_point = || (0..count).map(|_| Vec::new()).collect();
        let mut all: Rounds<F> = self.points.iter().map(|_| of_point()).collect();
        for round in 0..rounds as usize {
            for (point, (name, found)) in self.points.iter().zip(&mut all).enumerate() {
                for turn in 0..count {
                    let contender = (turn + round) % count;
                    let done = one(point, contender)?;
                    let said = self.figures.iter().map(|(name, value, digits)| {
                        let value = value(&done);
                        format!("  {name} {value:.digits$}")
                    });
                    let said: String = said.collect();
                    println!("{:>5}  {name:<14} {:<20}{said}", round + 1, self.contenders[contender]);
                    found[contender].push(done);
                }
            }
        }
        Ok(all)
    }

    /// Prints medians of the rounds, and the ratio of the first of each pair of contenders to the second with its interval; for each
    /// pair the geometric means of its ratios.
    pub(crate) fn print(&self, all: &Rounds<F>, pairs: impl IntoIterator<Item = (usize, usize)>) {
        println!("\nmedians of the rounds; ratios with their {:.0} % interval\n", (1.0 - ERROR) * 100.0);
        let head = |(name, ..): &Figure<F>| format!(" {name}: theirs | ours | ratio |");
        println!("| at | ours / theirs |{}", self.figures.iter().map(head).collect::<String>());
        println!("| --- | --- |{}", " --- | --- | --- |".repeat(self.figures.len()));
        for (ours, theirs) in pairs {
            let pair = format!("{} / {}", self.contenders[ours], self.contenders[theirs]);
            let mut ratios = vec![Vec::new(); self.figures.len()];
            for (name, found) in self.points.iter().zip(all) {
                let mut cells = String::new();
                for ((_, value, digits), ratios) in self.figures.iter().zip(&mut ratios) {
                    let [theirs, ours] = [theirs, ours].map(|n| found[n].iter().map(value).collect::<Vec<f64>>());
                    let [middle_theirs, middle_ours] = [&theirs, &ours].map(|of| median(of).unwrap_or(f64::NAN));
                    let (said, ratio) = ratio(&theirs, &ours);
                    ratios.extend(ratio);
                    cells += &format!(" {middle_theirs:.digits$} | {middle_ours:.digits$} | {said} |");
                }
                println!("| {name} | {pair} |{cells}");
            }
            let mean = |ratios: &Vec<f64>| format!(" {:.3}", geometric_mean(ratios).unwrap_or(f64::NAN));
            println!("{pair}, geometric means:{}", ratios.iter().map(mean).collect::<String>());
        }
    }
}

/// `ours / theirs` over the rounds, with its interval, in words and as a number.
fn ratio(theirs: &[f64], ours: &[f64]) -> (String, Option<f64>) {
    let pairs: Vec<Pair> = theirs.iter().zip(ours).map(|(t, o)| Pair::new(*t, *o)).collect();
    let Some(ratio) = paired_ratio(&pairs, ERROR) else { return ("unknown".to_owned(), None) };
    let said = match ratio.interval {
        Some(i) => format!("{:.3} ({:.3} to {:.3})", ratio.value, i.low, i.high),
        None => format!("{:.3} ({} rounds for an interval)", ratio.value, ratio.least_pairs),
    };
    (said, Some(ratio.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_contender_goes_first_in_each_round_and_each_is_measured_at_each_point() {
        let (points, contenders) = (vec!["1".to_owned(), "8".to_owned()], vec!["a", "b", "c"]);
        let contest = Contest { points, contenders, figures: &[("order", |order| *order, 0)] };
        let mut order = 0.0;
        let all = contest.measure(3, |_, _| {
            order += 1.0;
            Ok::<_, ()>(order)
        });
        let first = [vec![1.0, 9.0, 14.0], vec![2.0, 7.0, 15.0], vec![3.0, 8.0, 13.0]];
        let all = all.unwrap();
        assert_eq!(all[0], first);
        assert_eq!(all[1], first.map(|of| of.into_iter().map(|n| n + 3.0).collect::<Vec<f64>>()));
        assert_eq!(ratio(&[2.0; 8], &[3.0; 8]).1.map(|ratio| (ratio * 1e6).round()), Some(1.5e6));
    }
}
