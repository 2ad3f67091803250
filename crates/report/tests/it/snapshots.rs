//! Snapshots of whole reports of the fixture.

use crate::common::groups::all_groups;
use crate::common::{run, two_platforms, two_scans};
use loadline_report::{Format, Options, end_page, render, terminal_table};

fn text(format: Format) -> String {
    String::from_utf8(render(&two_platforms(), format, &Options::default()).unwrap()).unwrap()
}

#[test]
fn html() {
    insta::assert_snapshot!(text(Format::Html));
}

#[test]
fn markdown() {
    insta::assert_snapshot!(text(Format::Markdown));
}

#[test]
fn csv() {
    insta::assert_snapshot!(text(Format::Csv));
}

#[test]
fn plain_text() {
    insta::assert_snapshot!(text(Format::Text));
}

#[test]
fn terminal_at_80_columns() {
    insta::assert_snapshot!(terminal_table(&two_platforms()[1].records, Some(80)));
}

#[test]
fn terminal_at_200_columns() {
    insta::assert_snapshot!(terminal_table(&run("a", "run-a", 1.0).records, Some(200)));
}

#[test]
fn scans_as_plain_text() {
    insta::assert_snapshot!(
        String::from_utf8(render(&two_scans(), Format::Text, &Options::default()).unwrap()).unwrap()
    );
}

#[test]
fn scans_on_a_terminal() {
    insta::assert_snapshot!(terminal_table(&two_scans()[0].records, Some(100)));
}

fn of_all_groups(format: Format) -> String {
    let runs = [all_groups("disk", "run-disk", 1.0)];
    String::from_utf8(render(&runs, format, &Options::default()).unwrap()).unwrap()
}

#[test]
fn all_groups_html() {
    insta::assert_snapshot!(of_all_groups(Format::Html));
}

#[test]
fn all_groups_plain_text() {
    insta::assert_snapshot!(of_all_groups(Format::Text));
}

#[test]
fn the_page_that_a_run_ends_with() {
    let run = all_groups("disk", "run-disk", 1.0);
    insta::assert_snapshot!("page_at_120", end_page(&run, Some(120)));
    insta::assert_snapshot!("page_at_80", end_page(&run, Some(80)));
    insta::assert_snapshot!("page_of_the_log_writer", end_page(&two_platforms()[1], Some(120)));
}
