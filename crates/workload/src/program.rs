//! A transaction program: a small value that every target renders, in the database or at the client.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::template::{Piece, Template, TemplateError};

/// Whether a commit waits until it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// Durable when it returns.
    Wait,
    /// Returns before it is durable.
    Nowait,
}

/// The work of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Statements by number.
    pub statements: Vec<Statement>,
    /// What is done, in order; the commit follows.
    pub body: Vec<Step>,
    /// How it is committed.
    pub commit: Commit,
}

/// A statement of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Portable SQL, taken apart.
    pub template: Template,
    /// What an execution does; rows in another number are an error of the transaction.
    pub effect: Effect,
}

impl Statement {
    /// Reads `sql`, which does `effect`.
    ///
    /// # Errors
    /// [`TemplateError`] when it cannot be taken apart.
    pub fn new(sql: &str, effect: Effect) -> Result<Statement, TemplateError> {
        Ok(Statement { template: Template::parse(sql)?, effect })
    }

    /// The same for a text in the source: one that cannot be taken apart stays as it is, and the
    /// catalogue's tests find it.
    pub(crate) fn fixed(sql: &str, effect: Effect) -> Statement {
        let template = Template::parse(sql).unwrap_or_else(|_| Template { pieces: vec![Piece::Sql(sql.to_owned())] });
        Statement { template, effect }
    }
}

/// What an execution of a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes exactly so many rows.
    Change(u64),
    /// Returns exactly so many rows, all of which are fetched.
    Read(u64),
    /// Returns rows, however many, all of which are fetched.
    ReadAny,
    /// Neither: it makes or drops something, for example.
    Command,
}

impl Effect {
    /// Rows that it must touch, `None` if that is open.
    #[must_use]
    pub fn rows(self) -> Option<u64> {
        match self {
            Effect::Change(rows) | Effect::Read(rows) => Some(rows),
            Effect::ReadAny | Effect::Command => None,
        }
    }

    /// Whether it returns rows.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Effect::Read(_) | Effect::ReadAny)
    }
}

/// One step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Gives a variable its next value.
    Bind {
        /// Name of the variable.
        var: &'static str,
        /// Where its values come from.
        generator: Generator,
    },
    /// Executes statement number `statement`.
    Execute {
        /// Index in [`Program::statements`].
        statement: usize,
    },
    /// Does `body` `times` times.
    Repeat {
        /// How often.
        times: u32,
        /// What.
        body: Vec<Step>,
    },
    /// Adds `rows` rows that were never there to a table by the fastest way that the target has for
    /// many rows (`COPY`, for example). The rows follow each other: numbers `sequence · rows` and up of
    /// the job's own.
    Bulk {
        /// Index in the workload's tables.
        table: usize,
        /// Rows.
        rows: u32,
    },
    /// Computes inside the database's own language.
    Compute {
        /// What.
        kernel: Kernel,
        /// How often.
        times: u32,
    },
    /// Does one of its arms: that in whose share of the numbers the variable falls. The shares together are
    /// as many as the variable has values.
    Choose {
        /// Name of the variable, bound by [`Generator::Turn`] or [`Generator::Uniform`] from 0.
        var: &'static str,
        /// What it can be, in the order of the numbers.
        arms: Vec<Arm>,
    },
}

/// One of the things that a [`Step::Choose`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// How many of the variable's values choose it.
    pub share: u64,
    /// What is done.
    pub body: Vec<Step>,
}

/// A computation that each database writes in its own language; [`crate::kernel`] defines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Adds integers in a loop.
    Add,
    /// Fibonacci numbers by a routine that calls itself.
    Fibonacci,
    /// Looks for primes by trial division.
    Prime,
    /// Puts texts together and takes them apart.
    Text,
    /// Calls built-in functions.
    Builtin,
}

