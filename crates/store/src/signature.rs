//! A small summary of a text that tells, without the text, that a literal cannot be in it.

use toolrest_core::Requirement;

/// The trigrams of a text in a Bloom filter with one hash, the capitals of ASCII made small.
///
/// It has as many bits as make a sixth to a third of them ones, and a power of two of them: a large filter becomes a
/// small one by laying its halves on each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature(Box<[u8]>);

const LEAST_BYTES: usize = 8;
const MOST_BYTES: usize = 16 << 10;

impl Signature {
    /// Summarises a text.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut bytes = vec![0u8; text.len().next_power_of_two().clamp(LEAST_BYTES, MOST_BYTES)];
        let mask = bytes.len() * 8 - 1;
        let mut trigram = 0;
        for (i, byte) in text.iter().enumerate() {
            trigram = next_trigram(trigram, *byte);
            if i >= 2 {
                let bit = place(trigram) & mask;
                bytes[bit / 8] |= 1 << (bit % 8);
            }
        }
        while bytes.len() > LEAST_BYTES && ones(&bytes) * 6 <= bytes.len() * 8 {
            let half = bytes.len() / 2;
            let (first, second) = bytes.split_at_mut(half);
            first.iter_mut().zip(second).for_each(|(one, other)| *one |= *other);
            bytes.truncate(half);
        }
        Self(bytes.into())
    }

    /// Takes the bytes that a database kept; none if they are no signature of ours.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        is_signature(bytes).then(|| Self(bytes.into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn is_signature(bytes: &[u8]) -> bool {
    bytes.len().is_power_of_two() && (LEAST_BYTES..=MOST_BYTES).contains(&bytes.len())
}

/// What a signature must say for its text to be worth reading.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// All must hold; each is a choice of literals, each of them given by the places of its trigrams.
    requirements: Vec<Vec<Vec<usize>>>,
}

impl Filter {
    pub(crate) fn new(requirements: &[Requirement]) -> Self {
        let places = |literal: &Vec<u8>| -> Vec<usize> {
            literal
                .windows(3)
                .map(|three| place(three.iter().fold(0, |trigram, byte| next_trigram(trigram, *byte))))
                .collect()
        };
        let choices = |requirement: &Requirement| -> Option<Vec<Vec<usize>>> {
            let literals: Vec<_> = requirement.literals.iter().map(places).collect();
            // A literal without a trigram may be anywhere, so the whole choice tells nothing.
            (!literals.iter().any(Vec::is_empty)).then_some(literals)
        };
        Self { requirements: requirements.iter().filter_map(choices).collect() }
    }

    /// Whether it could rule out any text at all.
    pub(crate) fn is_selective(&self) -> bool {
        !self.requirements.is_empty()
    }

    /// Whether a text with this signature may have what is required. Bytes that are no signature rule nothing out.
    pub(crate) fn admits(&self, signature: &[u8]) -> bool {
        if !is_signature(signature) {
            return true;
        }
        let mask = signature.len() * 8 - 1;
        let has = |place: &usize| {
            let bit = place & mask;
            signature[bit / 8] & (1 << (bit % 8)) != 0
        };
        self.requirements.iter().all(|choice| choice.iter().any(|literal| literal.iter().all(has)))
    }
}

fn next_trigram(trigram: u32, byte: u8) -> u32 {
    (trigram << 8 | u32::from(byte.to_ascii_lowercase())) & 0x00ff_ffff
}

/// Spreads trigrams over the bits: each bit of the result depends on the whole trigram.
fn place(trigram: u32) -> usize {
    (u64::from(trigram).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

fn ones(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| byte.count_ones() as usize).sum()
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
