//! Injects faults at chosen system calls, for unit tests. Each thread has its own.

use std::cell::{Cell, RefCell};

use rustix::io::{Errno, Result};

/// The fault at the chosen call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// This call fails.
    Fails(Errno),
    /// This call and all later ones fail, as if the process had been killed just before.
    Dies,
}

type Others = (usize, Box<dyn FnOnce()>);

thread_local! {
    static OTHERS: RefCell<Option<Others>> = const { RefCell::new(None) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static PLANNED: RefCell<Vec<(usize, Fault)>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with faults at some of its system calls, counted from zero. Returns the number of calls.
pub(crate) fn with_faults<T>(planned: &[(usize, Fault)], work: impl FnOnce() -> T) -> (T, usize) {
    CALLS.set(0);
    PLANNED.set(planned.to_vec());
    let result = work();
    PLANNED.take();
    (result, CALLS.get())
}

/// Runs `work`, and runs `others` right before one of its system calls. Returns whether that call was reached.
pub(crate) fn with_others<T>(call: usize, others: impl FnOnce() + 'static, work: impl FnOnce() -> T) -> (T, bool) {
    OTHERS.set(Some((call, Box::new(others))));
    let (result, calls) = with_faults(&[], work);
    OTHERS.take();
    (result, calls > call)
}

pub(super) fn fault_point() -> Result<()> {
    let call = CALLS.replace(CALLS.get() + 1);
    if let Some((_, others)) = OTHERS.with_borrow_mut(|others| others.take_if(|(at, _)| *at == call)) {
        others();
    }
    PLANNED.with_borrow(|planned| {
        planned.iter().try_for_each(|(at, fault)| match fault {
            Fault::Fails(errno) if call == *at => Err(*errno),
            Fault::Dies if call >= *at => Err(Errno::IO),
            _ => Ok(()),
        })
    })
}
