//! The kernels of [`loadline_workload::kernel`] in SQL/PSM.

use loadline_workload::Kernel;
use loadline_workload::kernel::{ALPHABET, FIBONACCI, MODULUS, PIECE, STARTS, TEXT, ZERO};

use super::sql::{MARK, full_name};
use crate::procedure::{Line, lines};
use crate::work::Work;

/// Texts are compared byte by byte, as in the other databases.
const CHARACTERS: &str = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

/// Names and CREATE statements of the routines that the program calls. Fibonacci is a procedure, because
/// functions cannot call themselves here.
pub(super) fn routines(work: &Work) -> Vec<(String, String)> {
    if !work.program.computes(Kernel::Fibonacci) {
        return Vec::new();
    }
    let name = full_name("fibonacci");
    let create = format!(
        "CREATE PROCEDURE {name}(IN p_n INT, OUT p_result INT)
SQL SECURITY INVOKER
COMMENT '{MARK}'
BEGIN
  DECLARE l_a, l_b INT;
  IF p_n < 2 THEN
    SET p_result = p_n;
  ELSE
    CALL {name}(p_n - 1, l_a);
    CALL {name}(p_n - 2, l_b);
    SET p_result = l_a + l_b;
  END IF;
END"
    );
    vec![(name, create)]
}

/// A block that computes `times` rounds, starting from `sequence`, and checks the result.
pub(super) fn compute(kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
    let (declare, round) = match kernel {
        Kernel::Add => (String::new(), "    SET l_result = l_result + l_i;".to_owned()),
        Kernel::Fibonacci => (
            "
  DECLARE l_number INT;"
                .to_owned(),
            format!(
                "    CALL {}({} + MOD(l_result - l_from, {}), l_number);
    SET l_result = l_result + l_number;",
                full_name("fibonacci"),
                FIBONACCI.0,
                FIBONACCI.1
            ),
        ),
        Kernel::Prime => (
            "
  DECLARE l_divisor INT;
  DECLARE l_prime BOOLEAN;"
                .to_owned(),
            "    SET l_divisor = 2;
    SET l_prime = TRUE;
    WHILE l_prime AND l_divisor * l_divisor <= l_i DO
      SET l_prime = MOD(l_i, l_divisor) <> 0;
      SET l_divisor = l_divisor + 1;
    END WHILE;
    IF l_prime THEN
      SET l_result = l_result + 1;
    END IF;"
                .to_owned(),
        ),
        Kernel::Text => (
            format!(
                "
  DECLARE l_text VARCHAR(100) {CHARACTERS} DEFAULT '{TEXT}';
  DECLARE l_piece VARCHAR({PIECE}) {CHARACTERS};"
            ),
            format!(
                "    SET l_piece = SUBSTR('{ALPHABET}', 1 + MOD(l_i, 26), {PIECE});
    SET l_text = CONCAT(SUBSTR(l_text, {}), l_piece);
    SET l_result = l_result + INSTR(l_text, l_piece);",
                PIECE + 1
            ),
        ),
        Kernel::Builtin => (
            "
  DECLARE l_x INT DEFAULT 1 + l_zero;
  DECLARE l_y INT;"
                .to_owned(),
            format!(
                "    SET l_x = MOD(l_x * 31 + l_i, {MODULUS});
    SET l_y = LEAST(GREATEST(l_x, 20000), 80000);
    SET l_result = l_result + FLOOR(SQRT(ABS(l_x - l_y))) + SIGN(l_x - l_y);"
            ),
        ),
    };
    let expected = kernel.expected(times);
    // The search for primes starts at 2.
    let before = u32::from(kernel == Kernel::Prime);
    lines(&format!(
        "BEGIN
  DECLARE l_from INT DEFAULT MOD({sequence}, {STARTS});
  DECLARE l_zero INT DEFAULT MOD(l_from * (l_from + 1), {ZERO});
  DECLARE l_result INT DEFAULT l_from;
  DECLARE l_i INT DEFAULT {before} + l_zero;{declare}
  WHILE l_i < {times} DO
    SET l_i = l_i + 1;
{round}
  END WHILE;
  IF l_result <> l_from + {expected} THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the computation did not come to {expected}';
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
