//! Sums and means of programs, and what is wrong with some.

use super::*;

/// Nine in ten read a row, the tenth changes two.
fn mix(choose: Step) -> Program {
    let statement = |sql: &str, effect| Statement::new(sql, effect).unwrap();
    Program {
        statements: vec![
            statement("SELECT a FROM {t} WHERE id = :n", Effect::Read(1)),
            statement("UPDATE {t} SET a = 1 WHERE id = :n", Effect::Change(1)),
        ],
        body: vec![Step::bind("n", Generator::Sequence), Step::bind("turn", Generator::Turn { of: 10 }), choose],
        commit: Commit::Wait,
    }
}

fn arms() -> Vec<Arm> {
    let execute = |statement| Step::Execute { statement };
    vec![
        Arm { name: "read".to_owned(), share: 9, body: vec![execute(0)] },
        Arm { name: "change".to_owned(), share: 1, body: vec![Step::Repeat { times: 2, body: vec![execute(1)] }] },
    ]
}

#[test]
fn a_mix_has_means_and_a_largest_transaction() {
    let program = mix(Step::Choose { var: "turn".to_owned(), arms: arms() });
    program.check().unwrap();
    assert_eq!((program.statements_per_tx(), program.rows_per_tx(), program.rows_changed_per_tx()), (2, 2, 2));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(program.mean_statements_per_tx(), 1.1);
    near(program.mean_rows_changed_per_tx(), 0.2);
    near(program.writing_share(), 0.1);
    assert!(program.varies() && program.writes() && program.reads_and_writes() && !program.is_single_statement());
    assert_eq!(program.cycle(), 10);
}

#[test]
fn repeated_choices_write_more_often_and_none_does_not_write() {
    let share = |times| {
        let mut program = mix(Step::Choose { var: "turn".to_owned(), arms: arms() });
        program.body = vec![Step::Repeat { times, body: program.body }];
        program.writing_share()
    };
    assert!((share(2) - 0.19).abs() < 1e-9, "{}", share(2));
    assert_eq!(share(0), 0.0);
}

#[test]
fn a_mix_of_single_statements_needs_no_begin() {
    let execute = |statement| vec![Step::Execute { statement }];
    let with = |bodies: [Vec<Step>; 2]| {
        let arms =
            bodies.into_iter().zip([9, 1]).map(|(body, share)| Arm { name: String::new(), share, body }).collect();
        mix(Step::Choose { var: "turn".to_owned(), arms }).is_single_statement()
    };
    assert!(with([execute(0), execute(1)]));
    assert!(!with([execute(0), vec![]]) && !with([execute(0), [execute(0), execute(1)].concat()]));
    assert!(!with([execute(0), vec![Step::Repeat { times: 1, body: execute(1) }]]));
}

#[test]
fn a_turn_must_reach_all_its_places() {
    let next = || Step::bind("n", Generator::Sequence);
    let with = |more: u32| {
        let mut arms = arms();
        arms[1].body.push(Step::Repeat { times: more, body: vec![next()] });
        mix(Step::Choose { var: "turn".to_owned(), arms }).check()
    };
    assert_eq!((with(0), with(10), with(30)), (Ok(()), Ok(()), Ok(())));
    for more in [1, 5, 9] {
        assert!(matches!(with(more), Err(ProgramError::Turn { of: 10, .. })), "{more}");
    }
}

#[test]
fn what_is_too_many_to_count_is_the_largest_number() {
    let nested = |times: [u32; 4]| {
        let body = times
            .iter()
            .fold(vec![Step::Execute { statement: 1 }], |body, times| vec![Step::Repeat { times: *times, body }]);
        Program { body, ..mix(Step::Execute { statement: 0 }) }
    };
    let program = nested([65_536; 4]);
    assert_eq!((program.statements_per_tx(), program.rows_changed_per_tx()), (u64::MAX, u64::MAX));
    assert!(program.writes() && program.longest() == u64::MAX);
    assert_eq!(nested([2, 3, 1, 1]).longest(), 6 + 6 + 3 + 1 + 1, "statements, and repetitions");
}

#[test]
fn rows_of_a_read_of_any_number_are_not_known() {
    let mut program = mix(Step::Choose { var: "turn".to_owned(), arms: arms() });
    assert!(program.rows_are_known());
    program.statements[0].effect = Effect::ReadAny;
    assert!(!program.rows_are_known(), "one arm is enough");
    program.body = vec![Step::Execute { statement: 1 }];
    assert!(program.rows_are_known(), "only what is executed counts");
}

#[test]
fn the_kind_of_a_transaction_is_its_arm_also_where_only_its_number_is_known() {
    use crate::stream::{JobStart, Replay, Stream};
    use std::sync::Arc;

    let mut program = mix(Step::Choose { var: "turn".to_owned(), arms: arms() });
    assert_eq!(program.kinds(), [("read", 9), ("change", 1)]);
    let start = JobStart { first_key: 0, new_key: 0, draw: 3 };
    let replay = |program: &Program| Replay::new(Stream::new(program, start, Arc::default(), 0).unwrap(), program);
    let mut all = replay(&program);
    // Of a cycle of ten that begins at place 3, the seventh is at place 9.
    for n in 0..20 {
        assert_eq!(all.next_kind(), Some(usize::from(n % 10 == 6)), "{n}");
    }
    // A choice within another step is no kind of transaction.
    let choose = program.body.pop().unwrap();
    program.body.push(Step::Repeat { times: 2, body: vec![choose] });
    assert!(program.kinds().is_empty() && replay(&program).next_kind().is_none());
}
