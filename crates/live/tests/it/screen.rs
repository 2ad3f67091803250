//! The picture on a terminal.

use loadline_live::Picture;
use loadline_live::now::Now;
use loadline_live::screen::draw;
use loadline_model::live::{LiveEvent, LiveLine};
use loadline_model::manifest::RunState;
use loadline_report::render_live;
use proptest::prelude::*;

use crate::common::{begun, manifest, now, record, second};

fn picture(now: &Now, width: usize, height: usize) -> Picture {
    draw(now, "2026-11-20-161530-postgres", 21.0, width, height)
}

/// The rows of a picture, each in quotes, which shows the blanks at its end.
fn text(now: &Now, width: usize, height: usize) -> String {
    picture(now, width, height).rows().map(|row| format!("\"{row}\"\n")).collect()
}

#[test]
fn a_run_in_its_fourth_test() {
    insta::assert_snapshot!(text(&now(), 80, 24));
}

#[test]
fn a_wide_terminal() {
    insta::assert_snapshot!(text(&now(), 132, 40));
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    insta::assert_snapshot!(text(&now(), 60, 10));
}

#[test]
fn a_run_that_has_just_begun() {
    let mut now = Now { manifest: Some(manifest(RunState::Started)), ..Now::default() };
    now.apply(LiveLine { at_s: 20.0, event: LiveEvent::Step { text: "loading rows for 8 jobs".to_owned() } });
    insta::assert_snapshot!(text(&now, 80, 24));
}

#[test]
fn a_complete_run() {
    let mut now = now();
    now.manifest = Some(manifest(RunState::Complete));
    insta::assert_snapshot!(text(&now, 80, 24));
}

#[test]
fn figures_of_a_test_do_not_stand_under_the_next_one() {
    let mut now = now();
    now.records.push(record(4, None));
    now.apply(begun(20.5, 5));
    let shown = now.shown(21.0, 80);
    assert_eq!((shown.last(), shown.newest(|s| s.tps)), (None, None));
    let text = text(&now, 80, 24);
    assert!(text.contains("Test 5: ") && text.contains("Throughput –") && text.contains("CPU busy –"), "{text}");
    assert!(!text.contains("WALSync"), "{text}");
    let page = render_live(&shown);
    assert!(!page.contains("WALSync") && !page.contains("4,69"), "{page}");
}

#[test]
fn tests_are_lines_of_their_own_and_other_workloads_are_left_out() {
    let mut now = now();
    now.records[2].workload = "SRV-SCAN".to_owned();
    now.seconds.clear();
    for test in [2, 2, 3, 4, 4, 4] {
        now.apply(second(test, f64::from(test)));
    }
    let shown = now.shown(21.0, 80);
    let lengths: Vec<usize> = shown.lines(|s| s.tps).iter().map(Vec::len).collect();
    assert_eq!(lengths, [2, 3], "tests 2 and 4, without that of SRV-SCAN");
    assert!(shown.seconds.iter().all(|s| s.test != 3));
}

#[test]
fn nothing_is_shown_by_colour_alone() {
    let picture = picture(&now(), 80, 24);
    let (plain, coloured) = (picture.escaped(false), picture.escaped(true));
    assert!(!plain.contains("\x1b[0;3"), "NO_COLOR: {plain}");
    for colour in 31..=36 {
        assert!(coloured.contains(&format!("\x1b[0;{colour}m")), "{colour}: {coloured}");
    }
}

#[test]
fn texts_of_a_run_cannot_control_the_terminal() {
    let mut now = now();
    let evil = "\u{1b}[31m\u{7}\u{9b}2J\nx";
    now.warnings.push(evil.to_owned());
    now.records.iter_mut().for_each(|r| (r.workload, r.invalid_reason) = (evil.to_owned(), Some(evil.to_owned())));
    if let Some(m) = &mut now.manifest {
        m.plan.platform = evil.to_owned();
    }
    let last = now.seconds.back_mut().unwrap();
    last.waits = [(evil.to_owned(), 1.0)].into();
    let rows: Vec<String> = picture(&now, 80, 24).rows().collect();
    assert!(rows.iter().all(|row| !row.chars().any(char::is_control)), "{rows:?}");
}

proptest! {
    #[test]
    fn no_size_and_no_figure_panics(width in 0usize..200, height in 0usize..80, tps in any::<f64>(), ms in any::<f64>(), total in any::<f64>()) {
        let mut now = now();
        for second in &mut now.seconds {
            second.tps = Some(tps);
            second.latency_ms = Some(ms);
            second.total_s = total;
            second.jobs_by_ms.push((ms, 3));
            second.cpu_busy_pct = Some(tps);
        }
        let picture = draw(&now, "run", tps, width, height);
        prop_assert_eq!(picture.rows().count(), if width == 0 { 0 } else { height });
    }
}
