use super::*;

fn check_url(url: &str) -> Result<(), String> {
    check(&Request::get(url).body(()).unwrap()).map_err(|error| error.message)
}

#[test]
fn a_route_takes_its_own_parameters_once() {
    for url in [
        "/health",
        "/api/v1/toolsets/file?format=mcp",
        "/api/v1/workspaces/x/trash?limit=3&before=y",
        "/api/v1/workspaces/x/files/y/versions?limit=3",
        "/api/v1/workspaces/x/commits?",
    ] {
        assert_eq!(check_url(url), Ok(()), "{url}");
    }
    assert!(check_url("/api/v1/workspaces/x/calls?limit=1&limit=2").unwrap_err().contains("twice"));
}

#[test]
fn an_unknown_parameter_is_refused_with_the_nearest_name() {
    let nearest = |url: &str, name: &str| {
        let refusal = check_url(url).unwrap_err();
        assert!(refusal.contains(&format!("did you mean `{name}`")), "{url}: {refusal}");
    };
    nearest("/api/v1/workspaces/x/trash?limt=3", "limit");
    nearest("/api/v1/workspaces/x/commits?befor=3", "before");
    nearest("/api/v1/toolsets/file?fmt=mcp", "format");
    for url in
        ["/health?x", "/api/v1/workspaces?limit=3", "/api/v1/workspaces/x/tools?limit=3", "/api/v1/auth/me?%6c=1"]
    {
        assert!(check_url(url).unwrap_err().contains("takes none"), "{url}");
    }
}
