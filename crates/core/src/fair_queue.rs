//! A queue for a limited number of slots, shared fairly between accounts and between workspaces.

use crate::{UserId, WorkspaceId};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

/// Maximum numbers of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Of the whole queue.
    pub in_all: usize,
    /// Of one account, over all its workspaces.
    pub per_account: usize,
    /// Of one workspace, over all its accounts.
    pub per_workspace: usize,
}

/// The error when a limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// What the limit applies to.
    pub scope: LimitScope,
    /// The limit, which is also the number of slots in use.
    pub limit: usize,
}

/// What a limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitScope {
    /// One workspace.
    Workspace,
    /// One account.
    Account,
    /// The whole queue.
    Server,
}

/// The load of a queue at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Slots in use.
    pub taken: usize,
    /// Callers that wait for a slot.
    pub waiting: usize,
}

impl std::ops::Add for QueueDepth {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { taken: self.taken + other.taken, waiting: self.waiting + other.waiting }
    }
}

/// Grants slots.
///
/// The caller that receives a free slot is chosen in three steps:
///
/// 1. The waiting account that holds the fewest slots; of several, the least recently served one.
/// 2. One of the account's workspaces, by the same rule.
/// 3. The first waiting caller in that workspace.
///
/// So an account with many waiting callers delays another account by at most one slot. Accounts and workspaces take
/// memory only while they hold a slot or wait for one.
#[derive(Clone)]
pub struct FairQueue {
    limits: QueueLimits,
    state: Arc<Mutex<State>>,
}

/// A slot, returned when dropped.
pub struct QueueSlot {
    /// `None` disables the return on drop, for a slot that was not delivered and that `FairQueue::serve` has returned
    /// itself.
    queue: Option<FairQueue>,
    account: UserId,
    workspace: WorkspaceId,
}

#[derive(Default)]
struct State {
    taken: usize,
    accounts: HashMap<UserId, Account>,
    workspaces: HashMap<WorkspaceId, usize>,
    /// Logical clock: counts arrivals and grants.
    clock: u64,
}

#[derive(Default)]
struct Account {
    taken: usize,
    served_at: u64,
    waiting: HashMap<WorkspaceId, WaitingCallers>,
}

/// The callers of one account that wait for a slot in one workspace, in the order of arrival.
#[derive(Default)]
struct WaitingCallers {
    served_at: u64,
    callers: VecDeque<WaitingCaller>,
}

struct WaitingCaller {
    ticket: u64,
    grant: oneshot::Sender<QueueSlot>,
}

impl FairQueue {
    /// Creates a queue.
    #[must_use]
    pub fn new(limits: QueueLimits) -> Self {
        Self { limits, state: Arc::default() }
    }

    /// Takes a slot if one is free; otherwise returns the limit that is reached.
    pub fn try_enter(&self, account: UserId, workspace: WorkspaceId) -> Result<QueueSlot, Full> {
        let mut state = self.lock();
        state.check(&self.limits, account, workspace)?;
        // No waiting caller is overtaken: callers now wait only because of a limit of their own account or workspace.
        state.take(account, workspace);
        Ok(self.slot(account, workspace))
    }

    /// Waits for a slot.
    pub async fn enter(&self, account: UserId, workspace: WorkspaceId) -> QueueSlot {
        let (leave, granted) = {
            let mut state = self.lock();
            if state.check(&self.limits, account, workspace).is_ok() {
                state.take(account, workspace);
                return self.slot(account, workspace);
            }
            let (grant, granted) = oneshot::channel();
            let ticket = state.tick();
            let line = state.accounts.entry(account).or_default().waiting.entry(workspace).or_default();
            line.callers.push_back(WaitingCaller { ticket, grant });
            (LeaveOnDrop { queue: self, account, workspace, ticket }, granted)
        };
        let slot = granted.await;
        drop(leave);
        // Never an error: only `leave` drops a sender without sending, and `leave` is dropped after the wait.
        slot.unwrap_or_else(|_| QueueSlot { queue: None, account, workspace })
    }

    /// Returns how many slots are in use, and how many callers wait.
    pub fn depth(&self) -> QueueDepth {
        let state = self.lock();
        let lines = state.accounts.values().flat_map(|account| account.waiting.values());
        QueueDepth { taken: state.taken, waiting: lines.map(|line| line.callers.len()).sum() }
    }

    fn slot(&self, account: UserId, workspace: WorkspaceId) -> QueueSlot {
        QueueSlot { queue: Some(self.clone()), account, workspace }
    }

