//! One section per component group: charts, wait histograms and test tables of its workloads.

use loadline_model::Column;
use loadline_model::column::TABLES;
use minijinja::context;

use super::tables::Hidden;
use super::{charts, tables, waits};
use crate::doc::{Block, Section};
use crate::platform_run::{PlatformRun, group_title, groups, workloads_of};
use crate::templates::prose;

/// The sections; test tables have the columns `chosen`, or the group's by default.
pub(crate) fn sections(sides: &[PlatformRun<'_>], chosen: Option<&[&'static Column]>) -> Vec<Section> {
    groups(sides.iter()).iter().map(|group| section(sides, group, chosen)).collect()
}

fn section(sides: &[PlatformRun<'_>], group: &str, chosen: Option<&[&'static Column]>) -> Section {
    let mut blocks = Vec::new();
    let mut hidden = Hidden::default();
    // When printed, a workload starts a new page if its tables do not fit on the current one.
    let (mut on_page, mut charted, mut timed) = (0, false, false);
    for workload in workloads_of(sides, group) {
        let mut of_tests = tables::of_workload(sides, &workload, chosen, &mut hidden);
        let page = on_page > 0 && on_page + of_tests.len() > 2;
        on_page = if page { of_tests.len() } else { on_page + of_tests.len() };
        blocks.push(Block::Heading { text: workload.clone(), page });
        for side in sides {
            let notes = side.run.notes.get(&workload);
            blocks.extend(notes.map(|markdown| Block::Notes { markdown: markdown.clone() }));
        }
        let charts = charts::of_workload(sides, &workload);
        charted |= charts.is_some();
        blocks.extend(charts);
        blocks.extend(charts::spread_and_waits(sides, &workload));
        blocks.append(&mut of_tests);
        let mut histograms = waits::of_workload(sides, group, &workload);
        timed |= !histograms.is_empty();
        blocks.append(&mut histograms);
    }
    blocks.extend(hidden.block());
    if charted {
        blocks.push(Block::Legend {
            text: prose("charts", context! { pages => sides.iter().any(|side| !side.run.pages.is_empty()) }),
        });
    }
    if timed {
        blocks.push(Block::para(prose("waits", ())));
    }
    let id = TABLES.iter().find(|t| t.group == group).map_or("other", |t| t.group);
    Section { group: true, ..Section::of(id, group_title(group), blocks) }
}
