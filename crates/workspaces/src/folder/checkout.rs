//! Checkouts of folders.

mod in_place;
mod isolated;
mod layer_changes;
mod private_dir;
mod snapshot;

use super::FolderWorkspace;
use super::disk::shown;
use in_place::InPlaceCheckout;
use isolated::IsolatedCheckout;
use std::path::Path;
use toolrest_core::{Checkout, CheckoutMode, CheckoutOptions, LeftOut, LeftOutReason, Result, ToolError};
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

/// The list of what is not part of a commit.
#[derive(Default)]
struct LeftOutReport(Vec<LeftOut>);

impl LeftOutReport {
    fn add(&mut self, path: &Path, reason: LeftOutReason) {
        // A full commit can leave out very many files, so only their folders are reported.
        let path = match reason {
            LeftOutReason::TooMuch => path.parent().unwrap_or(path),
            _ => path,
        };
        let left_out = LeftOut { path: shown(path), reason };
        if self.0.last() != Some(&left_out) {
            self.0.push(left_out);
        }
    }
}
