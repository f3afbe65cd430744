use super::{is_image, is_image_content, program};
use toolrest_core::{Content, WsPath};

fn path(text: &str) -> WsPath {
    WsPath::relative(text).unwrap()
}

#[test]
fn a_script_gets_its_files_as_arguments_and_in_its_environment() {
    let program = program(&path("./data.csv"), Some(&path("plots/a b.png")), "print('ok')").unwrap();
    assert_eq!(program.arguments, ["/workspace/data.csv", "/workspace/plots/a b.png"]);
    let env = |name: &str| program.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(env("INPUT_FILE"), Some("/workspace/data.csv"));
    assert_eq!(env("OUTPUT_IMAGE"), Some("/workspace/plots/a b.png"));
}

#[test]
fn a_script_is_passed_as_one_literal() {
    let script = "from __future__ import annotations\nprint(\"\\\"'''\", 'SCRIPT, IMAGE', '\u{1f600}')";
    let program = program(&path("x"), None, script).unwrap();
    let literal = serde_json::to_string(script).unwrap();
    assert!(program.code.contains(&format!("script, image = {literal}, \"\"\n")), "{}", program.code);
}

#[test]
fn images_are_recognised_by_their_first_bytes() {
    let images: [&[u8]; 6] = [
        b"\x89PNG\r\n\x1a\n....",
        b"\xff\xd8\xff\xe0",
        b"GIF89a",
        b"RIFF\x10\0\0\0WEBPVP8 ",
        b"<?xml version='1.0'?>\n<svg xmlns='x'/>",
        b"%PDF-1.4",
    ];
    assert!(images.into_iter().all(is_image));
    let others: [&[u8]; 5] = [b"", b"PNG", b"RIFF\x10\0\0\0WAVE", b"<?xml version='1.0'?><html/>", b"hello"];
    assert!(!others.into_iter().any(is_image));
}

#[test]
fn an_svg_image_may_have_any_encoding() {
    let svg = "<?xml version='1.0'?>\n<svg xmlns='x'><text>caf\u{e9}</text></svg>";
    let utf16: Vec<u8> = format!("\u{feff}{svg}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin1: Vec<u8> = svg.chars().map(|c| u8::try_from(c).unwrap()).collect();
    for bytes in [svg.into(), format!("\u{feff}{svg}").into_bytes(), latin1, utf16] {
        assert!(is_image_content(&Content::of_bytes(bytes)));
    }
    assert!(!is_image_content(&Content::of_bytes(b"caf\xe9".to_vec())));
}
