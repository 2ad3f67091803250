//! The picture on a terminal.

use loadline_live::now::Now;
use loadline_live::screen::{Look, draw};
use loadline_model::live::{LiveEvent, LiveLine};
use loadline_model::manifest::RunState;
use loadline_report::render_live;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;

use crate::common::{begun, manifest, now, record, second};

fn picture(now: &Now, look: Look, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(now, "2026-11-20-161530-postgres", 21.0, look, frame.area(), frame.buffer_mut()))
        .unwrap();
    terminal
}

#[test]
fn a_run_in_its_fourth_test() {
    insta::assert_snapshot!(picture(&now(), Look::Plain, 80, 24).backend());
}

#[test]
fn a_wide_terminal() {
    insta::assert_snapshot!(picture(&now(), Look::Colours, 132, 40).backend());
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    insta::assert_snapshot!(picture(&now(), Look::Plain, 60, 10).backend());
}

#[test]
fn a_run_that_has_just_begun() {
    let mut now = Now { manifest: Some(manifest(RunState::Started)), ..Now::default() };
    now.apply(LiveLine { at_s: 20.0, event: LiveEvent::Step { text: "loading rows for 8 jobs".to_owned() } });
    insta::assert_snapshot!(picture(&now, Look::Plain, 80, 24).backend());
}

#[test]
fn a_complete_run() {
    let mut now = now();
    now.manifest = Some(manifest(RunState::Complete));
    insta::assert_snapshot!(picture(&now, Look::Plain, 80, 24).backend());
}

#[test]
fn figures_of_a_test_do_not_stand_under_the_next_one() {
    let mut now = now();
    now.records.push(record(4, None));
    now.apply(begun(20.5, 5));
    let shown = now.shown(21.0, 80);
    assert_eq!((shown.last(), shown.newest(|s| s.tps)), (None, None));
    let text = format!("{}", picture(&now, Look::Plain, 80, 24).backend());
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

fn colours(buffer: &Buffer) -> usize {
    buffer.content().iter().filter(|c| c.fg != Color::Reset || c.bg != Color::Reset).count()
}

#[test]
fn nothing_is_shown_by_colour_alone() {
    let [plain, coloured] = [Look::Plain, Look::Colours].map(|look| picture(&now(), look, 80, 24));
    assert_eq!(colours(plain.backend().buffer()), 0, "NO_COLOR");
    assert!(colours(coloured.backend().buffer()) > 50);
    let text =
        |t: &Terminal<TestBackend>| t.backend().buffer().content().iter().map(|c| c.symbol()).collect::<String>();
    assert_eq!(text(&plain), text(&coloured));
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
    let terminal = picture(&now, Look::Colours, 80, 24);
    let odd = terminal.backend().buffer().content().iter().find(|c| c.symbol().chars().any(char::is_control));
    assert!(odd.is_none(), "{odd:?}");
}

proptest! {
    #[test]
    fn no_size_and_no_figure_panics(width in 0u16..200, height in 0u16..80, tps in any::<f64>(), ms in any::<f64>(), total in any::<f64>()) {
        let mut now = now();
        for second in &mut now.seconds {
            second.tps = Some(tps);
            second.latency_ms = Some(ms);
            second.total_s = total;
            second.jobs_by_ms.push((ms, 3));
            second.cpu_busy_pct = Some(tps);
        }
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw(&now, "run", tps, Look::Colours, area, &mut buffer);
    }
}
