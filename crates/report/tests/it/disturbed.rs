//! Disturbed tests: marked where their figures are read, with one sentence for each cause.

use loadline_model::disturbance::disturbed_by;
use loadline_model::{CheckId, TestRecord, column};
use loadline_report::{Format, RunData, end_page};

use crate::common::*;

/// A run whose first tests have these figures: other processes on the CPU, with their check, and steal, %.
fn disturbed(figures: &[[f64; 2]]) -> RunData {
    let mut run = run("disk", "run-disk", 1.0);
    for (record, [others, steal]) in run.records.iter_mut().zip(figures) {
        record.set(column::OTHER_CPU_PCT, *others);
        record.set(column::CPU_STEAL_PCT, *steal);
        record.disturbed_by = disturbed_by(record);
        if *others >= 20.0 {
            record.add_check(failed(CheckId::OtherCpu, &format!("x {others}")));
        }
    }
    run
}

#[test]
fn each_cause_is_said_once_and_marked_at_each_test() {
    assert_says(&end(&disturbed(&[[4.9, 0.9], [0.0, 0.0]])), &["!Noticed at"]);
    let run = disturbed(&[[12.0, 0.0], [1.0, 0.0], [9.0, 8.0]]);
    insta::assert_snapshot!("disturbed", end_page(&run, Some(100)));
    let csv = text(std::slice::from_ref(&run), Format::Csv);
    assert_says(&csv, &[",other processes on the CPU 9 %; CPU steal 8 %,"]);
    let markdown = text(&[run], Format::Markdown);
    let said: Vec<&str> = markdown.lines().filter(|line| line.contains("Noticed at")).collect();
    insta::assert_snapshot!("disturbed_in_the_report", said.join("\n"));
}

#[test]
fn figures_of_disturbed_tests_are_marked_and_set_aside_beside_clean_tests() {
    let marked = "disturbed: other processes on the CPU; throughput without the disturbance was at most 317 % higher";
    let mut runs = [disturbed(&[[76.0, 0.0]; 6]), disturbed(&[])];
    "quiet".clone_into(&mut runs[1].manifest.plan.platform);
    runs[1].records.iter_mut().for_each(|r| "quiet".clone_into(&mut r.platform));
    let all = text(&runs, Format::Text);
    assert_says(&words(&all), &["12 tests: 6 valid, 6 disturbed."]);
    for title in ["Key figures\n", "Load lines\n", "Factors between platforms\n"] {
        assert_says(&words(all.split(title).nth(1).unwrap().split("\n==").next().unwrap()), &[marked]);
    }
    // Disturbed tests do not count as well.
    let wanted = ["6 tests: 0 valid, 6 disturbed.", "!class=\"cross\"", "<p class=\"verdict unwell\">"];
    assert_says(&text(&runs[..1], Format::Html), &wanted);
    assert_says(&text(&runs[1..], Format::Text), &["!at most 317 %"]);

    // A clean repetition is the figure; the disturbed one is shown beside it.
    let mut run = disturbed(&[[76.0, 0.0]]);
    run.records[0].test = 99;
    run.records.push(TestRecord { repetition: 2, ..disturbed(&[]).records.remove(0) });
    assert_says(&end(&run), &[&format!("test 99 is {marked}; not part of the mean")]);
}

#[test]
fn a_sweep_that_rises_up_to_tests_that_do_not_count_says_which_and_why() {
    let mut run = disturbed(&[[0.0, 0.0], [0.0, 0.0], [76.0, 0.0]]);
    let more = |jobs: u32| TestRecord { jobs, test: 10 + jobs, ..run.records[2].clone() };
    run.records.extend([more(8), more(16)]);
    run.records[7].add_check(failed(CheckId::Errors, "errors"));
    let below = "whose tests count: LGWR-LAT1 (disturbed at 4, 8 jobs; refused at 16 jobs).";
    let markdown = text(&[run], Format::Markdown);
    let all = "Still rising at the most jobs measured: LGWR-THR.";
    assert_says(&words(&markdown), &[below, all, "still rising at 2 jobs (+80.0 % over 1); disturbed at 4, 8 jobs;"]);
}

#[test]
fn the_worst_of_disturbed_tests_stands_for_all_and_a_refused_one_is_in_no_figure() {
    let said = "Noticed at test 1: other processes on the CPU 50 %. That is too much for a valid test: x 50.";
    assert_says(&end(&disturbed(&[[50.0, 0.0]])), &[said]);
    let mut run = disturbed(&[[50.0, 0.0], [70.0, 0.0], [9.0, 0.0]]);
    assert_says(&end(&run), &["2 of them had too much for a valid test, most of all test 2: x 70."]);
    run.records[1].add_check(failed(CheckId::Errors, "errors"));
    let runs = [run];
    assert_says(&text(&runs, Format::Html), &["1 disturbed, 1 refused.", "is refused: x 70; errors"]);
    let validity = |n: usize| json(&runs)["runs"][0]["tests"][n]["validity"].as_str().unwrap().to_owned();
    assert_eq!([0, 1, 2].map(validity), ["disturbed", "refused", "valid"]);
}

#[test]
fn charts_of_waits_leave_disturbed_tests_out_beside_valid_ones() {
    let chart = |run: &RunData| {
        let html = text(std::slice::from_ref(run), Format::Html);
        let of_waits = html.split("<svg").find(|svg| svg.contains("LGWR-LAT1: what sessions did\""));
        of_waits.unwrap().split("</svg>").next().unwrap().to_owned()
    };
    let mut run = disturbed(&[]);
    let before = chart(&run);
    let mut more = TestRecord { test: 99, repetition: 2, ..run.records[0].clone() };
    more.waits.sessions.values_mut().for_each(|n| *n *= 9);
    more.add_check(failed(CheckId::OtherCpu, "busy"));
    run.records.push(more);
    assert_eq!(chart(&run), before);
}
