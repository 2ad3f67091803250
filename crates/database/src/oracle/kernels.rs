//! Procedural code in PL/SQL: what [`loadline_workload::kernel`] defines.

use loadline_workload::Kernel;
use loadline_workload::kernel::{ALPHABET, FIBONACCI, MODULUS, PIECE, STARTS, TEXT, ZERO};

use crate::procedure::{Line, lines};

/// A block that does `times` rounds from where the `sequence` says and compares the result. The function that calls itself is local to
/// its block: it needs no privilege and leaves nothing behind.
pub(super) fn compute(kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
    let (declare, body) = match kernel {
        Kernel::Add => (
            String::new(),
            format!(
                "  FOR l_i IN 1 + l_zero .. {times} LOOP
    l_result := l_result + l_i;
  END LOOP;"
            ),
        ),
        Kernel::Fibonacci => (
            "
  FUNCTION fibonacci(p_n IN PLS_INTEGER) RETURN PLS_INTEGER IS
  BEGIN
    IF p_n < 2 THEN
      RETURN p_n;
    END IF;
    RETURN fibonacci(p_n - 1) + fibonacci(p_n - 2);
  END fibonacci;"
                .to_owned(),
            format!(
                "  FOR l_i IN 1 + l_zero .. {times} LOOP
    l_result := l_result + fibonacci({} + MOD(l_result - l_from, {}));
  END LOOP;",
                FIBONACCI.0, FIBONACCI.1
            ),
        ),
        Kernel::Prime => (
            "
  l_divisor PLS_INTEGER;
  l_prime BOOLEAN;"
                .to_owned(),
            format!(
                "  FOR l_n IN 2 + l_zero .. {times} LOOP
    l_divisor := 2;
    l_prime := TRUE;
    WHILE l_prime AND l_divisor * l_divisor <= l_n LOOP
      l_prime := MOD(l_n, l_divisor) <> 0;
      l_divisor := l_divisor + 1;
    END LOOP;
    IF l_prime THEN
      l_result := l_result + 1;
    END IF;
  END LOOP;"
            ),
        ),
        Kernel::Text => (
            format!(
                "
  l_text VARCHAR2(100) := '{TEXT}';
  l_piece VARCHAR2({PIECE});"
            ),
            format!(
                "  FOR l_i IN 1 + l_zero .. {times} LOOP
    l_piece := SUBSTR('{ALPHABET}', 1 + MOD(l_i, 26), {PIECE});
    l_text := SUBSTR(l_text, {}) || l_piece;
    l_result := l_result + INSTR(l_text, l_piece);
  END LOOP;",
                PIECE + 1
            ),
        ),
        Kernel::Builtin => (
            "
  l_x PLS_INTEGER := 1 + l_zero;
  l_y PLS_INTEGER;"
                .to_owned(),
            format!(
                "  FOR l_i IN 1 + l_zero .. {times} LOOP
    l_x := MOD(l_x * 31 + l_i, {MODULUS});
    l_y := LEAST(GREATEST(l_x, 20000), 80000);
    l_result := l_result + FLOOR(SQRT(ABS(l_x - l_y))) + SIGN(l_x - l_y);
  END LOOP;"
            ),
        ),
    };
    let expected = kernel.expected(times);
    lines(&format!(
        "DECLARE
  l_from PLS_INTEGER := MOD({sequence}, {STARTS});
  l_zero PLS_INTEGER := MOD(l_from * (l_from + 1), {ZERO});
  l_result PLS_INTEGER := l_from;{declare}
BEGIN
{body}
  IF l_result <> l_from + {expected} THEN
    RAISE_APPLICATION_ERROR(-20003, 'the computation came to ' || (l_result - l_from) || ' instead of {expected}');
  END IF;
END;"
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_computation_is_made_of_literals_alone() {
        crate::procedure::assert_no_literals_alone(super::compute);
    }
}
