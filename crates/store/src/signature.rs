//! A Bloom filter of a text, by which a search skips texts that cannot contain a literal.

use toolrest_core::Requirement;

/// A Bloom filter with one hash over the trigrams of a text, in ASCII lower case.
///
/// The number of bits is a power of two, such that a sixth to a third of them are set. A filter is halved by a bitwise or
/// of its two halves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature(Box<[u8]>);

const MIN_BYTES: usize = 8;
const MAX_BYTES: usize = 16 << 10;

impl Signature {
    /// Computes the signature of a text.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut bytes = vec![0u8; text.len().next_power_of_two().clamp(MIN_BYTES, MAX_BYTES)];
        let mask = bytes.len() * 8 - 1;
        let mut trigram = 0;
        for (i, byte) in text.iter().enumerate() {
            trigram = next_trigram(trigram, *byte);
            if i >= 2 {
                let bit = bit_index(trigram) & mask;
                bytes[bit / 8] |= 1 << (bit % 8);
            }
        }
        while bytes.len() > MIN_BYTES && ones(&bytes) * 6 <= bytes.len() * 8 {
            let half = bytes.len() / 2;
            let (first, second) = bytes.split_at_mut(half);
            first.iter_mut().zip(second).for_each(|(one, other)| *one |= *other);
            bytes.truncate(half);
        }
        Self(bytes.into())
    }

    /// Reads a stored signature; none if the bytes are not a valid one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        is_signature(bytes).then(|| Self(bytes.into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn is_signature(bytes: &[u8]) -> bool {
    bytes.len().is_power_of_two() && (MIN_BYTES..=MAX_BYTES).contains(&bytes.len())
}

/// The trigrams that a signature must contain for its text to be searched.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// All requirements must hold. Each is a list of alternative literals, given by the bit indexes of their trigrams.
    requirements: Vec<Vec<Vec<usize>>>,
}

impl Filter {
    pub(crate) fn new(requirements: &[Requirement]) -> Self {
        let bit_indexes = |literal: &Vec<u8>| -> Vec<usize> {
            literal
                .windows(3)
                .map(|three| bit_index(three.iter().fold(0, |trigram, byte| next_trigram(trigram, *byte))))
                .collect()
        };
        let choices = |requirement: &Requirement| -> Option<Vec<Vec<usize>>> {
            let literals: Vec<_> = requirement.literals.iter().map(bit_indexes).collect();
            // A literal shorter than a trigram can be in any text, so the requirement excludes nothing.
            (!literals.iter().any(Vec::is_empty)).then_some(literals)
        };
        Self { requirements: requirements.iter().filter_map(choices).collect() }
    }

    /// Whether the filter can exclude any text.
    pub(crate) fn is_selective(&self) -> bool {
        !self.requirements.is_empty()
    }

    /// Whether a text with this signature can meet the requirements. Invalid signatures exclude nothing.
    pub(crate) fn admits(&self, signature: &[u8]) -> bool {
        if !is_signature(signature) {
            return true;
        }
        let mask = signature.len() * 8 - 1;
        let has = |bit_index: &usize| {
            let bit = bit_index & mask;
            signature[bit / 8] & (1 << (bit % 8)) != 0
        };
        self.requirements.iter().all(|choice| choice.iter().any(|literal| literal.iter().all(has)))
    }
}

fn next_trigram(trigram: u32, byte: u8) -> u32 {
    (trigram << 8 | u32::from(byte.to_ascii_lowercase())) & 0x00ff_ffff
}

/// Hashes a trigram to the index of a bit. Each bit of the result depends on the whole trigram.
fn bit_index(trigram: u32) -> usize {
    (u64::from(trigram).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

fn ones(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| byte.count_ones() as usize).sum()
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
