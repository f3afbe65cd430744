//! Running programs in a folder.

mod in_place;
mod isolated;
mod merge_result;
mod moves;
mod private_dir;
mod snapshot;

use super::FolderWorkspace;
use in_place::InPlaceCheckout;
use isolated::IsolatedCheckout;
use toolrest_core::{Checkout, CheckoutMode, CheckoutOptions, Result, ToolError};
use toolrest_store::unreadable_settings;

impl FolderWorkspace {
    pub(super) async fn check_out_folder(&self, options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        let settings = self.store.workspace(self.access).await?.settings.ok_or_else(unreadable_settings)?;
        let (workspace, keep) = (self.clone(), options.keep);
        let open = move || -> Result<Box<dyn Checkout>> {
            Ok(match options.mode {
                CheckoutMode::Isolated => Box::new(IsolatedCheckout::open(workspace, settings, keep)?),
                CheckoutMode::InPlace => Box::new(InPlaceCheckout::open(workspace, settings, keep)?),
            })
        };
        tokio::task::spawn_blocking(open).await.map_err(ToolError::internal)?
    }
}
