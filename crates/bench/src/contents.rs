//! Generated contents: texts that compress like prose, each with a unique stamp.

use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: &str = "\
    the lathe turns a piece of wood while hand tool rests on steady iron bar and chips fall to floor agent reads \
    file then edits one line before it runs every test again because someone changed parser yesterday without \
    notice version history keeps both texts apart until merged";

/// Number of digits of the stamp at the start of each text.
pub const STAMP_DIGITS: usize = 20;

/// A generator of pseudo-random numbers (xorshift64*); equal seeds give equal numbers.
pub struct Numbers(u64);

impl Numbers {
    pub fn from_seed(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(mixed).expect("31 bits fit") % limit
    }
}

/// Generates a text of exactly `size` bytes that begins with a stamp of zeros.
pub fn prose(seed: u64, size: usize) -> String {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut numbers = Numbers::from_seed(seed);
    let mut text = "0".repeat(STAMP_DIGITS);
    while text.len() < size {
        text.push(if numbers.below(12) == 0 { '\n' } else { ' ' });
        text.push_str(words[numbers.below(words.len())]);
    }
    text.truncate(size);
    text
}

/// Writes a new stamp, different from all others, over the first digits of `digits`.
pub fn stamp(digits: &mut [u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    write_number(&mut digits[..STAMP_DIGITS], NEXT.fetch_add(1, Ordering::Relaxed));
}

/// Writes `number` in decimal over all of `digits`, with leading zeros.
pub fn write_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789"[usize::try_from(number % 10).expect("a digit fits")];
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_given_size_and_compress_by_about_half() {
        let text = prose(3, 4096);
        assert_eq!(text.len(), 4096);
        let compressed = zstd::bulk::compress(text.as_bytes(), 3).unwrap().len();
        assert!((1000..3000).contains(&compressed), "{compressed}");
    }

    #[test]
    fn no_two_stamps_are_equal() {
        let mut first = *b"00000000000000000000";
        let mut second = first;
        stamp(&mut first);
        stamp(&mut second);
        assert_ne!(first, second);
    }

    #[test]
    fn numbers_fill_their_digits() {
        let mut digits = *b"xxxx";
        write_number(&mut digits, 42);
        assert_eq!(&digits, b"0042");
    }
}