    /// Grants free slots to waiting callers, until none can be granted.
    fn serve(&self, state: &mut State) {
        while let Some((account, workspace, grant)) = state.next(&self.limits) {
            state.take(account, workspace);
            if let Err(mut undelivered) = grant.send(self.slot(account, workspace)) {
                // The slot must not return itself while the state is locked.
                undelivered.queue = None;
                state.give_back(account, workspace);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn is_idle(&self) -> bool {
        let state = self.lock();
        state.taken == 0 && state.accounts.is_empty() && state.workspaces.is_empty()
    }
}

impl State {
    fn check(&self, limits: &QueueLimits, account: UserId, workspace: WorkspaceId) -> Result<(), Full> {
        let of_workspace = self.workspaces.get(&workspace).copied().unwrap_or(0);
        let of_account = self.accounts.get(&account).map_or(0, |account| account.taken);
        let full = |scope, limit| Err(Full { scope, limit });
        match () {
            () if of_workspace >= limits.per_workspace => full(LimitScope::Workspace, limits.per_workspace),
            () if of_account >= limits.per_account => full(LimitScope::Account, limits.per_account),
            () if self.taken >= limits.in_all => full(LimitScope::Server, limits.in_all),
            () => Ok(()),
        }
    }

    /// Removes the next caller from the queue, if a slot can be granted.
    fn next(&mut self, limits: &QueueLimits) -> Option<(UserId, WorkspaceId, oneshot::Sender<QueueSlot>)> {
        if self.taken >= limits.in_all {
            return None;
        }
        let taken_in = |workspace: &WorkspaceId| self.workspaces.get(workspace).copied().unwrap_or(0);
        let next_line = |account: &Account| {
            let open = account.waiting.iter().filter(|(workspace, _)| taken_in(workspace) < limits.per_workspace);
            let order =
                open.map(|(id, line)| (taken_in(id), line.served_at, line.callers.front().map(|w| w.ticket), *id));
            order.min().map(|(_, _, ticket, workspace)| (ticket, workspace))
        };
        let open = self.accounts.iter().filter(|(_, account)| account.taken < limits.per_account);
        let order = open.filter_map(|(id, account)| {
            let (ticket, workspace) = next_line(account)?;
            Some((account.taken, account.served_at, ticket, *id, workspace))
        });
        let (_, _, _, account, workspace) = order.min()?;
        let now = self.tick();
        let waiting = &mut self.accounts.get_mut(&account)?.waiting;
        let line = waiting.get_mut(&workspace)?;
        line.served_at = now;
        let caller = line.callers.pop_front();
        if line.callers.is_empty() {
            waiting.remove(&workspace);
        }
        caller.map(|caller| (account, workspace, caller.grant))
    }

    fn take(&mut self, account: UserId, workspace: WorkspaceId) {
        let now = self.tick();
        self.taken += 1;
        *self.workspaces.entry(workspace).or_default() += 1;
        let account = self.accounts.entry(account).or_default();
        account.taken += 1;
        account.served_at = now;
    }

    fn give_back(&mut self, account: UserId, workspace: WorkspaceId) {
        self.taken -= 1;
        if let Some(taken) = self.workspaces.get_mut(&workspace) {
            *taken -= 1;
            if *taken == 0 {
                self.workspaces.remove(&workspace);
            }
        }
        if let Some(known) = self.accounts.get_mut(&account) {
            known.taken -= 1;
        }
        self.forget_if_idle(account);
    }

    fn forget_if_idle(&mut self, account: UserId) {
        if self.accounts.get(&account).is_some_and(|known| known.taken == 0 && known.waiting.is_empty()) {
            self.accounts.remove(&account);
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let mut state = queue.lock();
            state.give_back(self.account, self.workspace);
            queue.serve(&mut state);
        }
    }
}

/// Removes a caller from the queue when the caller stops waiting.
struct LeaveOnDrop<'a> {
    queue: &'a FairQueue,
    account: UserId,
    workspace: WorkspaceId,
    ticket: u64,
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if let Some(account) = state.accounts.get_mut(&self.account)
            && let Some(line) = account.waiting.get_mut(&self.workspace)
        {
            line.callers.retain(|waiting| waiting.ticket != self.ticket);
            if line.callers.is_empty() {
                account.waiting.remove(&self.workspace);
            }
        }
        state.forget_if_idle(self.account);
    }
}

#[cfg(test)]
#[path = "fair_queue_tests.rs"]
mod tests;
