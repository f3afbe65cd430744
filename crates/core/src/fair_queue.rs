//! A bounded number of places, shared fairly between accounts and between their workspaces.

use crate::{UserId, WorkspaceId};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

/// How many places there are, and how many of them one account and one workspace may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// All places.
    pub in_all: usize,
    /// Most places of one account, over all workspaces that it works in.
    pub per_account: usize,
    /// Most places of one workspace, over all accounts that work in it.
    pub per_workspace: usize,
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// What the limit applies to.
    pub scope: Scope,
    /// The limit; as many places are taken.
    pub limit: usize,
}

/// What a limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One workspace.
    Workspace,
    /// One account.
    Account,
    /// The whole server.
    Server,
}

/// Hands out places.
///
/// A free place goes to the waiting account that holds the fewest places; of those, to the one that was served longest
/// ago; within an account by the same rule to one of its workspaces; within a workspace in the order of arrival. So an
/// account with many calls in many workspaces delays a newcomer by one place at most. Accounts and workspaces take
/// memory only while they hold a place or wait.
#[derive(Clone)]
pub struct FairQueue {
    places: QueueLimits,
    state: Arc<Mutex<State>>,
}

/// A place, returned when dropped.
pub struct QueueSlot {
    /// None if nobody received it: then whoever tried to hand it over returns it.
    queue: Option<FairQueue>,
    account: UserId,
    workspace: WorkspaceId,
}

#[derive(Default)]
struct State {
    taken: usize,
    accounts: HashMap<UserId, Account>,
    workspaces: HashMap<WorkspaceId, usize>,
    /// Counts arrivals and grants.
    clock: u64,
}

#[derive(Default)]
struct Account {
    taken: usize,
    served_at: u64,
    waiting: HashMap<WorkspaceId, Line>,
}

/// The callers of one account that wait for a place in one workspace, in the order of arrival.
#[derive(Default)]
struct Line {
    served_at: u64,
    callers: VecDeque<Waiting>,
}

struct Waiting {
    ticket: u64,
    grant: oneshot::Sender<QueueSlot>,
}

impl FairQueue {
    /// Makes a queue for so many places.
    #[must_use]
    pub fn new(places: QueueLimits) -> Self {
        Self { places, state: Arc::default() }
    }

    /// Takes a place if one is free, or tells which limit is reached.
    pub fn try_enter(&self, account: UserId, workspace: WorkspaceId) -> Result<QueueSlot, Full> {
        let mut state = self.lock();
        state.check(&self.places, account, workspace)?;
        // Nobody is passed by: whoever waits, waits because of a limit of its own account or workspace.
        state.take(account, workspace);
        Ok(self.place(account, workspace))
    }

    /// Waits for a place.
    pub async fn enter(&self, account: UserId, workspace: WorkspaceId) -> QueueSlot {
        let (leave, granted) = {
            let mut state = self.lock();
            if state.check(&self.places, account, workspace).is_ok() {
                state.take(account, workspace);
                return self.place(account, workspace);
            }
            let (grant, granted) = oneshot::channel();
            let ticket = state.tick();
            let line = state.accounts.entry(account).or_default().waiting.entry(workspace).or_default();
            line.callers.push_back(Waiting { ticket, grant });
            (Leave { queue: self, account, workspace, ticket }, granted)
        };
        let place = granted.await;
        drop(leave);
        // The sender is dropped without a place only by `leave`, after the wait.
        place.unwrap_or_else(|_| QueueSlot { queue: None, account, workspace })
    }

    fn place(&self, account: UserId, workspace: WorkspaceId) -> QueueSlot {
        QueueSlot { queue: Some(self.clone()), account, workspace }
    }

    /// Gives free places to those who wait, until no more fit.
    fn serve(&self, state: &mut State) {
        while let Some((account, workspace, grant)) = state.next(&self.places) {
            state.take(account, workspace);
            if let Err(mut unwanted) = grant.send(self.place(account, workspace)) {
                // It cannot return itself while the state is locked.
                unwanted.queue = None;
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
    fn check(&self, places: &QueueLimits, account: UserId, workspace: WorkspaceId) -> Result<(), Full> {
        let of_workspace = self.workspaces.get(&workspace).copied().unwrap_or(0);
        let of_account = self.accounts.get(&account).map_or(0, |account| account.taken);
        let full = |scope, limit| Err(Full { scope, limit });
        match () {
            () if of_workspace >= places.per_workspace => full(Scope::Workspace, places.per_workspace),
            () if of_account >= places.per_account => full(Scope::Account, places.per_account),
            () if self.taken >= places.in_all => full(Scope::Server, places.in_all),
            () => Ok(()),
        }
    }

    /// Takes the one whose turn it is out of the queue, if a place is free for anybody.
    fn next(&mut self, places: &QueueLimits) -> Option<(UserId, WorkspaceId, oneshot::Sender<QueueSlot>)> {
        if self.taken >= places.in_all {
            return None;
        }
        let taken_in = |workspace: &WorkspaceId| self.workspaces.get(workspace).copied().unwrap_or(0);
        let next_line = |account: &Account| {
            let open = account.waiting.iter().filter(|(workspace, _)| taken_in(workspace) < places.per_workspace);
            let order =
                open.map(|(id, line)| (taken_in(id), line.served_at, line.callers.front().map(|w| w.ticket), *id));
            order.min().map(|(_, _, ticket, workspace)| (ticket, workspace))
        };
        let open = self.accounts.iter().filter(|(_, account)| account.taken < places.per_account);
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

/// Takes a caller out of the queue who does not wait any longer.
struct Leave<'a> {
    queue: &'a FairQueue,
    account: UserId,
    workspace: WorkspaceId,
    ticket: u64,
}

impl Drop for Leave<'_> {
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