/// Where a variable's values come from. All are functions of a job's number and of how often the
/// job has bound its sequence: no state besides that one counter, so that a program can be cut
/// anywhere and go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// The job's sequence: 0, 1, 2, …
    Sequence,
    /// Key of the job's own row number `sequence mod rows`, counted from the job's first key.
    OwnRow {
        /// Rows that each job owns.
        rows: u64,
    },
    /// Payload of `bytes` bytes from the job's pool, at [`crate::payload_offset`] of the sequence.
    Payload {
        /// Length.
        bytes: u32,
    },
    /// A number from `from` up, below `from + range`, each as likely as another: see
    /// [`crate::draw`]. Different `salt`s give numbers that do not depend on each other.
    Uniform {
        /// The lowest.
        from: i64,
        /// How many there are.
        range: u64,
        /// Which of several numbers for one sequence.
        salt: u32,
    },
    /// The place in a turn of `of` places: a job begins anywhere and goes on by one for each number of its
    /// sequence, so that all places come equally often.
    Turn {
        /// Places.
        of: u64,
    },
    /// A key that no other job and no other sequence has: `job · 2⁴⁰ + sequence`.
    NewKey,
    /// Always the same.
    Constant(i64),
    /// What another variable holds, and `by` more.
    Plus {
        /// The other variable, bound before.
        var: &'static str,
        /// How much more.
        by: i64,
    },
}

impl Step {
    /// Gives `var` its next value from `generator`.
    #[must_use]
    pub const fn bind(var: &'static str, generator: Generator) -> Step {
        Step::Bind { var, generator }
    }
}

/// Type of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarType {
    /// 64-bit signed integer.
    Int,
    /// Binary string.
    Bytes,
}

impl Generator {
    /// Type of the values.
    #[must_use]
    pub fn var_type(self) -> VarType {
        match self {
            Generator::Sequence
            | Generator::OwnRow { .. }
            | Generator::Uniform { .. }
            | Generator::Turn { .. }
            | Generator::NewKey
            | Generator::Constant(_)
            | Generator::Plus { .. } => VarType::Int,
            Generator::Payload { .. } => VarType::Bytes,
        }
    }

    /// How many values a [`Step::Choose`] can choose by, if it can.
    #[must_use]
    pub fn choices(self) -> Option<u64> {
        match self {
            Generator::Turn { of } => Some(of),
            Generator::Uniform { from: 0, range, .. } => Some(range),
            _ => None,
        }
    }
}

/// What is wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A statement cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A statement uses a variable that nothing binds.
    #[error("the variable «{0}» is used but never bound")]
    Unbound(String),
    /// A statement number that does not exist.
    #[error("there is no statement number {0}")]
    NoStatement(usize),
    /// Rows are added in bulk before the sequence is bound: each time the same ones.
    #[error(
        "rows are added in bulk, but nothing binds the sequence before: their keys would be those of the last time"
    )]
    NoSequence,
    /// A variable that is a number here and bytes there.
    #[error("the variable «{0}» is bound to numbers and to bytes")]
    TwoTypes(String),
    /// A turn whose places do not come equally often.
    #[error(
        "the turn «{var}» of {of} leaves places out: each transaction must count the sequence on by 1, or by 1 and a \
         multiple of {of}; a random choice needs no such care"
    )]
    Turn {
        /// The variable.
        var: String,
        /// Its places.
        of: u64,
    },
    /// Arms that do not cover what chooses between them.
    #[error("the shares of what «{var}» chooses between add up to {shares}, but {needs}")]
    Shares {
        /// The variable.
        var: String,
        /// Sum of the shares.
        shares: u64,
        /// What they must add up to, in words.
        needs: String,
    },
}

