//! The kernels of [`loadline_workload::kernel`] in PL/pgSQL.

use loadline_workload::Kernel;

use super::sql::{SCHEMA, quoted};
use crate::kernels::{self, Words};
use crate::procedure::Line;
use crate::work::Work;

/// Full name of the recursive function.
fn fibonacci() -> String {
    format!("{}.{}", quoted(SCHEMA), quoted("fibonacci"))
}

/// Statements that create the functions which the program calls, with the default VOLATILE.
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

/// A block that runs `times` rounds, starting from `sequence`, and checks the result.
pub(super) fn compute(kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
    let words = Words {
        types: ["integer", "boolean", "text", "text"].map(str::to_owned),
        name: str::to_lowercase,
        position: "strpos",
        to_integer: "::integer",
        to: "..",
        fibonacci: [String::new(), fibonacci()],
        fail: |expected| {
            format!("RAISE EXCEPTION 'the computation came to % instead of {expected}', l_result - l_from;")
        },
    };
    kernels::compute(&words, kernel, times, sequence)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_computation_is_made_of_literals_alone() {
        crate::procedure::assert_no_literals_alone(super::compute);
    }
}
