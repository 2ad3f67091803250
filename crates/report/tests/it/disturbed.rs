//! Disturbed tests: marked where their figures are read, with one sentence for each cause.

use loadline_model::disturbance::disturbed_by;
use loadline_model::{Check, CheckId, Outcome, TestRecord, column};
use loadline_report::{Format, RunData, end_page};

use crate::common::{run, section, text, words};

/// A run whose first tests have these figures: other processes on the CPU and steal, %.
fn disturbed(figures: &[[f64; 2]]) -> RunData {
    let mut run = run("disk", "run-disk", 1.0);
    for (record, [others, steal]) in run.records.iter_mut().zip(figures) {
        record.set(column::OTHER_CPU_PCT, *others);
        record.set(column::CPU_STEAL_PCT, *steal);
        record.disturbed_by = disturbed_by(record);
    }
    run
}

#[test]
fn each_cause_is_said_once_and_marked_at_each_test() {
    let quiet = disturbed(&[[4.9, 0.9], [0.0, 0.0]]);
    assert!(!end_page(&quiet, Some(100)).contains("disturbed"));
    let run = disturbed(&[[12.0, 0.0], [1.0, 0.0], [9.0, 8.0]]);
    insta::assert_snapshot!("disturbed", end_page(&run, Some(100)));
    let csv = text(std::slice::from_ref(&run), Format::Csv);
    assert!(csv.contains(",other processes on the CPU 9 %; CPU steal 8 %,"), "{csv}");
    let markdown = text(&[run], Format::Markdown);
    let said: Vec<&str> = markdown.lines().filter(|line| line.contains("disturbed:")).collect();
    insta::assert_snapshot!("disturbed_in_the_report", said.join("\n"));
}

#[test]
fn what_an_option_keeps_is_marked_at_each_figure_and_set_aside_beside_clean_tests() {
    let mut runs = [disturbed(&[[76.0, 0.0]; 6]), disturbed(&[])];
    "quiet".clone_into(&mut runs[1].manifest.plan.platform);
    runs[1].records.iter_mut().for_each(|r| "quiet".clone_into(&mut r.platform));
    let markdown = text(&runs, Format::Markdown);
    let titles = ["Key figures", "Load lines", "Factors between platforms"];
    insta::assert_snapshot!("kept_disturbed", titles.map(|title| section(&markdown, title)).join("\n## "));
    let page = text(&runs[..1], Format::Html);
    assert!(page.contains("<p class=\"verdict unwell\">"), "kept tests do not count as well");
    assert!(!text(&runs[1..], Format::Text).contains("kept by"));
    // A clean repetition is the figure; the disturbed one is shown beside it.
    let mut run = disturbed(&[[76.0, 0.0]]);
    let mut clean = TestRecord { repetition: 2, disturbed_by: None, ..run.records[0].clone() };
    run.records[0].test = 99;
    clean.set(column::OTHER_CPU_PCT, 0.0);
    run.records.push(clean);
    let kept = "test 99 is kept by --allow-disturbed: other processes on the CPU; not part of the mean";
    assert!(words(&end_page(&run, Some(120))).contains(kept));
}

#[test]
fn what_is_invalid_has_its_reason_and_of_many_the_worst_stands_for_all() {
    let failed = || Check::new(CheckId::OtherCpu, Outcome::Failed, "disturbed: other processes (most: x)");
    let mut run = disturbed(&[[50.0, 0.0], [70.0, 0.0], [9.0, 0.0]]);
    run.records[0].add_check(failed());
    insta::assert_snapshot!("one_invalid", end_page(&run, Some(100)));
    run.records[1].add_check(failed());
    insta::assert_snapshot!("two_invalid", end_page(&run, Some(100)));
}
