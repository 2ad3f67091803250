//! Disturbed tests: marked where their figures are read, with one sentence for each cause.

use loadline_model::disturbance::disturbed_by;
use loadline_model::{Check, CheckId, Outcome, column};
use loadline_report::{Format, RunData, end_page};

use crate::common::{run, text, words};

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
fn a_quiet_run_says_nothing_of_it() {
    let run = disturbed(&[[4.9, 0.9], [0.0, 0.0]]);
    let page = words(&end_page(&run, Some(100)));
    assert!(!page.contains("disturbed"), "{page}");
    assert!(!text(std::slice::from_ref(&run), Format::Markdown).contains("disturbed:"));
}

#[test]
fn each_cause_is_said_once_and_marked_at_each_test() {
    let run = disturbed(&[[12.0, 0.0], [1.0, 0.0], [9.0, 8.0]]);
    let numbers: Vec<u32> = run.records.iter().map(|r| r.test).collect();
    let others = format!("Tests {}, {} were disturbed: other processes on the CPU 9 to 12 %.", numbers[0], numbers[2]);
    let stolen = format!("Test {} was disturbed: CPU steal 8 %.", numbers[2]);
    let page = words(&end_page(&run, Some(100)));
    for sentence in [&others, &stolen] {
        assert_eq!(page.matches(sentence.as_str()).count(), 1, "{page}");
    }
    let markdown = text(std::slice::from_ref(&run), Format::Markdown);
    let remark = format!("Test {} was disturbed: other processes on the CPU 9 %; CPU steal 8 %.", numbers[2]);
    assert!(markdown.contains(&remark) && markdown.contains(&others) && markdown.contains(&stolen), "{markdown}");
    assert!(text(std::slice::from_ref(&run), Format::Html).contains(&remark));
    let csv = text(std::slice::from_ref(&run), Format::Csv);
    assert!(csv.contains(",other processes on the CPU 9 %; CPU steal 8 %,"), "{csv}");
    assert!(!page.contains("--allow-disturbed"), "{page}");
}

#[test]
fn what_an_option_keeps_is_marked_at_each_figure_and_set_aside_beside_clean_tests() {
    let kept = "kept by --allow-disturbed: other processes on the CPU";
    let mut runs = [disturbed(&[[76.0, 0.0]; 6]), disturbed(&[])];
    "quiet".clone_into(&mut runs[1].manifest.plan.platform);
    runs[1].records.iter_mut().for_each(|r| "quiet".clone_into(&mut r.platform));
    let all = text(&runs, Format::Text);
    assert!(
        words(&all).contains("12 tests, all valid; 6 of the valid ones are kept only by --allow-disturbed."),
        "{all}"
    );
    assert!(words(&all).contains("76 % (kept by --allow-disturbed)."), "{all}");
    for title in ["Key figures\n", "Load lines\n", "Factors between platforms\n"] {
        let section = all.split(title).nth(1).unwrap().split("\n==").next().unwrap();
        assert!(section.contains(kept), "{title}: {section}");
    }
    assert!(words(&all).contains("by --allow-cached, --allow-disturbed or --force are marked"), "{all}");
    let page = text(&runs[..1], Format::Html);
    assert!(page.contains("6 tests, all valid; the valid ones are kept only by --allow-disturbed."));
    assert!(page.contains("<p class=\"verdict unwell\">"), "kept tests do not count as well");
    assert!(!text(&runs[1..], Format::Text).contains("kept by"));

    // A clean repetition is the figure; the disturbed one is shown beside it.
    let mut run = disturbed(&[[76.0, 0.0]]);
    let clean = run.records[0].clone();
    run.records[0].test = 99;
    let mut clean = loadline_model::TestRecord { repetition: 2, disturbed_by: None, ..clean };
    clean.set(column::OTHER_CPU_PCT, 0.0);
    run.records.push(clean);
    let page = words(&end_page(&run, Some(120)));
    assert!(page.contains(&format!("test 99 is {kept}; not part of the mean")), "{page}");
}

#[test]
fn what_an_option_keeps_says_so_and_what_is_invalid_has_its_reason() {
    let mut run = disturbed(&[[50.0, 0.0]]);
    assert!(words(&end_page(&run, Some(100))).contains("on the CPU 50 % (kept by --allow-disturbed)."));
    let failed = || Check::new(CheckId::OtherCpu, Outcome::Failed, "disturbed: other processes (most: x)");
    run.records[0].add_check(failed());
    let number = |run: &RunData, index: usize| run.records[index].test;
    let page = words(&end_page(&run, Some(100)));
    let said = format!("Test {} was disturbed: other processes (most: x).", number(&run, 0));
    assert!(page.contains(&said) && page.contains("invalid: disturbed: other processes on the CPU"), "{page}");
    // Its remark is the reason alone; the sentence for the cause is in what to mind and among the notes.
    let markdown = text(std::slice::from_ref(&run), Format::Markdown);
    assert_eq!(markdown.matches("was disturbed: other processes").count(), 2, "{markdown}");

    // Of many, the worst stands for all.
    let mut run = disturbed(&[[50.0, 0.0], [70.0, 0.0], [9.0, 0.0]]);
    run.records.iter_mut().take(2).for_each(|r| r.add_check(failed()));
    let page = words(&end_page(&run, Some(100)));
    let worst = format!("2 of them are invalid, most of all test {}: other processes (most: x).", number(&run, 1));
    assert!(page.contains(&worst) && page.matches("(most: x)").count() == 1, "{page}");
}
