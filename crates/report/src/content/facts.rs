//! The platforms side by side by the facts that tables of published studies state.

use loadline_model::facts::{FACTS, Fact, FactName, facts};

use crate::RunData;
use crate::doc::{Block, Section};
use crate::listing::{Listing, Named};
use crate::platform_run::sides;
use crate::spec::TableSpec;
use crate::templates::prose;

/// The section, if a fact of any platform is stated: what the machines show is said of the platforms in any case.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let is_stated = |run: &RunData| facts(&run.manifest).iter().any(|fact| fact.stated.is_some());
    if !runs.iter().any(is_stated) {
        return Section::default();
    }
    let columns: Vec<(String, Vec<Fact>)> = of_platforms(runs);
    let words = |known: &[Fact], name: &FactName| known.iter().find(|fact| fact.id == name.id).map(Fact::words);
    let is_known = |name: &&FactName| columns.iter().any(|(_, known)| words(known, name).is_some());
    let mut table =
        TableSpec::<&FactName>::new("facts manifest", FACTS.iter().filter(is_known)).text("", |name| name.title);
    for (label, known) in &columns {
        table = table.text(label, move |name| words(known, name));
    }
    let blocks = Block::table(table.build()).into_iter().collect();
    Section::new("facts", "Facts of the platforms", Block::explained(blocks, &prose("stated-facts", ())))
}

fn of_platforms(runs: &[RunData]) -> Vec<(String, Vec<Fact>)> {
    sides(runs).into_iter().map(|side| (side.label, facts(&side.run.manifest))).collect()
}

/// A row for each fact of each platform.
pub(crate) fn listing(runs: &[RunData]) -> Listing {
    let all = of_platforms(runs);
    let rows: Vec<(&str, &Fact)> =
        all.iter().flat_map(|(label, known)| known.iter().map(move |fact| (label.as_str(), fact))).collect();
    let columns: [Named<(&str, &Fact)>; 5] = [
        ("platform", |(label, _)| (*label).into()),
        ("fact", |(_, fact)| fact.id.into()),
        ("title", |(_, fact)| fact.title.into()),
        ("stated", |(_, fact)| fact.stated.clone().into()),
        ("found", |(_, fact)| fact.found.clone().into()),
    ];
    Listing::new(&columns, &rows)
}
