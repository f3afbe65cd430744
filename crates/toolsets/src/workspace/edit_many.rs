use super::edit::{self, Args, Output};
use async_trait::async_trait;
use toolrest_core::{Action, CallCx, Result, Tool};
use toolrest_ops::Occurrences;

pub(super) struct EditMany;

#[async_trait]
impl Tool for EditMany {
    const NAME: &'static str = "edit-many";
    const DESCRIPTION: &'static str = "Replace every occurrence of a text in a file";
    const ACTION: Action = Action::Write;
    type Args = Args;
    type Output = Output;

    fn is_dry_run(&self, args: &Args) -> bool {
        args.is_dry_run()
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        edit::run(cx, args, Occurrences::All).await
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(edit::text(output))
    }
}