impl Program {
    /// Variables in the order in which they are first bound, with their generators.
    #[must_use]
    pub fn vars(&self) -> Vec<(&'static str, Generator)> {
        let mut out: Vec<(&'static str, Generator)> = Vec::new();
        each(&self.body, &mut |step| match step {
            Step::Bind { var, generator } if !out.iter().any(|(v, _)| v == var) => out.push((var, *generator)),
            _ => {}
        });
        out
    }

    /// Checks that every statement exists, every variable is bound and of one type, and every choice has
    /// its arms.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ProgramError> {
        fn walk(
            program: &Program,
            steps: &[Step],
            bound: &mut Vec<(&'static str, Generator)>,
        ) -> Result<(), ProgramError> {
            let of = |bound: &[(&'static str, Generator)], name: &str| {
                bound.iter().rev().find(|(v, _)| *v == name).map(|(_, g)| *g)
            };
            for step in steps {
                match step {
                    Step::Bind { var, generator } => {
                        if let Generator::Plus { var: other, .. } = generator {
                            let other_type = of(bound, other).map(Generator::var_type);
                            match other_type {
                                None => return Err(ProgramError::Unbound((*other).to_owned())),
                                Some(VarType::Bytes) => return Err(ProgramError::TwoTypes((*other).to_owned())),
                                Some(VarType::Int) => {}
                            }
                        }
                        bound.push((var, *generator));
                    }
                    Step::Repeat { body, .. } => walk(program, body, bound)?,
                    Step::Bulk { .. } if !bound.iter().any(|(_, g)| *g == Generator::Sequence) => {
                        return Err(ProgramError::NoSequence);
                    }
                    Step::Bulk { .. } | Step::Compute { .. } => {}
                    Step::Choose { var, arms } => {
                        let chosen = of(bound, var).ok_or_else(|| ProgramError::Unbound((*var).to_owned()))?;
                        let shares: u64 = arms.iter().map(|a| a.share).sum();
                        let needs = match chosen.choices() {
                            Some(n) if n == shares => None,
                            Some(n) => Some(format!("it has {n} values")),
                            None => Some("it is neither a turn nor a random number from 0".to_owned()),
                        };
                        if let Some(needs) = needs {
                            return Err(ProgramError::Shares { var: (*var).to_owned(), shares, needs });
                        }
                        // What one arm binds is not bound after another.
                        for arm in arms {
                            walk(program, &arm.body, &mut bound.clone())?;
                        }
                    }
                    Step::Execute { statement } => {
                        let s = program.statements.get(*statement).ok_or(ProgramError::NoStatement(*statement))?;
                        if let Some(v) = s.template.vars().find(|v| of(bound, v).is_none()) {
                            return Err(ProgramError::Unbound(v.to_owned()));
                        }
                    }
                }
            }
            Ok(())
        }
        walk(self, &self.body, &mut Vec::new())?;
        let vars = self.vars();
        let mut mixed = None;
        each(&self.body, &mut |step| {
            if let Step::Bind { var, generator } = step
                && vars.iter().any(|(v, g)| v == var && g.var_type() != generator.var_type())
            {
                mixed = Some((*var).to_owned());
            }
        });
        if let Some(var) = mixed {
            return Err(ProgramError::TwoTypes(var));
        }
        for (var, generator) in vars {
            if let Generator::Turn { of } = generator
                && advances(&self.body, of.max(1)) != BTreeSet::from([1 % of.max(1)])
            {
                return Err(ProgramError::Turn { var: var.to_owned(), of });
            }
        }
        Ok(())
    }

    /// Statements executed by one transaction, its commit not counted; a bulk of rows is one. Where
    /// transactions differ, those of the longest.
    #[must_use]
    pub fn statements_per_tx(&self) -> u64 {
        self.most(&Program::statements_of)
    }

    /// The same, the mean over all transactions.
    #[must_use]
    pub fn mean_statements_per_tx(&self) -> f64 {
        self.mean(&Program::statements_of)
    }

    fn statements_of(&self, step: &Step) -> u64 {
        u64::from(matches!(step, Step::Execute { .. } | Step::Bulk { .. }))
    }

    /// Rows touched by one transaction, as far as that is known beforehand. Where transactions differ,
    /// those of the largest.
    #[must_use]
    pub fn rows_per_tx(&self) -> u64 {
        self.most(&Program::rows_of)
    }

    /// The same, the mean over all transactions.
    #[must_use]
    pub fn mean_rows_per_tx(&self) -> f64 {
        self.mean(&Program::rows_of)
    }

    fn rows_of(&self, step: &Step) -> u64 {
        match step {
            Step::Execute { statement } => self.effect(*statement).and_then(Effect::rows).unwrap_or(0),
            Step::Bulk { rows, .. } => u64::from(*rows),
            _ => 0,
        }
    }

    /// Rows changed by one transaction. Where transactions differ, those of the largest.
    #[must_use]
    pub fn rows_changed_per_tx(&self) -> u64 {
        self.most(&Program::changes_of)
    }

    /// The same, the mean over all transactions.
    #[must_use]
    pub fn mean_rows_changed_per_tx(&self) -> f64 {
        self.mean(&Program::changes_of)
    }

    fn changes_of(&self, step: &Step) -> u64 {
        match step {
            Step::Execute { statement } => match self.effect(*statement) {
                Some(Effect::Change(rows)) => rows,
                _ => 0,
            },
            Step::Bulk { rows, .. } => u64::from(*rows),
            _ => 0,
        }
    }

    /// Whether a step changes anything, 1 or 0.
    fn writes_of(&self, step: &Step) -> u64 {
        let command = match step {
            Step::Execute { statement } => self.effect(*statement) == Some(Effect::Command),
            _ => false,
        };
        u64::from(command || self.changes_of(step) > 0)
    }

    /// Whether it changes anything: if not, its commit has nothing to make durable.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.most(&Program::writes_of) > 0
    }

    /// Share of the transactions that change something, 0…1.
    #[must_use]
    pub fn writing_share(&self) -> f64 {
        fn none(program: &Program, steps: &[Step]) -> f64 {
            let one = |step: &Step| match step {
                Step::Repeat { body, .. } => none(program, body),
                Step::Choose { arms, .. } => weighted(arms, &|body| none(program, body)),
                step => f64::from(u8::from(program.writes_of(step) == 0)),
            };
            steps.iter().map(one).product()
        }
        1.0 - none(self, &self.body)
    }

    /// Whether it returns rows as well as changing them.
    #[must_use]
    pub fn reads_and_writes(&self) -> bool {
        self.writes() && self.statements.iter().any(|s| s.effect.reads())
    }

    /// Whether a transaction is one statement and its commit: an application would then leave both
    /// to the database in one round trip (autocommit).
    #[must_use]
    pub fn is_single_statement(&self) -> bool {
        // A repetition says that BEGIN and COMMIT are sent, even if it is done once.
        self.statements_per_tx() == 1 && self.body.iter().all(is_plain) && !self.varies()
    }

    /// Whether it adds many rows at once.
    #[must_use]
    pub fn bulks(&self) -> bool {
        let mut bulks = false;
        each(&self.body, &mut |step| bulks |= matches!(step, Step::Bulk { .. }));
        bulks
    }

    /// Whether one transaction can do something else than the next.
    #[must_use]
    pub fn varies(&self) -> bool {
        let mut chooses = false;
        each(&self.body, &mut |step| chooses |= matches!(step, Step::Choose { .. }));
        chooses
    }

    /// After how many transactions a turn is through; 1 where there is none.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        fn gcd(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { gcd(b, a % b) }
        }
        let mut cycle = 1;
        each(&self.body, &mut |step| {
            if let Step::Bind { generator: Generator::Turn { of }, .. } = step {
                let of = (*of).max(1);
                cycle = cycle / gcd(cycle, of) * of;
            }
        });
        cycle
    }

    /// Computations of a transaction.
    #[must_use]
    pub fn computations_per_tx(&self) -> u64 {
        self.most(&|_, step| if let Step::Compute { times, .. } = step { u64::from(*times) } else { 0 })
    }

    fn effect(&self, statement: usize) -> Option<Effect> {
        self.statements.get(statement).map(|s| s.effect)
    }

    /// Sum of what `of` says of each step, as often as it is done; of several arms the largest.
    fn most(&self, of: &dyn Fn(&Program, &Step) -> u64) -> u64 {
        fn walk(program: &Program, steps: &[Step], of: &dyn Fn(&Program, &Step) -> u64) -> u64 {
            let one = |step: &Step| match step {
                Step::Repeat { times, body } => u64::from(*times) * walk(program, body, of),
                Step::Choose { arms, .. } => {
                    let arms = arms.iter().map(|arm| walk(program, &arm.body, of)).max();
                    of(program, step) + arms.unwrap_or(0)
                }
                step => of(program, step),
            };
            steps.iter().map(one).sum()
        }
        walk(self, &self.body, of)
    }

    /// The same, where each arm counts as often as it is chosen.
    fn mean(&self, of: &dyn Fn(&Program, &Step) -> u64) -> f64 {
        fn walk(program: &Program, steps: &[Step], of: &dyn Fn(&Program, &Step) -> u64) -> f64 {
            let one = |step: &Step| match step {
                Step::Repeat { times, body } => f64::from(*times) * walk(program, body, of),
                Step::Choose { arms, .. } => weighted(arms, &|body| walk(program, body, of)),
                step => of(program, step) as f64,
            };
            steps.iter().map(one).sum()
        }
        walk(self, &self.body, of)
    }
}

