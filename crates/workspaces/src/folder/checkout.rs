//! Running programs in a folder.

mod aside;
mod findings;
mod in_place;
mod moves;
mod private;
mod snapshot;

use super::FolderWorkspace;
use aside::Aside;
use in_place::InPlace;
use toolrest_core::{Checkout, CheckoutMode, CheckoutOptions, Result, ToolError};
use toolrest_store::unreadable_settings;

impl FolderWorkspace {
    pub(super) async fn check_out_folder(&self, options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        let settings = self.store.workspace(self.access).await?.settings.ok_or_else(unreadable_settings)?;
        let (workspace, keep) = (self.clone(), options.keep);
        let open = move || -> Result<Box<dyn Checkout>> {
            Ok(match options.mode {
                CheckoutMode::Aside => Box::new(Aside::open(workspace, settings, keep)?),
                CheckoutMode::InPlace => Box::new(InPlace::open(workspace, settings, keep)?),
            })
        };
        tokio::task::spawn_blocking(open).await.map_err(ToolError::internal)?
    }
}
