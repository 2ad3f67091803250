//! Reading memory as fast as it goes: the loop behind the limit of scans of cached rows.

/// Words that are added at a time, so that additions do not wait for each other.
const LANES: usize = 8;

/// The sum of `words`: every byte is read.
pub fn sum(words: &[u64]) -> u64 {
    let (lanes, rest) = words.as_chunks::<LANES>();
    let mut sums = [0_u64; LANES];
    for lane in lanes {
        for (sum, word) in sums.iter_mut().zip(lane) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |all, word| all.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_added() {
        for words in [0, 1, 7, 8, 9, 1000] {
            let numbers: Vec<u64> = (1..=words).collect();
            assert_eq!(sum(&numbers), words * (words + 1) / 2);
        }
    }
}
