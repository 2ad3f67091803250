//! Snapshots of whole reports of the fixture.

use crate::common::*;
use loadline_report::{Format, end_page, example};

#[test]
fn html() {
    insta::assert_snapshot!(text(&two_platforms(), Format::Html));
}

#[test]
fn the_example_is_a_small_page_of_two_platforms() {
    let page = text(&example().unwrap(), Format::Html);
    assert!(page.len() < 800_000, "{}", page.len());
    for wanted in [
        "<div class=\"answer\"><h3>PostgreSQL 15</h3>",
        "commits/s",
        "MariaDB 10.11 against PostgreSQL 15",
        "class=\"wh\"",
    ] {
        let found = page.contains(wanted);
        // Each has one test: no interval.
        assert_eq!(found, wanted != "class=\"wh\"", "{wanted}");
    }
}

#[test]
fn markdown() {
    insta::assert_snapshot!(text(&two_platforms(), Format::Markdown));
}

#[test]
fn csv() {
    insta::assert_snapshot!(text(&two_platforms(), Format::Csv));
}

#[test]
fn plain_text() {
    insta::assert_snapshot!(text(&two_platforms(), Format::Text));
}

#[test]
fn scans_as_plain_text() {
    insta::assert_snapshot!(text(&two_scans(), Format::Text));
}

#[test]
fn all_groups_html() {
    insta::assert_snapshot!(text(&[all_groups("disk", "run-disk", 1.0)], Format::Html));
}

#[test]
fn all_groups_plain_text() {
    insta::assert_snapshot!(text(&[all_groups("disk", "run-disk", 1.0)], Format::Text));
}

#[test]
fn the_page_that_a_run_ends_with() {
    let run = all_groups("disk", "run-disk", 1.0);
    insta::assert_snapshot!("page_at_120", end_page(&run, Some(120)));
    insta::assert_snapshot!("page_at_80", end_page(&run, Some(80)));
    insta::assert_snapshot!("page_of_the_log_writer", end_page(&two_platforms()[1], Some(120)));
}
