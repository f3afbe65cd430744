//! `toolrest tools`: shows the tools and their schemas.

use super::Output;
use super::failure::{Failure, Outcome};
use super::target::{Programs, TargetOptions};
use super::terminal::{Table, print_json};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use toolrest::core::{CatalogueFormat, Toolset};
use toolrest::toolsets::{self, Services};

#[derive(Args)]
pub(crate) struct ToolsArgs {
    /// Only this toolset
    toolset: Option<String>,
    /// Print the schemas as a kind of client takes them, as JSON
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// OpenAI's function definitions
    Openai,
    /// Anthropic's tool definitions
    Anthropic,
    /// The Model Context Protocol's tool list
    Mcp,
    /// Everything, with the schemas of answers
    Native,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
            Self::Native => "native",
        }
    }
}

pub(super) async fn run(args: ToolsArgs, output: Output) -> Outcome {
    let format = args.format.unwrap_or(Format::Native);
    let toolset = args.toolset.as_deref();
    let catalogues = if args.target.names_server() && !args.target.is_folder() {
        from_server(args.target.clone(), toolset, format).await?
    } else {
        built_in(toolset, format)?
    };
    if args.format.is_some() || output.json {
        let document = match (&catalogues[..], toolset) {
            ([only], Some(_)) => only.clone(),
            _ => json!({ "toolsets": catalogues }),
        };
        return print_json(&document);
    }
    let mut table = Table::new(&["tool", "description"]);
    for catalogue in &catalogues {
        for tool in catalogue["tools"].as_array().into_iter().flatten() {
            let text = |name: &str| tool[name].as_str().unwrap_or_default();
            let about = text("description");
            let about = about.split_once(". ").map_or(about, |(first, _)| first);
            let name = format!("{}/{}", catalogue["toolset"].as_str().unwrap_or_default(), text("name"));
            table.row(&[name, super::terminal::one_line(about, 100)]);
        }
    }
    table.print(output.color)
}

async fn from_server(target: TargetOptions, toolset: Option<&str>, format: Format) -> Outcome<Vec<Value>> {
    let client = target.connect(Programs::None).await?;
    let names = if let Some(name) = toolset {
        vec![name.to_owned()]
    } else {
        let listed = client.get("/toolsets").await?;
        let listed = listed["toolsets"].as_array().cloned().unwrap_or_default();
        listed.iter().filter_map(|toolset| toolset["name"].as_str().map(str::to_owned)).collect()
    };
    let mut catalogues = Vec::new();
    for name in names {
        let path = format!("/toolsets/{}?format={}", super::encoded(&name), format.name());
        catalogues.push(client.get(&path).await?);
    }
    Ok(catalogues)
}

/// Returns the tools of this program, which need neither a folder nor a server to be shown.
fn built_in(toolset: Option<&str>, format: Format) -> Outcome<Vec<Value>> {
    let format: CatalogueFormat =
        format.name().parse().map_err(|error: toolrest::core::ToolError| Failure::Failed(error.message))?;
    let toolsets = toolsets::all(&Services::none());
    let Some(name) = toolset else { return Ok(toolsets.iter().map(|toolset| toolset.catalogue(format)).collect()) };
    let found = toolsets.find(name).ok_or_else(|| {
        let names: Vec<&str> = toolsets.iter().map(Toolset::name).collect();
        Failure::NotFound(format!("there is no toolset '{name}'; there are {}", names.join(", ")))
    })?;
    Ok(vec![found.catalogue(format)])
}
