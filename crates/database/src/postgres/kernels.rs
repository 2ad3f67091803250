//! Procedural code in PL/pgSQL: what [`loadline_workload::kernel`] defines.

use loadline_workload::Kernel;
use loadline_workload::kernel::{ALPHABET, FIBONACCI, MODULUS, PIECE, STARTS, TEXT, ZERO};

use super::sql::{SCHEMA, quoted};
use crate::procedure::{Line, lines};
use crate::work::Work;

/// Full name of the function that calls itself.
fn fibonacci() -> String {
    format!("{}.{}", quoted(SCHEMA), quoted("fibonacci"))
}

/// Statements that make the functions which the program calls. They are declared as functions come:
/// VOLATILE.
pub(super) fn routines(work: &Work) -> String {
    if !work.program.computes(Kernel::Fibonacci) {
        return String::new();
    }
    let name = fibonacci();
    format!(
        r"CREATE OR REPLACE FUNCTION {name}(p_n integer) RETURNS integer LANGUAGE plpgsql AS $function$
BEGIN
  IF p_n < 2 THEN
    RETURN p_n;
  END IF;
  RETURN {name}(p_n - 1) + {name}(p_n - 2);
END
$function$;
"
    )
}

/// A block that does `times` rounds from where the `sequence` says and compares the result.
pub(super) fn compute(kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
    let (declare, body) = match kernel {
        Kernel::Add => (
            String::new(),
            format!(
                "  FOR l_i IN 1 + l_zero..{times} LOOP
    l_result := l_result + l_i;
  END LOOP;"
            ),
        ),
        Kernel::Fibonacci => (
            String::new(),
            format!(
                "  FOR l_i IN 1 + l_zero..{times} LOOP
    l_result := l_result + {}({} + mod(l_result - l_from, {}));
  END LOOP;",
                fibonacci(),
                FIBONACCI.0,
                FIBONACCI.1
            ),
        ),
        Kernel::Prime => (
            "
  l_divisor integer;
  l_prime boolean;"
                .to_owned(),
            format!(
                "  FOR l_n IN 2 + l_zero..{times} LOOP
    l_divisor := 2;
    l_prime := true;
    WHILE l_prime AND l_divisor * l_divisor <= l_n LOOP
      l_prime := mod(l_n, l_divisor) <> 0;
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
  l_text text := '{TEXT}';
  l_piece text;"
            ),
            format!(
                "  FOR l_i IN 1 + l_zero..{times} LOOP
    l_piece := substr('{ALPHABET}', 1 + mod(l_i, 26), {PIECE});
    l_text := substr(l_text, {}) || l_piece;
    l_result := l_result + strpos(l_text, l_piece);
  END LOOP;",
                PIECE + 1
            ),
        ),
        Kernel::Builtin => (
            "
  l_x integer := 1 + l_zero;
  l_y integer;"
                .to_owned(),
            format!(
                "  FOR l_i IN 1 + l_zero..{times} LOOP
    l_x := mod(l_x * 31 + l_i, {MODULUS});
    l_y := least(greatest(l_x, 20000), 80000);
    l_result := l_result + floor(sqrt(abs(l_x - l_y)))::integer + sign(l_x - l_y)::integer;
  END LOOP;"
            ),
        ),
    };
    let expected = kernel.expected(times);
    lines(&format!(
        "DECLARE
  l_from integer := mod({sequence}, {STARTS});
  l_zero integer := mod(l_from * (l_from + 1), {ZERO});
  l_result integer := l_from;{declare}
BEGIN
{body}
  IF l_result <> l_from + {expected} THEN
    RAISE EXCEPTION 'the computation came to % instead of {expected}', l_result - l_from;
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
