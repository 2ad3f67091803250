//! Prices of the platforms: a price list, and throughput for the price. A total is of three years, or of an hour if all prices are by the hour.

use loadline_analyze::stats::Interval;
use loadline_analyze::{Comparison, Factor, Sweep};
use loadline_model::facts::capacity_bytes;
use loadline_model::format::{ABSENT, number, whole};

use minijinja::{Value, context};
use serde::{Deserialize, Serialize};
use toml::value::Datetime;

use crate::content::factors::factor_cell;
use crate::content::qualified::{figure, kept_by};
use crate::doc::{Block, Cell, Section, Table};
use crate::listing::Listing;
use crate::platform_run::{PlatformRun, by_variant, comparisons, sides, swept};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::text::is_unseen;
use crate::words::{distinct, place, ratio, scale, unit};
use crate::{ReportError, RunData};

const HOURS: f64 = 3.0 * 365.0 * 24.0;
/// Highest amount, in any currency: above it an amount is mistyped.
const MOST: f64 = 1e15;
/// Facts that are added to the capacity of a platform.
const CAPACITIES: [&str; 3] = ["persistent-memory", "flash", "disk"];

/// In place of factors of the first platform.
const BASE: &str = "base";
const NO_PRICE: &str = "the price list has no [[price]] of it";
const GIVEN: &str = "throughput was given by a rate or a think time: it is not what the platform can do";
const NO_CAPACITY: &str =
    "no capacity is stated: run with --fact 'Flash capacity=25.6 TB', 'Disk capacity=…' or 'Persistent memory=…'";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    #[error("line {line}: {message}")]
    Toml { line: usize, message: String },
    #[error("it has no [[price]]")]
    Empty,
    #[error("the {key} of the price of '{platform}' {found}: write {allowed}")]
    Value { platform: String, key: &'static str, found: String, allowed: &'static str },
    #[error("prices are in {0} and {1}: loadline does not convert; write all in one currency")]
    Mixed(String, String),
    #[error("'{0}' has two [[price]]: write one, and what comes on top as [[licence]]")]
    Twice(String),
    #[error("'{0}' has a [[licence]] and no [[price]]")]
    OnlyLicence(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PriceKind {
    Once,
    PerHour,
}

/// A price, or a licence on top of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    platform: String,
    amount: f64,
    currency: String,
    date: Option<Datetime>,
    kind: PriceKind,
    covers: String,
    #[serde(skip)]
    is_licence: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    price: Vec<Price>,
    #[serde(default)]
    licence: Vec<Price>,
}

impl Price {
    fn check(&self) -> Result<(), PriceError> {
        let bad = |key, found: String, allowed| {
            Err(PriceError::Value { platform: self.platform.clone(), key, found, allowed })
        };
        if !(f64::MIN_POSITIVE..=MOST).contains(&self.amount) {
            return bad("amount", format!("is {}", self.amount), "a number above 0, at most 1e15");
        }
        if self.currency.len() != 3 || !self.currency.bytes().all(|c| c.is_ascii_uppercase()) {
            return bad("currency", format!("is '{}'", self.currency), "three letters as in EUR");
        }
        if self.date.is_none_or(|day| day.date.is_none() || day.time.is_some()) {
            let found = self.date.map_or("is missing".to_owned(), |time| format!("is {time}"));
            return bad("date", found, "the day on which it holds, as in 2021-06-01");
        }
        if self.covers.trim().is_empty() || self.covers.chars().any(is_unseen) {
            let found = "is empty, or not one line of text".to_owned();
            return bad("covers", found, "what it covers, as in \"2 servers, 3 years of support\"");
        }
        Ok(())
    }

    fn date(&self) -> String {
        self.date.map_or_else(String::new, |day| day.to_string())
    }
}

/// A price list whose amounts are of one currency and have a date.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    currency: String,
    /// All prices, then all licences.
    prices: Vec<Price>,
}

struct Line<'a> {
    list: &'a Prices,
    side: &'a PlatformRun<'a>,
    sweep: &'a Sweep,
    /// Jobs or swept value of the peak, and the rate there as its column shows it.
    peak: Option<(u32, f64)>,
    /// Against the first platform, or why there are none; [`BASE`] of itself.
    factors: Result<Factors, String>,
}

#[derive(Serialize)]
struct Factors {
    throughput: Factor,
    price: f64,
    /// Throughput for the price. A price has no interval: that of throughput is divided as the factor is.
    for_price: Factor,
    caveat: Option<String>,
}

