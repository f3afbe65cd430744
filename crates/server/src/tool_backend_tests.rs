use super::{ToolBackendListen, listen};
use crate::runtime::StartError;
use crate::settings::Settings;

fn settings(listen: &str, require_token: bool) -> Settings {
    let mut settings = Settings::default();
    settings.tool_backend.listen = listen.parse().unwrap();
    settings.tool_backend.require_token = require_token;
    settings
}

#[test]
fn the_setting_is_an_address_or_a_word() {
    for text in ["auto", "none", "127.0.0.1:0", "[::1]:3001"] {
        assert_eq!(text.parse::<ToolBackendListen>().unwrap().to_string(), text);
    }
    for text in ["", "off", "3001", "localhost:3001"] {
        assert!(text.parse::<ToolBackendListen>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn an_address_that_others_reach_needs_tokens() {
    for address in ["0.0.0.0:0", "[::]:0", "10.1.2.3:0"] {
        let refused = listen(&settings(address, false)).await;
        assert!(matches!(refused, Err(StartError::OpenToolBackend { .. })), "{address}");
    }
    assert!(listen(&settings("0.0.0.0:0", true)).await.unwrap().is_some());
    assert!(listen(&settings("127.0.0.1:0", false)).await.unwrap().is_some());
    assert!(listen(&settings("none", false)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_port_that_was_asked_for_must_be_free() {
    let (_taken, address) = listen(&settings("127.0.0.1:0", false)).await.unwrap().unwrap();
    let refused = listen(&settings(&address.to_string(), false)).await;
    assert!(refused.unwrap_err().to_string().contains("--tool-backend-listen"));
}
