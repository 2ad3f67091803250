//! Common parts of the analytic workloads: queries on the data set with much work and few result rows.
//!
//! Each query has a random constant below [`DAYS`], so practically no query is repeated and no result can be cached. It
//! returns a few rows that need all the work.

use loadline_model::{Capability, column};

use crate::data::{FACT, fact_groups, fact_rows};
use crate::named_for::{Component, NamedFor};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::Table;
use crate::workload::{Kpi, Volume, Workload};

/// Common fields.
pub(super) const BASE: Workload = Workload {
    group: "data-analytics",
    named_for: NamedFor { components: &[Component::Cpu], doing: "analytic queries on cached data", instead: &[] },
    spoiled_by: "Different memory settings for sorts, hashes and temporary tables on the compared platforms (they are in the manifest). A data set that does not fit the cache when the CPU is to be measured, or fits it when storage is. Other work on the CPUs. A window in which few queries complete says little; it is made longer if a query takes more than half of it.",
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows of the fact table" },
        Kpi { column: column::DATA_MIB_PER_S, title: "data" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of a query" },
    ],
    tables: &[FACT],
    needs: &[Capability::Rows, Capability::ReadRows],
    volume: Some(|params| volume(params, 1)),
    ..Workload::BASE
};

/// Tables of the star join.
pub(super) const STAR: &[Table] = &[FACT, crate::data::CUSTOMER, crate::data::PRODUCT];

/// `passes` passes over the fact table.
pub(super) fn volume(params: &Params, passes: u32) -> Volume {
    let (rows, share) = (fact_rows(params) as f64 * f64::from(passes), f64::from(passes));
    Volume { rows, tables: &["fact"], share, ..Volume::default() }
}

/// Number of values that are lower than all days.
pub(super) const DAYS: u64 = 1_000_000_000;

/// A random number lower than all days: a filter on it passes every row but makes each query different. No other
/// variable of these workloads has this salt.
pub(super) const EVERY_DAY: Step =
    Step::bind("from", Generator::Uniform { from: -(DAYS as i64), range: DAYS, salt: 9 });

/// A transaction that does `binds`, then executes all `statements`, each with its number of result rows.
pub(super) fn program(binds: &[Step], statements: &[(&str, u64)]) -> Program {
    let mut body = vec![Step::bind("seq", Generator::Sequence)];
    body.extend_from_slice(binds);
    body.extend((0..statements.len()).map(|statement| Step::Execute { statement }));
    let statements = statements.iter().map(|(sql, rows)| Statement::fixed(sql, Effect::Read(*rows))).collect();
    Program { statements, body, commit: Commit::Wait }
}

/// Number of groups.
pub(super) const GROUPS_PARAM: Param = Param {
    name: "groups",
    default: 10_000,
    min: 10,
    max: 1_000_000,
    meaning: "distinct values of the grouping column",
};

/// Values of the parameter `groups`.
pub(super) const GROUPS: &[i64] = &[10, 10_000, 1_000_000];

/// The column of the fact table with the number of values that the parameter `groups` asks for.
pub(crate) fn group_column(params: &Params) -> &'static str {
    match params.get("groups") {
        ..=10 => "g10",
        11..=10_000 => "g10k",
        _ => "g1m",
    }
}

/// Groups the fact table by `groups` values and keeps the ten largest sums.
pub(super) fn aggregation(params: &Params) -> Program {
    let by = group_column(params);
    let sql = format!(
        "SELECT {by}, COUNT(*) AS n, SUM(amount) AS total FROM {{fact}} WHERE day >= :from GROUP BY {by} \
         ORDER BY total DESC, {by} {{first 10}}"
    );
    program(&[EVERY_DAY], &[(&sql, 10)])
}

/// Its volume.
pub(super) fn aggregation_volume(params: &Params) -> Volume {
    Volume { groups: fact_groups(group_column(params), params) as f64, ..volume(params, 1) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_query_is_asked_twice() {
        for code in ["DA-SCAN", "DA-AGG", "DA-JOIN", "DA-SORT", "DA-WINDOW", "DA-PARALLEL"] {
            let w = crate::find(code).unwrap();
            let program = (w.program)(&w.params(&BTreeMap::new()).unwrap());
            assert!(program.statements.iter().all(|s| s.template.vars().any(|v| v == "from")), "{code}");
            assert!(program.body.contains(&EVERY_DAY), "{code}");
            let salt = |step: &Step| match step {
                Step::Bind { generator: Generator::Uniform { salt, .. }, .. } => Some(*salt),
                _ => None,
            };
            let salts: Vec<u32> = program.body.iter().filter_map(salt).collect();
            let different: std::collections::BTreeSet<_> = salts.iter().collect();
            assert_eq!(different.len(), salts.len(), "{code}: its variables follow from each other");
        }
    }

    #[test]
    fn groups_are_those_that_there_are() {
        let w = crate::find("DA-AGG").unwrap();
        let given = |groups: i64| w.params(&BTreeMap::from([("groups".to_owned(), groups)]));
        for (groups, column) in [(10, "g10"), (10_000, "g10k"), (1_000_000, "g1m")] {
            let params = given(groups).unwrap();
            assert_eq!(group_column(&params), column);
            // n rows thrown into k groups leave k·e^(−n/k) of them empty.
            let (n, k) = (fact_rows(&params) as f64, groups as f64);
            let (counted, by_chance) = (aggregation_volume(&params).groups, k * (1.0 - (-n / k).exp()));
            assert!((counted / by_chance - 1.0).abs() < 0.01, "{groups}: {counted} and {by_chance}");
        }
        let e = given(500).unwrap_err().to_string();
        assert!(e.contains("'groups'") && e.contains("500") && e.contains("10, 10000, 1000000"), "{e}");
        assert!(given(9).is_err());
    }
}
