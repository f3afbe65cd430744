//! A workspace, and programs that work on it.

use crate::test_workspace::{TestWorkspace, path};
use std::fs::{self};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use toolrest_core::{
    CallCx, Caller, Change, CheckedIn, Checkout, CheckoutMode, CheckoutOptions, Content, Engine, ExecutionRoot,
    FileType, JsonText, KeepLimits, LeftOutReason, Limits, NoRecords, NoRules, Parents, ProgramChangeKind, Put, Role,
    Toolsets, UserId,
};
use toolrest_workspaces::{CheckoutRetention, FolderOptions, Scratch, StoredWorkspaces};

pub(crate) struct Scene {
    pub(crate) room: TestWorkspace,
    pub(crate) engine: Engine,
    pub(crate) scratch: TempDir,
}

impl Scene {
    pub(crate) fn of(room: &TestWorkspace) -> Self {
        Self::keeping(room, CheckoutRetention::default())
    }

    pub(crate) fn keeping(room: &TestWorkspace, kept: CheckoutRetention) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let own = Scratch::open(scratch.path()).unwrap();
        let workspaces = StoredWorkspaces::new(Arc::clone(&room.store), FolderOptions::default(), own).keeping(kept);
        let (policy, recorder) = (Arc::new(NoRules), Arc::new(NoRecords));
        let engine = Engine::new(Toolsets::default(), Arc::new(workspaces), policy, recorder, Limits::default());
        Self { room: room.clone(), engine, scratch }
    }

    pub(crate) async fn cx(&self) -> CallCx {
        self.cx_of(self.room.user, Role::Editor).await
    }

    pub(crate) async fn cx_of(&self, user: UserId, need: Role) -> CallCx {
        self.engine.rest_context("test", self.room.workspace, Caller::person(user), need).await.unwrap()
    }

    pub(crate) async fn check_out(&self) -> Program {
        self.check_out_keeping(KeepLimits::default()).await
    }

    pub(crate) async fn check_out_keeping(&self, keep: KeepLimits) -> Program {
        let cx = self.cx().await;
        let checkout = cx.workspace.check_out(CheckoutOptions { mode: CheckoutMode::Isolated, keep }).await.unwrap();
        let ExecutionRoot::Folder(folder) = checkout.execution_root() else { panic!("no folder") };
        Program { cx, checkout, folder: folder.path }
    }

    /// Runs something as a program would, from beginning to end.
    pub(crate) async fn run(&self, program: impl FnOnce(&Path)) -> CheckedIn {
        let running = self.check_out().await;
        program(&running.folder);
        running.finish().await
    }

    /// The folders that were made.
    pub(crate) fn folders(&self) -> usize {
        let own = fs::read_dir(self.scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        own.flat_map(|own| fs::read_dir(own).unwrap()).filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    }
}

pub(crate) struct Program {
    pub(crate) cx: CallCx,
    pub(crate) checkout: Box<dyn Checkout>,
    pub(crate) folder: PathBuf,
}

impl Program {
    pub(crate) async fn finish(self) -> CheckedIn {
        self.checkout.finish(&self.cx).await.unwrap()
    }

    pub(crate) async fn check_in(&mut self) -> CheckedIn {
        self.checkout.check_in(&self.cx).await.unwrap()
    }

    pub(crate) fn write(&self, at: &str, text: &str) {
        fs::write(self.folder.join(at), text).unwrap();
    }

    pub(crate) fn text(&self, at: &str) -> String {
        fs::read_to_string(self.folder.join(at)).unwrap()
    }

    pub(crate) fn has(&self, at: &str) -> bool {
        self.folder.join(at).symlink_metadata().is_ok()
    }
}

/// What was changed, in a few letters.
pub(crate) fn changed(checked_in: &CheckedIn) -> Vec<String> {
    let letter = |change| match change {
        ProgramChangeKind::Created => '+',
        ProgramChangeKind::Changed => '~',
        ProgramChangeKind::Moved => '>',
        ProgramChangeKind::Removed => '-',
    };
    let shown = |from: &Option<toolrest_core::WsPath>| from.as_ref().map_or(String::new(), |from| format!(" <{from}"));
    checked_in.changed.iter().map(|one| format!("{}{}{}", letter(one.change), one.path, shown(&one.from))).collect()
}

pub(crate) fn left_out(checked_in: &CheckedIn) -> Vec<(&str, LeftOutReason)> {
    checked_in.left_out.iter().map(|left| (&*left.path, left.reason)).collect()
}

pub(crate) fn put_as(at: &str, file_type: FileType, content: Content) -> Change {
    Change::Put(Put { path: path(at), file_type, content, parents: Parents::Create, executable: None })
}

pub(crate) fn json(text: &str) -> Content {
    Content::Json(JsonText::parse(text.to_owned()).unwrap())
}

pub(crate) fn mode(at: &Path) -> u32 {
    fs::symlink_metadata(at).unwrap().mode() & 0o7777
}

/// Waits for something that another thread does.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap();
}
