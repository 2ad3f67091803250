//! The kernels of [`loadline_workload::kernel`] in PL/SQL.

use loadline_workload::Kernel;
use loadline_workload::kernel::{PIECE, TEXT};

use crate::kernels::{self, Words};
use crate::procedure::Line;

/// A function that calls itself, local to its block: it needs no privilege and leaves nothing behind.
const FIBONACCI: &str = "
  FUNCTION fibonacci(p_n IN PLS_INTEGER) RETURN PLS_INTEGER IS
  BEGIN
    IF p_n < 2 THEN
      RETURN p_n;
    END IF;
    RETURN fibonacci(p_n - 1) + fibonacci(p_n - 2);
  END fibonacci;";

/// A block that computes `times` rounds, starting from `sequence`, and checks the result.
pub(super) fn compute(kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
    let text = |length: usize| format!("VARCHAR2({length})");
    let words = Words {
        types: ["PLS_INTEGER".to_owned(), "BOOLEAN".to_owned(), text(TEXT.len()), text(PIECE)],
        name: str::to_owned,
        position: "INSTR",
        to_integer: "",
        to: " .. ",
        fibonacci: [FIBONACCI, "fibonacci"].map(str::to_owned),
        fail: |expected| {
            let text = format!("'the computation came to ' || (l_result - l_from) || ' instead of {expected}'");
            format!("RAISE_APPLICATION_ERROR(-20003, {text});")
        },
    };
    kernels::compute(&words, kernel, times, sequence)
}
