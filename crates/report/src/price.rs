//! Prices of the platforms: a price list, and throughput for the price. A total is of three years, or of an hour if all prices are by the hour.

use loadline_analyze::stats::Interval;
use loadline_analyze::{Comparison, Factor, Sweep};
use loadline_model::facts::capacity_bytes;
use loadline_model::format::{ABSENT, number, whole};

use minijinja::context;
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    #[serde(default)]
    price: Vec<Price>,
    #[serde(default)]
    licence: Vec<Price>,
}

/// A workload on a platform.
type Line<'a> = (&'a PlatformRun<'a>, &'a Sweep);

/// Factors of a line against the first platform.
#[derive(Serialize)]
struct Factors {
    throughput: Factor,
    price: f64,
    /// Throughput for the price. A price has no interval: that of throughput is divided as the factor is.
    for_price: Factor,
    caveat: Option<String>,
}

impl Prices {
    /// Reads a price list.
    pub fn parse(text: &str) -> Result<Prices, PriceError> {
        let prices: Prices = toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|at| text.get(..at.start.min(text.len()))).unwrap_or_default();
            PriceError::Toml { line: before.matches('\n').count() + 1, message: e.message().to_owned() }
        })?;
        let of = |platform: &str| prices.price.iter().filter(|price| price.platform == platform).count();
        if let Some(twice) = prices.price.iter().find(|price| of(&price.platform) > 1) {
            return Err(PriceError::Twice(twice.platform.clone()));
        }
        if let Some(alone) = prices.licence.iter().find(|price| of(&price.platform) == 0) {
            return Err(PriceError::OnlyLicence(alone.platform.clone()));
        }
        prices.all().try_for_each(|(_, price)| price.check())?;
        match distinct(prices.all().map(|(_, price)| price.currency.clone())).as_slice() {
            [] => Err(PriceError::Empty),
            [_] => Ok(prices),
            [one, other, ..] => Err(PriceError::Mixed(one.clone(), other.clone())),
        }
    }

    /// All prices, then all licences, each with the word for it.
    fn all(&self) -> impl Iterator<Item = (&'static str, &Price)> {
        let licences = self.licence.iter().map(|licence| ("licence", licence));
        self.price.iter().map(|price| ("price", price)).chain(licences)
    }

    fn currency(&self) -> &str {
        self.price.first().map_or("", |price| &price.currency)
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
            listed: named(self.price.iter().map(|price| price.platform.as_str()).collect()),
            platforms: named(sides.iter().map(|side| side.label.as_str()).collect()),
        })
    }

    /// The prices and licences of `side`, by its name in the report, or else by that of its run.
    fn for_platform<'a>(&'a self, side: &'a PlatformRun<'_>) -> impl Iterator<Item = (&'static str, &'a Price)> {
        let by_label = self.price.iter().any(|price| price.platform == side.label);
        let name = if by_label { &side.label } else { &side.run.manifest.plan.platform };
        self.all().filter(move |(_, price)| price.platform == *name)
    }

    fn are_by_hour(&self) -> bool {
        self.all().all(|(_, price)| price.kind == PriceKind::PerHour)
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
        self.for_platform(side).map(|(_, price)| self.share(price)).reduce(|a, b| a + b)
    }

    fn per_tb(&self, side: &PlatformRun<'_>) -> Option<f64> {
        Some(self.total(side)? / capacity_tb(side)?)
    }

    /// Throughput at the peak per 1,000 of the currency, or why it is unknown, and of what.
    fn per_1000<'a>(&self, (side, sweep): Line<'a>) -> Result<f64, (&'static str, &'a str)> {
        let total = self.total(side).ok_or((NO_PRICE, side.label.as_str()))?;
        if is_given(sweep) {
            return Err((GIVEN, &sweep.workload));
        }
        let (_, rate) = peak(sweep).ok_or(("no valid test has a throughput", sweep.workload.as_str()))?;
        Ok(rate / (total / 1000.0))
    }

    pub(crate) fn section(&self, sides: &[PlatformRun<'_>], comparisons: &[Comparison]) -> Section {
        let blocks = [self.table(sides), self.throughput(sides, comparisons)];
        let blocks = blocks.into_iter().filter_map(Block::table).collect();
        let names = self.price.iter().map(|price| price.platform.as_str());
        let known = |name: &str| sides.iter().any(|side| self.for_platform(side).any(|(_, of)| of.platform == name));
        let context = context! {
            currency => self.currency(),
            by_hour => self.are_by_hour(),
            several => sides.len() > 1,
            hours => number(HOURS, 0),
            without => sides.iter().filter(|of| self.total(of).is_none()).map(|of| &of.label).collect::<Vec<_>>(),
            others => names.filter(|name| !known(name)).collect::<Vec<_>>(),
        };
        Section::new("prices", "Throughput for the price", Block::explained(blocks, &prose("prices", context)))
    }

    /// Costs of the platforms: a row for each price, and the total.
    fn table(&self, sides: &[PlatformRun<'_>]) -> Table {
        let of_side = |of| self.for_platform(of).map(move |priced| (of, Some(priced))).chain([(of, None)]);
        let priced = |(what, p): (&str, &Price)| {
            context! {
                what, paid => if p.kind == PriceKind::Once { "once" } else { "per hour" },
                amount => money(p.amount), date => p.date(), share => money(self.share(p)), covers => p.covers,
            }
        };
        let table = TableSpec::new("facts", sides.iter().flat_map(of_side)).columns("table of prices", |(of, price)| {
            context! {
                label => of.label, p => price.map(priced), currency => self.currency(), basis => self.basis(),
                total => self.total(of).map(money), per_tb => self.per_tb(of).map(money),
                capacity => capacity_tb(of).map(|tb| number(tb, 3)), no_price => NO_PRICE, no_capacity => NO_CAPACITY,
            }
        });
        table.caption("What the platforms cost").build()
    }

    fn throughput(&self, sides: &[PlatformRun<'_>], comparisons: &[Comparison]) -> Table {
        type Found<'a> = (Line<'a>, Result<Option<Factors>, String>);
        let found = |line| (line, self.factors(&sides[0], line, comparisons));
        let lines: Vec<Found<'_>> = lines(sides).into_iter().map(found).collect();
        let several = distinct(lines.iter().map(|((side, _), _)| side.label.as_str())).len() > 1;
        let with_caveat = |of: &Factors, factor: &Factor| factor_cell(factor).noted(&of.caveat, "");
        let factor = |((_, sweep), found): &Found<'_>, of: &dyn Fn(&Factors) -> Cell| match found {
            Ok(None) => "base".into(),
            Ok(Some(factors)) => of(factors),
            Err(why) => Cell::absent(why, &sweep.workload),
        };
        TableSpec::<&Found<'_>>::new("figures", &lines)
            .text("Workload", |((_, sweep), _)| &sweep.workload)
            .once()
            .text("Platform", |((side, _), _)| &side.label)
            .number("Peak", "", |((side, sweep), _)| match sweep.peak() {
                Some(peak) => figure(&side.run.records, peak, sweep.rate).noted(kept_by(peak), ""),
                None => ABSENT.into(),
            })
            .text("", |((_, sweep), _)| unit(sweep.rate))
            .text("at", |((_, sweep), _)| peak(sweep).map(|(at, _)| place(&sweep.over, at)))
            .number(&format!("Per 1,000 {}", self.currency()), self.basis(), |(line, _)| match self.per_1000(*line) {
                // Three digits that count: a dear platform does not give 0.
                Ok(rate) => Cell::from(if rate < 0.1 { ratio(rate) } else { whole(rate) }),
                Err((why, of)) => Cell::absent(why, of),
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
        let comparisons = comparisons(&sides, across_drivers, false);
        let row = |(side, sweep): Line<'_>| {
            let found = self.factors(&sides[0], (side, sweep), &comparisons);
            let (factors, why) = found.map_or_else(|why| (None, Some(why)), |factors| (factors, None));
            let caveat = factors.as_ref().and_then(|factors| factors.caveat.clone());
            context! {
                label => side.label, workload => sweep.workload, over => sweep.over, rate => sweep.rate,
                currency => self.currency(), basis => self.basis(), total => self.total(side), per_tb => self.per_tb(side),
                dates => distinct(self.for_platform(side).map(|(_, price)| price.date())).join(" "),
                peak => peak(sweep), per_1000 => self.per_1000((side, sweep)).ok(), capacity => capacity_tb(side),
                factors, remark => why.or(caveat),
            }
        };
        Listing::new("prices", lines(&sides).into_iter().map(row))
    }

    /// Factors of a line against the platform `base`, as they are compared: only equal work is. `None` of the base itself.
    fn factors(
        &self,
        base: &PlatformRun<'_>,
        (of, sweep): Line<'_>,
        comparisons: &[Comparison],
    ) -> Result<Option<Factors>, String> {
        if is_given(sweep) {
            return Err(GIVEN.to_owned());
        }
        if of.label == base.label {
            return Ok(None);
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
        Ok(Some(Factors { throughput, price, for_price, caveat: peak.caveat.clone() }))
    }
}

/// The workloads of all platforms, each platform's beside those of the others.
fn lines<'a>(sides: &'a [PlatformRun<'a>]) -> Vec<Line<'a>> {
    let all = || sides.iter().flat_map(|side| side.sweeps.iter().map(move |sweep| (side, sweep)));
    let of = |code: String| all().filter(move |(_, sweep)| sweep.workload == code);
    swept(sides).into_iter().flat_map(of).collect()
}

/// Jobs or swept value of the peak, and the rate there as its column shows it.
fn peak(sweep: &Sweep) -> Option<(u32, f64)> {
    let peak = sweep.peak()?;
    Some((peak.at, sweep.rate_at(peak)?.mean * scale(sweep.rate)))
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

    const ONE: &str =
        "[[price]]\nplatform = 'a'\namount = 100\ncurrency = 'USD'\ndate = 2021-06-01\nkind = 'once'\ncovers = 'all'\n";

    #[test]
    fn what_is_no_price_is_refused_and_named() {
        let bad = [
            ("price]]", "prize]]", "prize"),
            ("date = 2021-06-01\n", "", "date of the price of 'a' is missing"),
            ("100", "0", "'a' is 0"),
            ("100", "-5", "-5"),
            ("100", "nan", "NaN"),
            ("100", "1e16", "1e15"),
            ("USD", "dollars", "'dollars'"),
            ("2021-06-01", "10:00:00", "10:00:00"),
            ("2021-06-01", "2021-02-30", "line 5"),
            ("once", "monthly", "per-hour"),
            ("'all'", "' '", "covers"),
            ("'all'", "\"a\\nb\"", "one line"),
            ("'all'", "'all'\ntax = 1", "tax"),
        ];
        for (text, other, says) in bad {
            let e = Prices::parse(&ONE.replace(text, other)).unwrap_err().to_string();
            assert!(e.contains(says), "{other}: {e}");
        }
        let beside = |more: &str| Prices::parse(&format!("{ONE}{more}"));
        let licence = ONE.replace("price]]", "licence]]");
        assert_eq!(Prices::parse(""), Err(PriceError::Empty));
        assert_eq!(beside(ONE), Err(PriceError::Twice("a".to_owned())));
        let mixed = PriceError::Mixed("USD".to_owned(), "EUR".to_owned());
        assert_eq!(beside(&licence.replace("USD", "EUR")), Err(mixed));
        assert_eq!(beside(&licence.replace("'a'", "'b'")), Err(PriceError::OnlyLicence("b".to_owned())));
    }
}