/// By how much `steps` can count the sequence on, modulo `of`. More than a few different ways are not told
/// apart: nothing then comes equally often.
fn advances(steps: &[Step], of: u64) -> BTreeSet<u64> {
    const MANY: usize = 64;
    let sums = |a: &BTreeSet<u64>, b: &BTreeSet<u64>| -> BTreeSet<u64> {
        a.iter().flat_map(|x| b.iter().map(move |y| (x + y) % of)).take(MANY * MANY).collect()
    };
    let mut out = BTreeSet::from([0]);
    for step in steps {
        let by = match step {
            Step::Bind { generator: Generator::Sequence, .. } => BTreeSet::from([1 % of]),
            Step::Repeat { times, body } => {
                // As often as that, by doubling.
                let (mut times, mut power, mut all) = (*times, advances(body, of), BTreeSet::from([0]));
                while times > 0 {
                    if times % 2 == 1 {
                        all = sums(&all, &power);
                    }
                    power = sums(&power, &power);
                    times /= 2;
                }
                all
            }
            Step::Choose { arms, .. } => arms.iter().flat_map(|arm| advances(&arm.body, of)).take(MANY).collect(),
            _ => continue,
        };
        out = sums(&out, &by);
    }
    out
}

/// Mean of what `of` says of each arm, by their shares.
fn weighted(arms: &[Arm], of: &dyn Fn(&[Step]) -> f64) -> f64 {
    let all: u64 = arms.iter().map(|a| a.share).sum();
    arms.iter().map(|a| a.share as f64 / all.max(1) as f64 * of(&a.body)).sum()
}

