//! Running programs in a folder.

mod aside;
mod conflicts;
mod findings;
mod moves;

use super::FolderWorkspace;
use aside::Aside;
use toolrest_core::{Checkout, CheckoutMode, CheckoutOptions, ErrorKind, Result, ToolError};

impl FolderWorkspace {
    pub(super) async fn check_out_folder(&self, options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        self.store.authorise(self.access).await?;
        let (workspace, keep) = (self.clone(), options.keep);
        match options.mode {
            CheckoutMode::Aside => {
                let open = move || Aside::open(workspace, keep);
                let opened = tokio::task::spawn_blocking(open).await.map_err(ToolError::internal)?;
                Ok(Box::new(opened?))
            }
            CheckoutMode::InPlace => {
                Err(ToolError::new(ErrorKind::Unavailable, "Programs cannot run in place in this workspace"))
            }
        }
    }
}
