//! Changes the arguments of a waiting call in the user's editor.

use super::super::Output;
use super::super::failure::{Failure, Outcome};
use super::super::target::{Client, variable};
use super::super::terminal::{Paint, can_ask, confirm, visible};
use super::path_of;
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// Edited arguments, which the person has confirmed.
pub(super) struct Edited {
    pub(super) args: Value,
    /// The token of the preview that the person saw.
    pub(super) preview: String,
}

/// Has the arguments edited, shows what the call would do with them, and asks for confirmation. Returns none if they were
/// left as they are.
pub(super) async fn edit(client: &Client, approval: &Value, yes: bool, output: Output) -> Outcome<Option<Edited>> {
    if !yes && !can_ask() {
        let message = "the changed call must be confirmed on a terminal; add --yes to decide without looking at it";
        return Err(Failure::Usage(message.to_owned()));
    }
    let args = edited_text(&approval["args"])?;
    if args == approval["args"] {
        eprintln!("The arguments were not changed.");
        return Ok(None);
    }
    let path = path_of(client, approval["id"].as_str().unwrap_or_default()).await?;
    let preview = client.post(&format!("{path}/preview"), &json!({ "args": args })).await?;
    let paint = Paint::new(output.color, &io::stderr());
    eprintln!("\nWith the changed arguments:\n");
    if let Some(command) = preview["command"].as_str() {
        eprintln!("{}", visible(command));
    }
    eprint!("{}", paint.diff(preview["diff"].as_str().unwrap_or_default()));
    for ask in preview["asks"].as_array().into_iter().flatten() {
        let part = |name: &str| visible(ask[name].as_str().unwrap_or_default()).into_owned();
        eprintln!("asks {} {}: {}", part("action"), part("subject"), part("because"));
    }
    if !yes && !confirm("Run the changed call?")? {
        return Err(Failure::Failed("nothing was decided".to_owned()));
    }
    let preview = preview["preview"].as_str().unwrap_or_default().to_owned();
    Ok(Some(Edited { args, preview }))
}

/// Returns the arguments as the person left them in the editor. On a terminal, text that is not JSON is edited again.
fn edited_text(args: &Value) -> Outcome<Value> {
    let mut file = tempfile::Builder::new()
        .prefix("toolrest-args-")
        .suffix(".json")
        .tempfile()
        .map_err(Failure::io("cannot make a file for the editor"))?;
    let text = serde_json::to_string_pretty(args).map_err(|error| Failure::Failed(error.to_string()))?;
    writeln!(file, "{text}")
        .and_then(|()| file.flush())
        .map_err(Failure::io("cannot write the file for the editor"))?;
    loop {
        run_editor(file.path())?;
        // Read by its name: editors replace the file.
        let text = fs::read_to_string(file.path()).map_err(Failure::io("cannot read what the editor wrote"))?;
        let problem = match serde_json::from_str(&text) {
            Ok(value @ Value::Object(_)) => return Ok(value),
            Ok(_) => "it is not a JSON object".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("the edited arguments cannot be used: {problem}");
        if !can_ask() || !confirm(&format!("{message}. Edit again?"))? {
            return Err(Failure::Usage(format!("{message}; nothing was decided")));
        }
    }
}

/// Runs the user's editor on a file, as git does: the variable may have arguments.
fn run_editor(file: &Path) -> Outcome {
    let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    #[allow(clippy::disallowed_methods, reason = "the user's own editor, which no tool reaches")]
    let status = std::process::Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Failed(format!("the editor `{editor}` ended with {status}; nothing was decided"))),
        Err(error) => Err(Failure::Failed(format!("cannot start the editor `{editor}`: {error}; set EDITOR"))),
    }
}