/// Calls `see` with every step, those inside others included, in order.
fn each<'a>(steps: &'a [Step], see: &mut dyn FnMut(&'a Step)) {
    for step in steps {
        see(step);
        match step {
            Step::Repeat { body, .. } => each(body, see),
            Step::Choose { arms, .. } => arms.iter().for_each(|arm| each(&arm.body, see)),
            _ => {}
        }
    }
}

/// Steps that a transaction of one statement may have.
fn is_plain(step: &Step) -> bool {
    matches!(step, Step::Bind { .. } | Step::Execute { .. })
}

#[cfg(test)]
mod tests {
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
            Arm { share: 9, body: vec![execute(0)] },
            Arm { share: 1, body: vec![Step::Repeat { times: 2, body: vec![execute(1)] }] },
        ]
    }

    #[test]
    fn a_mix_has_means_and_a_largest_transaction() {
        let program = mix(Step::Choose { var: "turn", arms: arms() });
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
    fn a_turn_must_reach_all_its_places() {
        let next = || Step::bind("n", Generator::Sequence);
        let with = |more: u32| {
            let mut arms = arms();
            arms[1].body.push(Step::Repeat { times: more, body: vec![next()] });
            mix(Step::Choose { var: "turn", arms }).check()
        };
        assert_eq!((with(0), with(10), with(30)), (Ok(()), Ok(()), Ok(())));
        for more in [1, 5, 9] {
            assert!(matches!(with(more), Err(ProgramError::Turn { of: 10, .. })), "{more}");
        }
    }

    #[test]
    fn a_choice_must_cover_its_variable() {
        let shares = |of: fn(&mut Vec<Arm>)| {
            let mut arms = arms();
            of(&mut arms);
            mix(Step::Choose { var: "turn", arms }).check()
        };
        assert!(matches!(shares(|a| a[0].share = 8), Err(ProgramError::Shares { shares: 9, .. })));
        let by = |var| mix(Step::Choose { var, arms: arms() }).check().unwrap_err().to_string();
        assert!(by("n").contains("neither a turn"), "{}", by("n"));
        assert!(by("none").contains("never bound"));
        let leak = |a: &mut Vec<Arm>| {
            a[0].body.insert(0, Step::bind("own", Generator::Constant(1)));
            a[1].body.insert(0, Step::bind("more", Generator::Plus { var: "own", by: 1 }));
        };
        assert!(matches!(shares(leak), Err(ProgramError::Unbound(v)) if v == "own"), "arms bind for themselves");
        let bytes = |a: &mut Vec<Arm>| a[0].body.insert(0, Step::bind("n", Generator::Payload { bytes: 8 }));
        assert!(matches!(shares(bytes), Err(ProgramError::TwoTypes(v)) if v == "n"));
    }
}
