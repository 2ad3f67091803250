//! The kernels of [`loadline_workload::kernel`] in PL/SQL and PL/pgSQL.

use loadline_workload::Kernel;
use loadline_workload::kernel::{ALPHABET, FIBONACCI, MODULUS, PIECE, STARTS, TEXT, ZERO};

use crate::procedure::{Line, lines};

/// The words that differ between the two languages.
pub(crate) struct Words {
    /// The types for integers, booleans, [`TEXT`] and a piece of it.
    pub(crate) types: [String; 4],
    /// Writes names of functions and booleans (upper or lower case).
    pub(crate) name: fn(&str) -> String,
    /// The function that returns the position of a text in another.
    pub(crate) position: &'static str,
    /// Suffix that converts a number to an integer.
    pub(crate) to_integer: &'static str,
    /// Between the bounds of a loop.
    pub(crate) to: &'static str,
    /// The recursive function: its declaration (empty if it is not local) and its name.
    pub(crate) fibonacci: [String; 2],
    /// The statement that raises the error for a result other than the given one.
    pub(crate) fail: fn(i64) -> String,
}

/// A block that runs `times` rounds, starting from `sequence`, and checks the result.
pub(crate) fn compute(words: &Words, kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
    let Words { types: [integer, boolean, text, piece], position, to_integer, to, .. } = words;
    let [modulo, substr, least, greatest] = ["MOD", "SUBSTR", "LEAST", "GREATEST"].map(words.name);
    let [floor, sqrt, abs, sign, truth] = ["FLOOR", "SQRT", "ABS", "SIGN", "TRUE"].map(words.name);
    let [declare_fibonacci, fibonacci] = &words.fibonacci;
    let (declare, body) = match kernel {
        Kernel::Add => (String::new(), "    l_result := l_result + l_i;".to_owned()),
        Kernel::Fibonacci => {
            let (place, count) = FIBONACCI;
            (
                declare_fibonacci.clone(),
                format!("    l_result := l_result + {fibonacci}({place} + {modulo}(l_result - l_from, {count}));"),
            )
        }
        Kernel::Prime => (
            format!("\n  l_divisor {integer};\n  l_prime {boolean};"),
            format!(
                "    l_divisor := 2;
    l_prime := {truth};
    WHILE l_prime AND l_divisor * l_divisor <= l_n LOOP
      l_prime := {modulo}(l_n, l_divisor) <> 0;
      l_divisor := l_divisor + 1;
    END LOOP;
    IF l_prime THEN
      l_result := l_result + 1;
    END IF;"
            ),
        ),
        Kernel::Text => (
            format!("\n  l_text {text} := '{TEXT}';\n  l_piece {piece};"),
            format!(
                "    l_piece := {substr}('{ALPHABET}', 1 + {modulo}(l_i, 26), {PIECE});
    l_text := {substr}(l_text, {}) || l_piece;
    l_result := l_result + {position}(l_text, l_piece);",
                PIECE + 1
            ),
        ),
        Kernel::Builtin => (
            format!("\n  l_x {integer} := 1 + l_zero;\n  l_y {integer};"),
            format!(
                "    l_x := {modulo}(l_x * 31 + l_i, {MODULUS});
    l_y := {least}({greatest}(l_x, 20000), 80000);
    l_result := l_result + {floor}({sqrt}({abs}(l_x - l_y))){to_integer} + {sign}(l_x - l_y){to_integer};"
            ),
        ),
    };
    // The search for primes starts at 2.
    let (number, first) = if kernel == Kernel::Prime { ("l_n", 2) } else { ("l_i", 1) };
    let expected = kernel.expected(times);
    let fail = (words.fail)(expected);
    lines(&format!(
        "DECLARE
  l_from {integer} := {modulo}({sequence}, {STARTS});
  l_zero {integer} := {modulo}(l_from * (l_from + 1), {ZERO});
  l_result {integer} := l_from;{declare}
BEGIN
  FOR {number} IN {first} + l_zero{to}{times} LOOP
{body}
  END LOOP;
  IF l_result <> l_from + {expected} THEN
    {fail}
  END IF;
END;"
    ))
}
