use std::collections::BTreeMap;

use libc::c_long;
use rustix::io::Errno;
use seccompiler::sock_filter;

use super::{ARCHITECTURE, AT_LEAST, Answer, EQUAL, JUMP, LOAD, NUMBER, RETURN, THIS_ARCHITECTURE, compile};

/// Interprets the instructions that the filter uses.
fn evaluate(program: &[sock_filter], architecture: u32, number: u32) -> u32 {
    let (mut at, mut loaded) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        at += 1;
        match code {
            LOAD if k == NUMBER => loaded = number,
            LOAD if k == ARCHITECTURE => loaded = architecture,
            EQUAL => at += usize::from(if loaded == k { jt } else { jf }),
            AT_LEAST => at += usize::from(if loaded >= k { jt } else { jf }),
            JUMP => at += k as usize,
            RETURN => return k,
            code => panic!("unknown instruction {code:#x}"),
        }
    }
}

fn value(answer: Answer) -> u32 {
    super::leaf(answer).k
}

#[test]
fn every_call_gets_its_answer() {
    // Enough calls and gaps that some jumps are long.
    let answers: BTreeMap<c_long, Answer> = (0..1500)
        .filter(|call| call * 7919 % 13 < 7)
        .map(|call| (call, if call * 31 % 5 == 0 { Answer::Fail(Errno::PERM) } else { Answer::Allow }))
        .collect();
    let otherwise = Answer::Fail(Errno::NOSYS);
    let program = compile(answers.iter().map(|(call, answer)| (*call, *answer)), otherwise);
    for call in 0..2000 {
        let wanted = answers.get(&call).copied().unwrap_or(otherwise);
        let got = evaluate(&program, THIS_ARCHITECTURE, u32::try_from(call).unwrap());
        assert_eq!(got, value(wanted), "call {call}");
    }
    for call in [0x4000_0000, 0x4000_0027, u32::MAX] {
        assert_eq!(evaluate(&program, THIS_ARCHITECTURE, call), value(otherwise), "call {call:#x}");
    }
}

#[test]
fn calls_of_other_architectures_kill_the_process() {
    let program = compile([(20, Answer::Allow)].into_iter(), Answer::Allow);
    assert_eq!(evaluate(&program, 0x4000_0003, 20), value(Answer::Kill));
}
