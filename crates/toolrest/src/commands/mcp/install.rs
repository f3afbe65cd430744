//! `toolrest mcp install`: adds Toolrest to the configuration of an agent.

mod toml_section;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::Action;

/// The name under which the agents list the server.
const NAME: &str = "toolrest";

/// The agents whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
    Opencode,
    Gemini,
}

/// Where an agent has its servers.
struct Place {
    file: PathBuf,
    /// The member of the file that holds the servers.
    section: &'static str,
}

/// The folders of the user in which agents keep their configuration.
struct UserFolders {
    home: PathBuf,
    config: PathBuf,
}

impl UserFolders {
    fn of_environment() -> Result<Self, String> {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME").ok_or("the variable HOME does not name a folder")?;
        let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Ok(Self { home, config })
    }
}

impl Client {
    fn place(self, user: &UserFolders) -> Place {
        let (file, section) = match self {
            Self::ClaudeCode => (user.home.join(".claude.json"), "mcpServers"),
            Self::ClaudeDesktop => (user.config.join("Claude/claude_desktop_config.json"), "mcpServers"),
            Self::Cursor => (user.home.join(".cursor/mcp.json"), "mcpServers"),
            Self::Vscode => (user.config.join("Code/User/mcp.json"), "servers"),
            Self::Codex => (user.home.join(".codex/config.toml"), "mcp_servers"),
            Self::Opencode => (user.config.join("opencode/opencode.json"), "mcp"),
            Self::Gemini => (user.home.join(".gemini/settings.json"), "mcpServers"),
        };
        Place { file, section }
    }

    /// Whether the agent starts its servers in the folder that it is opened in.
    fn starts_in_its_folder(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex | Self::Opencode | Self::Gemini)
    }

    /// Returns the entry of the server.
    fn entry(self, program: &str, arguments: &[String]) -> Value {
        match self {
            Self::Opencode => {
                let command: Vec<&str> = [program].into_iter().chain(arguments.iter().map(String::as_str)).collect();
                json!({ "type": "local", "command": command, "enabled": true })
            }
            Self::ClaudeCode | Self::Vscode => json!({ "type": "stdio", "command": program, "args": arguments }),
            _ => json!({ "command": program, "args": arguments }),
        }
    }

    /// Returns the folder that is named in the configuration.
    fn folder(self, dir: Option<&Path>) -> Result<Option<String>, String> {
        match dir {
            None if self.starts_in_its_folder() => Ok(None),
            // Expanded by these two.
            None if matches!(self, Self::Vscode | Self::Cursor) => Ok(Some("${workspaceFolder}".to_owned())),
            None => Err("Claude Desktop does not work in a folder; name one with --dir".to_owned()),
            Some(dir) => {
                let real = dir.canonicalize();
                let real = real.map_err(|error| format!("cannot open the folder {}: {error}", dir.display()))?;
                let text = real.to_str().ok_or_else(|| format!("the path {} is not UTF-8", real.display()))?;
                Ok(Some(text.to_owned()))
            }
        }
    }
}

/// Shows the change of an agent's configuration, and makes it unless it should only be printed.
pub(crate) fn install(action: Action) -> Result<(), String> {
    let Action::Install { client, dir, print } = action;
    let Place { file, section } = client.place(&UserFolders::of_environment()?);
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let program = program.to_str().ok_or("the path of this program is not UTF-8")?;
    let folder = client.folder(dir.as_deref())?;
    let arguments: Vec<String> = ["mcp".to_owned()]
        .into_iter()
        .chain(folder.into_iter().flat_map(|folder| ["--dir".to_owned(), folder]))
        .collect();

    // A link of dotfiles is kept, and what it leads to is changed.
    let file = file.canonicalize().unwrap_or(file);
    let before = read(&file)?;
    let after = if client == Client::Codex {
        toml_section::with(&before, &format!("{section}.{NAME}"), program, &arguments)
            .map_err(|error| format!("cannot change {}: {error}", file.display()))?
    } else {
        with_entry(&before, section, client.entry(program, &arguments))
            .map_err(|error| format!("cannot change {}: {error}", file.display()))?
    };
    if before == after {
        eprintln!("{} has this entry already.", file.display());
        return Ok(());
    }
    println!("{}", shown(&file, &before, &after));
    if print {
        return Ok(());
    }
    write(&file, &before, &after)?;
    eprintln!("Changed {}. Restart the agent to use it.", file.display());
    Ok(())
}

/// Returns the content of a configuration; empty if there is none.
fn read(file: &Path) -> Result<String, String> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("cannot read {}: {error}", file.display())),
    }
}

/// Writes a configuration at once, with its permissions, unless somebody has changed it meanwhile.
fn write(file: &Path, before: &str, after: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut written = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    std::io::Write::write_all(&mut written, after.as_bytes()).map_err(failed)?;
    if let Ok(metadata) = fs::metadata(file) {
        fs::set_permissions(written.path(), metadata.permissions()).map_err(failed)?;
    }
    if read(file)? != before {
        return Err(format!("{} was changed by another program; try again", file.display()));
    }
    written.as_file().sync_all().map_err(failed)?;
    written.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Returns a JSON configuration with the entry, and everything else as it was.
fn with_entry(text: &str, section: &str, entry: Value) -> Result<String, String> {
    let mut config: Map<String, Value> = if text.trim().is_empty() {
        Map::new()
    } else {
        let hint = "it must be JSON without comments; add the entry by hand, as --print on an empty file shows it";
        serde_json::from_str(text).map_err(|error| format!("{error}; {hint}"))?
    };
    let servers = config.entry(section).or_insert_with(|| json!({}));
    let servers = servers.as_object_mut().ok_or_else(|| format!("`{section}` is not an object"))?;
    if servers.get(NAME) == Some(&entry) {
        return Ok(text.to_owned());
    }
    servers.insert(NAME.to_owned(), entry);
    let mut written = serde_json::to_string_pretty(&config).map_err(|error| error.to_string())?;
    written.push('\n');
    Ok(written)
}

/// Returns the lines that change, as a diff.
fn shown(file: &Path, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let removed = old_rest[..old_rest.len() - tail].iter().map(|line| format!("-{line}"));
    let added = new_rest[..new_rest.len() - tail].iter().map(|line| format!("+{line}"));
    let lines: Vec<String> = removed.chain(added).collect();
    format!("{}\n@@ line {} @@\n{}", file.display(), same + 1, lines.join("\n"))
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
