//! Kernels of procedural code: the same computation in every language, with its expected result.
//!
//! The Rust code here defines a kernel: its result for a number of rounds, and its number of operations. Each language's
//! rendering compares its own result with this one and fails if they differ.
//!
//! A result of literals alone could be computed once and cached, or a call be moved out of its loop. To prevent this,
//! each transaction depends on its own number. The sum starts at that number modulo [`STARTS`] (the start) and must
//! exceed [`Kernel::expected`] by it. The rounds start at an index to which a zero is added that is computed from the
//! start ([`ZERO`]). The argument of each call of [`Kernel::Fibonacci`] includes the sum so far. These few extra steps
//! per transaction (for a call: one in 177 calls) do not count as operations. Every number fits into 32 bits.

use std::hint::black_box;

use crate::program::{Kernel, Program, Step};

pub const STARTS: u32 = 1000;
/// Modulus of the computed zero: start · (start + 1) modulo 2, because one of two neighbouring numbers is even.
pub const ZERO: u32 = 2;
/// The Fibonacci number of each round of [`Kernel::Fibonacci`]: index and value.
pub const FIBONACCI: (u32, i64) = (10, 55);
/// Source of the pieces of [`Kernel::Text`]: five characters each, at 26 positions.
pub const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDE";
pub const PIECE: usize = 5;
/// Initial string of [`Kernel::Text`]; its length never changes.
pub const TEXT: &str =
    "ZYXWVUTSRQPONMLKJIHGFEDCBAZYXWVUTSRQPONMLKJIHGFEDCBAZYXWVUTSRQPONMLKJIHGFEDCBAZYXWVUTSRQPONMLKJIHGFE";
/// Modulus of [`Kernel::Builtin`].
pub const MODULUS: i64 = 100_003;

impl Kernel {
    pub const ALL: [Kernel; 5] = [Kernel::Add, Kernel::Fibonacci, Kernel::Prime, Kernel::Text, Kernel::Builtin];

    /// The sum of `times` rounds, without the start.
    pub fn expected(self, times: u32) -> i64 {
        self.run(times).0
    }

    pub fn operations(self, times: u32) -> u64 {
        self.run(times).1
    }

    fn run(self, times: u32) -> (i64, u64) {
        match self {
            Kernel::Add => add(times),
            Kernel::Fibonacci => {
                let (mut result, mut calls) = (0, 0);
                for _ in 0..times {
                    result += fibonacci(FIBONACCI.0, &mut calls);
                }
                (result, calls)
            }
            Kernel::Prime => primes(times),
            Kernel::Text => text(times),
            Kernel::Builtin => builtin(times),
        }
    }
}

impl Program {
    pub fn operations_per_tx(&self) -> u64 {
        self.most(&|_, step| if let Step::Compute { kernel, times } = step { kernel.operations(*times) } else { 0 })
    }

    /// Does one transaction's computations here. Returns the sum of their results.
    pub fn compute(&self) -> i64 {
        fn walk(steps: &[Step]) -> i64 {
            let one = |step: &Step| match step {
                Step::Compute { kernel, times } => kernel.expected(black_box(*times)),
                Step::Repeat { times, body } => (0..*times).map(|_| walk(body)).sum(),
                _ => 0,
            };
            steps.iter().map(one).sum()
        }
        walk(&self.body)
    }

    pub fn computes(&self, kernel: Kernel) -> bool {
        self.steps().iter().any(|step| matches!(step, Step::Compute { kernel: of, .. } if *of == kernel))
    }
}

/// The sum of 1 … `times`, one by one: without the black box, the compiler replaces the loop by a formula.
fn add(times: u32) -> (i64, u64) {
    let sum = (1..=i64::from(times)).map(black_box).sum();
    (sum, u64::from(times))
}

/// Two calls for each number except the first two.
fn fibonacci(n: u32, calls: &mut u64) -> i64 {
    *calls += 1;
    if n < 2 { i64::from(n) } else { fibonacci(n - 1, calls) + fibonacci(n - 2, calls) }
}

/// Number of primes up to `limit`: each number is divided by 2, 3, 4, … until one divides it or the divisor's square
/// exceeds it.
fn primes(limit: u32) -> (i64, u64) {
    let (mut found, mut divisions) = (0, 0);
    for n in 2..=limit {
        let (mut divisor, mut prime) = (2, true);
        while prime && divisor * divisor <= n {
            divisions += 1;
            prime = n % divisor != 0;
            divisor += 1;
        }
        found += i64::from(prime);
    }
    (found, divisions)
}

