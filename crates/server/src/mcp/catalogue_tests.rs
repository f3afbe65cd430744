use super::*;
use toolrest_toolsets::Services;

fn select(offer: &Offer) -> Result<OfferedTools, OfferError> {
    let toolsets = toolrest_toolsets::all(&Services::none());
    OfferedTools::new(&toolsets, &Schemas::new(&toolsets), offer, None)
}

fn offered(toolsets: &[&str]) -> OfferedTools {
    let toolsets = toolsets.iter().map(|&name| name.to_owned()).collect();
    select(&Offer { toolsets, ..Offer::default() }).unwrap()
}

#[test]
fn the_default_tools_are_those_of_agent() {
    assert_eq!(offered(&[]).names(), "read, ls, grep, edit, write, apply_patch, run, job, changes, undo, web_fetch");
}

#[test]
fn tools_with_the_same_name_get_the_name_of_their_toolset() {
    let tools = offered(&["coding", "workspace", "system"]);
    assert_eq!(tools.find("coding_read").unwrap().toolset, "coding");
    assert_eq!(tools.find("workspace_read").unwrap().toolset, "workspace");
    assert_eq!(tools.find("read_file").unwrap().toolset, "system");
    assert!(tools.find("read").is_none());
}

#[test]
fn all_names_together_are_distinct_and_accepted_by_the_apis_of_models() {
    let toolsets = toolrest_toolsets::all(&Services::none());
    let all: Vec<&str> = toolsets.iter().map(Toolset::name).collect();
    let tools = offered(&all);
    assert_eq!(tools.tools.len(), tools.by_name.len());
    assert_eq!(tools.tools.len(), toolsets.iter().flat_map(Toolset::tools).count());
    for name in tools.by_name.keys() {
        let is_valid = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        assert!(is_valid && (1..=MAX_NAME_BYTES).contains(&name.len()), "{name}");
    }
}

#[test]
fn only_tools_that_change_nothing_are_offered_on_request() {
    let offer = Offer { read_only: true, ..Offer::default() };
    let tools = select(&offer).unwrap();
    assert_eq!(tools.names(), "read, ls, grep, job, changes, web_fetch");
}

#[test]
fn an_unknown_toolset_is_named_with_those_that_there_are() {
    let offer = Offer { toolsets: vec!["codeing".to_owned()], ..Offer::default() };
    let error = select(&offer).err().unwrap();
    assert_eq!(
        error.to_string(),
        "there is no toolset 'codeing'; there are agent, backend, coding, file, system, workspace"
    );
}

#[test]
fn output_schemas_are_offered_only_on_request() {
    assert!(offered(&["system"]).definitions().iter().all(|tool| tool.output_schema.is_none()));
    let offer = Offer { toolsets: vec!["system".to_owned()], structured: true, ..Offer::default() };
    let tools = select(&offer).unwrap();
    assert!(tools.definitions().iter().all(|tool| tool.output_schema.is_some()));
}
