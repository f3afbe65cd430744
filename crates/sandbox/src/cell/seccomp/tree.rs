//! A seccomp filter as a binary search tree.
//!
//! A linear chain of comparisons would be slow to install: the kernel evaluates a filter for every system call number
//! at installation. That would take as long as all other steps of the set-up together.

use libc::c_long;
use rustix::io::Errno;
use seccompiler::{BpfProgram, sock_filter};

/// The result of the filter for a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    Fail(Errno),
    /// For other architectures, whose numbers have other meanings.
    Kill,
}

/// Offsets of the call number and the architecture in the filter's input.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const THIS_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_ARCHITECTURE: u32 = 0xc000_00b7;

const LOAD: u16 = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
const EQUAL: u16 = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
const AT_LEAST: u16 = code(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K);
const JUMP: u16 = code(libc::BPF_JMP | libc::BPF_JA);
const RETURN: u16 = code(libc::BPF_RET | libc::BPF_K);

#[allow(clippy::cast_possible_truncation, reason = "the codes of instructions are 16 bits")]
const fn code(bits: u32) -> u16 {
    bits as u16
}

/// Call numbers from `first` up to the next range, with one answer.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u32,
    answer: Answer,
}

/// Compiles a filter from the answers per call and the answer for all other calls.
pub(super) fn compile(answers: impl Iterator<Item = (c_long, Answer)>, otherwise: Answer) -> BpfProgram {
    let mut program = vec![
        instruction(LOAD, 0, 0, ARCHITECTURE),
        instruction(EQUAL, 1, 0, THIS_ARCHITECTURE),
        leaf(Answer::Kill),
        instruction(LOAD, 0, 0, NUMBER),
    ];
    program.extend(branch(&ranges(answers, otherwise)));
    program
}

/// Merges neighbouring calls with the same answer, starting at 0.
fn ranges(answers: impl Iterator<Item = (c_long, Answer)>, otherwise: Answer) -> Vec<Range> {
    let mut answers: Vec<(u32, Answer)> =
        answers.filter_map(|(call, answer)| Some((u32::try_from(call).ok()?, answer))).collect();
    answers.sort_by_key(|(call, _)| *call);
    let mut ranges = Vec::new();
    let mut push = |first, answer| {
        if ranges.last().is_none_or(|last: &Range| last.answer != answer) {
            ranges.push(Range { first, answer });
        }
    };
    let mut next = 0;
    for (call, answer) in answers {
        if call > next {
            push(next, otherwise);
        }
        push(call, answer);
        next = call + 1;
    }
    push(next, otherwise);
    ranges
}

fn branch(ranges: &[Range]) -> Vec<sock_filter> {
    if let [range] = ranges {
        return vec![leaf(range.answer)];
    }
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let (first, lower, upper) = (upper[0].first, branch(lower), branch(upper));
    let mut code = if let Ok(skipped) = u8::try_from(lower.len()) {
        vec![instruction(AT_LEAST, skipped, 0, first)]
    } else {
        // Too far for a conditional jump, so an unconditional one follows.
        let skipped = u32::try_from(lower.len()).unwrap_or(u32::MAX);
        vec![instruction(AT_LEAST, 0, 1, first), instruction(JUMP, 0, 0, skipped)]
    };
    code.extend(lower);
    code.extend(upper);
    code
}

fn leaf(answer: Answer) -> sock_filter {
    let value = match answer {
        Answer::Allow => libc::SECCOMP_RET_ALLOW,
        Answer::Fail(errno) => libc::SECCOMP_RET_ERRNO | errno.raw_os_error().unsigned_abs(),
        Answer::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    };
    instruction(RETURN, 0, 0, value)
}

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tree_tests;