/// Round `i`: take a piece of the alphabet, remove as many characters from the front of the string, append the piece,
/// find its first occurrence. Result: the sum of the positions.
fn text(times: u32) -> (i64, u64) {
    let (mut text, mut sum) = (TEXT.to_owned(), 0);
    for i in 1..=times as usize {
        let piece = &ALPHABET[i % 26..i % 26 + PIECE];
        text.drain(..PIECE);
        text.push_str(piece);
        sum += text.find(piece).map_or(0, |at| at as i64 + 1);
    }
    (sum, 4 * u64::from(times))
}

/// Round `i`: x = MOD(x · 31 + i, [`MODULUS`]), y = LEAST(GREATEST(x, 20000), 80000), and the sum grows by
/// FLOOR(SQRT(ABS(x − y))) + SIGN(x − y).
fn builtin(times: u32) -> (i64, u64) {
    let (mut x, mut sum) = (1_i64, 0);
    for i in 1..=i64::from(times) {
        x = (x * 31 + i) % MODULUS;
        let y = x.clamp(20_000, 80_000);
        sum += ((x - y).abs() as f64).sqrt() as i64 + (x - y).signum();
    }
    (sum, 7 * u64::from(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_match_published_values_and_formulas() {
        for n in [1, 2, 1000, 60_000] {
            assert_eq!(Kernel::Add.expected(n), i64::from(n) * (i64::from(n) + 1) / 2);
            assert_eq!(Kernel::Add.operations(n), u64::from(n));
        }
        assert_eq!(fibonacci(FIBONACCI.0, &mut 0), FIBONACCI.1);
        // fib(n) takes 2·fib(n + 1) − 1 calls.
        assert_eq!(Kernel::Fibonacci.operations(3), 3 * (2 * 89 - 1));
        // π(100), π(1000), π(10⁴): OEIS A006880.
        assert_eq!([100, 1000, 10_000].map(|n| Kernel::Prime.expected(n)), [25, 168, 1229]);
        assert_eq!(Kernel::Prime.operations(10), 1 + 1 + 1 + 1 + 1 + 2 + 1, "4, 5, 6, 7, 8, 9, 10: by 2, and 9 by 3");
    }

    #[test]
    fn a_transaction_computes_what_it_is_compared_with() {
        for workload in crate::CATALOGUE.iter().filter(|w| w.group == "procedural-code") {
            let program = workload.make(&workload.params(&Default::default()).unwrap());
            let of = |step: &Step| match step {
                Step::Compute { kernel, times } => kernel.expected(*times),
                _ => 0,
            };
            assert_eq!(program.compute(), program.body.iter().map(of).sum::<i64>(), "{}", workload.code);
            assert!(program.compute() > 0);
        }
    }

    #[test]
    fn the_zero_is_one_and_so_is_what_is_added_to_a_call() {
        assert!((0..STARTS).all(|start| start * (start + 1) % ZERO == 0));
        // The sum so far, minus the start, is a multiple of the result.
        assert!((0..9).all(|rounds| Kernel::Fibonacci.expected(rounds) % FIBONACCI.1 == 0));
    }

    #[test]
    fn texts_and_built_ins_are_worked_out_by_hand_for_the_first_rounds() {
        // 'BCDEF' is appended to 95 characters that end with '…JIHGFE'; it occurs only there.
        assert_eq!((TEXT.len(), ALPHABET.len()), (100, 26 + PIECE));
        assert_eq!(Kernel::Text.expected(1), 96);
        assert_eq!(Kernel::Text.operations(5), 20);
        // x = 31 + 1; y = 20000; √19968 = 141.3, and −1.
        assert_eq!(Kernel::Builtin.expected(1), 141 - 1);
        assert_eq!(Kernel::Builtin.operations(2), 14);
    }

    #[test]
    fn every_round_counts_and_numbers_stay_within_32_bits() {
        for kernel in Kernel::ALL {
            let most = if kernel == Kernel::Add { 65_000 } else { 100_000 };
            let most = if kernel == Kernel::Fibonacci { 1000 } else { most };
            let last = kernel.expected(most);
            assert!(
                last + i64::from(STARTS) < i64::from(i32::MAX) && last > kernel.expected(most / 2),
                "{kernel:?}: {last}"
            );
            assert!(kernel.operations(most) > kernel.operations(most / 2), "{kernel:?}");
        }
    }
}