impl Line<'_> {
    /// Throughput per 1,000 of the currency; `None` if it was given.
    fn per_1000(&self) -> Option<f64> {
        if is_given(self.sweep) {
            return None;
        }
        Some(self.peak?.1 / (self.list.total(self.side)? / 1000.0))
    }

    /// The row of the table for scripts; what is to be minded of its factors, or why there are none.
    fn row(&self) -> Value {
        let Line { list, side, sweep, peak, factors } = self;
        let (factors, remark) = match factors {
            Ok(factors) => (Some(factors), factors.caveat.as_ref()),
            Err(why) => (None, Some(why).filter(|why| *why != BASE)),
        };
        context! {
            label => side.label, workload => sweep.workload, over => sweep.over, rate => sweep.rate, peak, factors, remark,
            currency => list.currency, basis => list.basis(), total => list.total(side), per_tb => list.per_tb(side),
            dates => distinct(list.for_platform(side).map(Price::date)).join(" "),
            per_1000 => self.per_1000(), capacity => capacity_tb(side),
        }
    }
}

impl Prices {
    /// Reads a price list.
    pub fn parse(text: &str) -> Result<Prices, PriceError> {
        let File { price: mut prices, mut licence } = toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|at| text.get(..at.start.min(text.len()))).unwrap_or_default();
            PriceError::Toml { line: before.matches('\n').count() + 1, message: e.message().to_owned() }
        })?;
        let of = |platform: &str| prices.iter().filter(|price| price.platform == platform).count();
        if let Some(twice) = prices.iter().find(|price| of(&price.platform) > 1) {
            return Err(PriceError::Twice(twice.platform.clone()));
        }
        if let Some(alone) = licence.iter().find(|price| of(&price.platform) == 0) {
            return Err(PriceError::OnlyLicence(alone.platform.clone()));
        }
        licence.iter_mut().for_each(|price| price.is_licence = true);
        prices.append(&mut licence);
        prices.iter().try_for_each(Price::check)?;
        match distinct(prices.iter().map(|price| price.currency.clone())).as_slice() {
            [] => Err(PriceError::Empty),
            [currency] => Ok(Prices { currency: currency.clone(), prices }),
            [one, other, ..] => Err(PriceError::Mixed(one.clone(), other.clone())),
        }
    }

    /// Refuses a list without a platform of `runs`.
    pub(crate) fn check(&self, runs: &[RunData]) -> Result<(), ReportError> {
        let parts = by_variant(runs);
        let sides = sides(parts.as_deref().unwrap_or(runs));
        if sides.iter().any(|side| self.for_platform(side).next().is_some()) {
            return Ok(());
        }
        let named = |names: Vec<&str>| names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        Err(ReportError::NoPrice {
            listed: named(distinct(self.prices.iter().map(|price| price.platform.as_str()))),
            platforms: named(sides.iter().map(|side| side.label.as_str()).collect()),
        })
    }

    /// The prices of `side`, by its name in the report, or else by that of its run.
    fn for_platform<'a>(&'a self, side: &'a PlatformRun<'_>) -> impl Iterator<Item = &'a Price> {
        let by_label = self.prices.iter().any(|price| price.platform == side.label);
        let name = if by_label { &side.label } else { &side.run.manifest.plan.platform };
        self.prices.iter().filter(move |price| price.platform == *name)
    }

    fn are_by_hour(&self) -> bool {
        self.prices.iter().all(|price| price.kind == PriceKind::PerHour)
    }

    /// `per hour` or `over three years`: what totals are of.
    fn basis(&self) -> &'static str {
        if self.are_by_hour() { "per hour" } else { "over three years" }
    }

    /// Part of a price in the total.
    fn share(&self, price: &Price) -> f64 {
        let is_hours = price.kind == PriceKind::PerHour && !self.are_by_hour();
        price.amount * if is_hours { HOURS } else { 1.0 }
    }

    fn total(&self, side: &PlatformRun<'_>) -> Option<f64> {
        self.for_platform(side).map(|price| self.share(price)).reduce(|a, b| a + b)
    }

    fn per_tb(&self, side: &PlatformRun<'_>) -> Option<f64> {
        Some(self.total(side)? / capacity_tb(side)?)
    }

    pub(crate) fn section(&self, sides: &[PlatformRun<'_>], comparisons: &[Comparison]) -> Section {
        let blocks = [self.table(sides), self.throughput(&self.lines(sides, comparisons))];
        let blocks = blocks.into_iter().filter_map(Block::table).collect();
        let names = distinct(self.prices.iter().map(|price| price.platform.as_str()));
        let known = |name: &&str| sides.iter().any(|side| self.for_platform(side).any(|price| price.platform == *name));
        let context = context! {
            currency => self.currency,
            by_hour => self.are_by_hour(),
            several => sides.len() > 1,
            hours => number(HOURS, 0),
            without => sides.iter().filter(|of| self.total(of).is_none()).map(|of| &of.label).collect::<Vec<_>>(),
            others => names.into_iter().filter(|name| !known(name)).collect::<Vec<_>>(),
        };
        Section::new("prices", "Throughput for the price", Block::explained(blocks, &prose("prices", context)))
    }

    fn table(&self, sides: &[PlatformRun<'_>]) -> Table {
        // A price, or the total.
        type Row<'a> = (&'a PlatformRun<'a>, Option<&'a Price>);
        let rows = sides.iter().flat_map(|of| self.for_platform(of).map(move |p| (of, Some(p))).chain([(of, None)]));
        let priced = |p: &Price| {
            context! {
                what => if p.is_licence { "licence" } else { "price" },
                paid => if p.kind == PriceKind::Once { "once" } else { "per hour" },
                amount => money(p.amount), date => p.date(), share => money(self.share(p)), covers => p.covers,
            }
        };
        let row = |(of, price): Row<'_>| {
            context! {
                label => of.label, p => price.map(priced), currency => self.currency, basis => self.basis(),
                total => self.total(of).map(money), per_tb => self.per_tb(of).map(money),
                capacity => capacity_tb(of).map(|tb| number(tb, 3)), no_price => NO_PRICE, no_capacity => NO_CAPACITY,
            }
        };
        let table = TableSpec::<Row<'_>>::new("facts", rows).columns("table of prices", row);
        table.caption("What the platforms cost").build()
    }

    fn throughput(&self, lines: &[Line<'_>]) -> Table {
        let several = distinct(lines.iter().map(|line| line.side.label.as_str())).len() > 1;
        let with_caveat = |of: &Factors, factor: &Factor| factor_cell(factor).noted(&of.caveat, "");
        let factor = |line: &Line<'_>, of: &dyn Fn(&Factors) -> Cell| match &line.factors {
            Ok(factors) => of(factors),
            Err(why) if why == BASE => BASE.into(),
            Err(why) => Cell::absent(why, &line.sweep.workload),
        };
        TableSpec::<&Line<'_>>::new("figures", lines)
            .text("Workload", |line| &line.sweep.workload)
            .once()
            .text("Platform", |line| &line.side.label)
            .number("Peak", "", |line| match line.sweep.peak() {
                Some(peak) => figure(&line.side.run.records, peak, line.sweep.rate).noted(kept_by(peak), ""),
                None => ABSENT.into(),
            })
            .text("", |line| unit(line.sweep.rate))
            .text("at", |line| line.peak.map_or(ABSENT.to_owned(), |(at, _)| place(&line.sweep.over, at)))
            .number(&format!("Per 1,000 {}", self.currency), self.basis(), |line| match line.per_1000() {
                // Three digits that count: a dear platform does not give 0.
                Some(rate) if rate < 0.1 => ratio(rate).into(),
                Some(rate) => whole(rate).into(),
                None if self.total(line.side).is_none() => Cell::absent(NO_PRICE, &line.side.label),
                None if is_given(line.sweep) => Cell::absent(GIVEN, &line.sweep.workload),
                None => Cell::absent("no valid test has a throughput", &line.sweep.workload),
            })
            .number("Throughput", "×", |line| factor(line, &|f| with_caveat(f, &f.throughput)))
            .when(several)
            .number("Price", "×", |line| factor(line, &|f| ratio(f.price).into()))
            .when(several)
            .number("Throughput for the price", "×", |line| factor(line, &|f| with_caveat(f, &f.for_price)))
            .when(several)
            .caption("Throughput at the peak for the price")
            .build()
    }

    pub(crate) fn listing(&self, runs: &[RunData], across_drivers: bool) -> Listing {
        let parts = by_variant(runs);
        let sides = sides(parts.as_deref().unwrap_or(runs));
        let across_drivers = across_drivers || sides.iter().any(|side| side.run.published.is_some());
        let lines = self.lines(&sides, &comparisons(&sides, across_drivers, false));
        Listing::new("prices", lines.iter().map(Line::row))
    }

    /// The workloads of all platforms, each platform's beside those of the others.
    fn lines<'a>(&'a self, sides: &'a [PlatformRun<'a>], comparisons: &[Comparison]) -> Vec<Line<'a>> {
        let line = |(side, sweep): (&'a PlatformRun<'a>, &'a Sweep)| Line {
            list: self,
            side,
            sweep,
            peak: sweep.peak().and_then(|peak| Some((peak.at, sweep.rate_at(peak)?.mean * scale(sweep.rate)))),
            factors: self.factors([&sides[0], side], sweep, comparisons),
        };
        let all = || sides.iter().flat_map(|side| side.sweeps.iter().map(move |sweep| (side, sweep)));
        let of = |code: String| all().filter(move |(_, sweep)| sweep.workload == code);
        swept(sides).into_iter().flat_map(of).map(line).collect()
    }

    /// Factors of `of` against the base, as they are compared: only equal work is.
    fn factors(
        &self,
        [base, of]: [&PlatformRun<'_>; 2],
        sweep: &Sweep,
        comparisons: &[Comparison],
    ) -> Result<Factors, String> {
        if is_given(sweep) {
            return Err(GIVEN.to_owned());
        }
        if base.label == of.label {
            return Err(BASE.to_owned());
        }
        let total = |side: &PlatformRun<'_>| {
            self.total(side).ok_or_else(|| format!("the price list has no [[price]] of '{}'", side.label))
        };
        let price = total(of)? / total(base)?;
        let is_of = |c: &&Comparison| {
            let (workload, over) = (c.workload == sweep.workload, c.over == sweep.over);
            workload && over && c.other == of.label && c.nodes.is_none_or(|nodes| nodes == sweep.nodes)
        };
        let mut found = comparisons.iter().filter(is_of);
        let one = found.next().ok_or("this report has no comparison of it with the first platform")?;
        if found.next().is_some() {
            return Err("it is compared more than once: see the factors between platforms".to_owned());
        }
        let peak = one.peak();
        if let Some(why) = one.refused.as_ref().or(peak.and_then(|peak| peak.refused.as_ref())) {
            return Err(format!("not compared: {why}"));
        }
        let peak = peak.ok_or("the peaks are not compared")?;
        let throughput = *peak.factor(sweep.rate).ok_or("the peaks have no factor of throughput")?;
        let mut for_price = throughput;
        for_price.factor.value /= price;
        for_price.factor.interval =
            for_price.factor.interval.map(|i| Interval { low: i.low / price, high: i.high / price });
        Ok(Factors { throughput, price, for_price, caveat: peak.caveat.clone() })
    }
}

