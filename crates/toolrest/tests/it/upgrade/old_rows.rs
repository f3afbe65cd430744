//! Rows and a journal in the format of schema 4, in addition to the fixtures.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::json;
use toolrest_testkit::sha256_hex;

/// A file as it was recorded: texts in other encodings than UTF-8 were bytes (form 2) of the type File (7), texts with a
/// byte order mark were plain ones (0), and the size of JSON (1) was the one that is stored.
pub struct OldFile {
    pub path: &'static str,
    pub bytes: &'static [u8],
    kind: i16,
    form: i16,
}

pub const LATIN_1: OldFile = OldFile { path: "/latin1.txt", bytes: b"caf\xe9 of old\n", kind: 7, form: 2 };

pub const FILES: [OldFile; 5] = [
    LATIN_1,
    OldFile { path: "/utf16.txt", bytes: b"\xff\xfeo\0f\0 \0o\0l\0d\0", kind: 7, form: 2 },
    OldFile { path: "/marked.txt", bytes: b"\xef\xbb\xbfof old\n", kind: 1, form: 0 },
    OldFile { path: "/bytes.old", bytes: b"\x89PNG\r\n\x1a\n of old", kind: 7, form: 2 },
    OldFile { path: "/old.canvas", bytes: br#"{"nodes":[1,2],"title":"of old"}"#, kind: 2, form: 1 },
];

/// How a database writes values.
pub struct Dialect {
    pub id: fn(&str) -> String,
    pub bytes: fn(&str) -> String,
    pub time: &'static str,
    pub no: &'static str,
}

pub const SQLITE: Dialect = Dialect {
    id: |id| format!("x'{}'", id.replace('-', "")),
    bytes: |hex| format!("x'{hex}'"),
    time: "1700000000000000",
    no: "0",
};

pub const POSTGRES: Dialect = Dialect {
    id: |id| format!("'{id}'"),
    bytes: |hex| format!(r"'\x{hex}'"),
    time: "'2026-11-17 23:00:00+00'",
    no: "false",
};

/// Statements that record files, with a version each, in a workspace. The number tells ids apart.
pub fn record(dialect: &Dialect, workspace: &str, author: &str, files: &[OldFile], number: usize) -> String {
    let Dialect { id, bytes, time, no } = dialect;
    let (ws, author) = (id(workspace), id(author));
    let mut sql = String::new();
    for (n, file) in files.iter().enumerate() {
        let own = |what: usize| id(&format!("01a1ebbc-0000-7000-{:04x}-{:012x}", 0x8000 + number, what * 1000 + n));
        let (file_id, version, commit) = (own(1), own(2), own(3));
        let hash = bytes(&sha256_hex(file.bytes));
        let data = bytes(&file.bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat());
        let (path, name, size) = (file.path, &file.path[1..], file.bytes.len());
        let OldFile { kind, form, .. } = file;
        write!(
            sql,
            "INSERT INTO files (ws, id, path, dir, name, kind, is_virtual, head_seq, head_version, head_hash, head_blob,
                 head_form, size, created_at, updated_at)
             VALUES ({ws}, {file_id}, '{path}', '/', '{name}', {kind}, {no}, 1, {version}, {hash}, {hash}, {form}, {size},
                 {time}, {time});
             INSERT INTO versions (ws, file_id, seq, id, hash, form, blob, size, author, commit_id, created_at)
             VALUES ({ws}, {file_id}, 1, {version}, {hash}, {form}, {hash}, {size}, {author}, {commit}, {time});
             INSERT INTO blobs (ws, key, size, encoding, data) VALUES ({ws}, {hash}, {size}, 0, {data});"
        )
        .unwrap();
    }
    sql
}

/// The file that the commit in the journal has made.
pub const IN_JOURNAL: (&str, &[u8]) = ("/journal.txt", b"caf\xe9 of a commit that was interrupted\n");

/// Leaves a commit in the journal of a folder that was made on disk and not recorded, as by a crash.
pub fn interrupt_commit(journals: &Path, root: &Path, workspace: &str, caller: &str) {
    let (path, content) = IN_JOURNAL;
    fs::write(root.join(&path[1..]), content).unwrap();
    let (commit, file) = ("01a1ebbd-0000-7000-8000-000000000001", "01a1ebbd-0000-7000-8000-000000000002");
    let (version, call) = ("01a1ebbd-0000-7000-8000-000000000003", "01a1ebbd-0000-7000-8000-000000000004");
    let (at, hash) = ("2026-11-17T23:00:00Z", sha256_hex(content));
    let head = json!({
        "workspace": workspace, "id": commit, "at": at,
        "call": {"id": call, "toolset": "workspace", "tool": "write", "caller": caller, "started_at": at},
        "undoes": null,
        "ops": [{"Insert": {
            "id": file, "path": path, "display_name": null, "file_type": "File", "is_virtual": false,
            "head": {"seq": 1, "version": version, "hash": hash, "blob": hash, "form": "Bytes", "size": content.len()},
            "mode": null, "created_at": at, "updated_at": at, "deleted_at": null,
        }}],
        "effects": [{"op": "create", "path": path, "file_id": file, "after": 1, "version_id": version}],
        "contents": [{
            "hash": hash, "form": "Bytes", "size": content.len(), "encoding": 0, "bytes": content.len(),
        }],
    });
    let head = head.to_string();
    let payload = [&number(head.len())[..], head.as_bytes(), content].concat();
    let id = hex(&commit.replace('-', ""));
    // A nonce, the commit's id, what is to be recorded, no steps, the name of the boot.
    let body =
        [&[7; 16][..], &with_length(&id), &with_length(&payload), &number(0), &with_length(b"another boot")].concat();
    let digest = hex(&sha256_hex([&number(1)[..], &body].concat()));
    let mut journal = vec![0; 8192];
    journal[..digest.len()].copy_from_slice(&digest);
    journal.extend([&b"toolrest"[..], &number(1), &number(body.len()), &digest, &body].concat());
    journal.resize(journal.len().max(64 * 1024), 0);
    fs::create_dir_all(journals).unwrap();
    let folder = fs::metadata(root).unwrap();
    fs::write(journals.join(format!("{:x}-{:x}.journal", folder.dev(), folder.ino())), journal).unwrap();
}

fn number(number: usize) -> [u8; 8] {
    (number as u64).to_le_bytes()
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&number(bytes.len())[..], bytes].concat()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
