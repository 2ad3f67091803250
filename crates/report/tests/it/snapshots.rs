//! Snapshots of whole reports of the fixture.

use crate::common::*;
use loadline_report::{Format, end_page, example};

#[test]
fn whole_reports() {
    let all = [all_groups("disk", "run-disk", 1.0)];
    for (name, runs, format) in [
        ("html", &two_platforms()[..], Format::Html),
        ("markdown", &two_platforms(), Format::Markdown),
        ("csv", &two_platforms(), Format::Csv),
        ("plain_text", &two_platforms(), Format::Text),
        ("scans_as_plain_text", &two_scans(), Format::Text),
        ("all_groups_html", &all, Format::Html),
        ("all_groups_plain_text", &all, Format::Text),
    ] {
        insta::assert_snapshot!(name, text(runs, format));
    }
    insta::assert_snapshot!("page_at_120", end_page(&all[0], Some(120)));
    insta::assert_snapshot!("page_at_80", end_page(&all[0], Some(80)));
    insta::assert_snapshot!("page_of_the_log_writer", end_page(&two_platforms()[1], Some(120)));
}

#[test]
fn the_example_is_a_small_page_of_two_platforms() {
    let page = text(&example().unwrap(), Format::Html);
    assert!(page.len() < 800_000, "{}", page.len());
    // Each has one test: no interval.
    let wanted = ["<h3>PostgreSQL 15</h3>", "commits/s", "MariaDB 10.11 against PostgreSQL 15", "!class=\"wh\""];
    assert_says(&page, &wanted);
    assert_says(&page, &["<div class=\"answer\"><h3>PostgreSQL 15</h3>"]);
}