/// Whether the load sets the throughput of `sweep`. A rate that was found for an objective is measured.
fn is_given(sweep: &Sweep) -> bool {
    sweep.load.waits() && sweep.load.objective.is_none()
}

/// Persistent memory, flash and disks as the user states them, TB (10¹² bytes); `None` if none is. What the machine shows are the devices
/// under one database, and not what is paid.
fn capacity_tb(side: &PlatformRun<'_>) -> Option<f64> {
    let facts = &side.run.manifest.plan.facts;
    let stated = CAPACITIES.iter().filter_map(|id| capacity_bytes(facts.get(*id)?).ok());
    stated.reduce(|a, b| a + b).map(|bytes| bytes / 1e12)
}

fn money(amount: f64) -> String {
    match amount {
        1000.0.. => number(amount, 0),
        1.0..1000.0 => number(amount, 2),
        _ => ratio(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of prices, or licences, in which a key has another value, or none.
    fn list(entries: &[(&str, &str)]) -> Result<Prices, PriceError> {
        let keys = [
            "platform = 'a'", "amount = 100", "currency = 'USD'", "date = 2021-06-01", "kind = 'once'",
            "covers = 'all'",
        ];
        let entry = |(what, change): &(&str, &str)| {
            let key = change.split(' ').next().unwrap_or_default();
            let kept = keys.iter().filter(|line| key.is_empty() || !line.starts_with(key)).copied();
            let lines: Vec<&str> = kept.chain([*change].into_iter().filter(|line| line.contains('='))).collect();
            format!("[[{what}]]\n{}\n", lines.join("\n"))
        };
        Prices::parse(&entries.iter().map(entry).collect::<String>())
    }

    #[test]
    fn what_is_no_price_is_refused_and_named() {
        let bad = [
            ("prize", "", "prize"),
            ("price", "date", "date of the price of 'a' is missing"),
            ("price", "amount = 0", "'a' is 0"),
            ("price", "amount = -5", "-5"),
            ("price", "amount = nan", "NaN"),
            ("price", "currency = 'dollars'", "'dollars'"),
            ("price", "date = 10:00:00", "10:00:00"),
            ("price", "date = 2021-02-30", "line 7"),
            ("price", "kind = 'monthly'", "per-hour"),
            ("price", "amount = 1e16", "1e15"),
            ("price", "covers = ' '", "covers"),
            ("price", "covers = \"a\\nb\"", "one line"),
            ("price", "tax = 1", "tax"),
        ];
        for (what, change, says) in bad {
            let e = list(&[(what, change)]).unwrap_err().to_string();
            assert!(e.contains(says), "{change}: {e}");
        }
        assert_eq!(Prices::parse(""), Err(PriceError::Empty));
        assert_eq!(list(&[("price", ""), ("price", "")]), Err(PriceError::Twice("a".to_owned())));
        let mixed = PriceError::Mixed("USD".to_owned(), "EUR".to_owned());
        assert_eq!(list(&[("price", ""), ("licence", "currency = 'EUR'")]), Err(mixed));
        assert_eq!(list(&[("price", ""), ("licence", "platform = 'b'")]), Err(PriceError::OnlyLicence("b".to_owned())));
    }
}
