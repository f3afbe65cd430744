use super::{Existing, KeySource, SealingKey, fresh_key, open, read_keys, write_keys};
use std::os::unix::fs::PermissionsExt;
use toolrest_core::{ErrorKind, Secret, WorkspaceId};
use uuid::Uuid;

fn secret() -> Secret {
    Secret::new("correct horse".to_owned()).unwrap()
}

#[test]
fn a_sealed_secret_opens_with_its_key_in_its_place_only() {
    let (key, other) = (SealingKey::new(fresh_key().unwrap()), SealingKey::new(fresh_key().unwrap()));
    let (here, there) = (WorkspaceId(Uuid::from_u128(1)), WorkspaceId(Uuid::from_u128(2)));
    let sealed = key.seal(here, "TOKEN", &secret()).unwrap();
    assert!(!sealed.sealed.windows(7).any(|part| part == b"correct"), "it is encrypted");
    assert_ne!(sealed.sealed, key.seal(here, "TOKEN", &secret()).unwrap().sealed, "each has its own nonce");
    assert_eq!(open(&[other.clone(), key.clone()], here, &sealed).unwrap(), secret());
    assert!(open(&[other], here, &sealed).unwrap_err().message.contains("does not have"));
    assert!(key.open(there, &sealed).is_err());
    let mut renamed = sealed.clone();
    renamed.name = "OTHER".to_owned();
    assert!(key.open(here, &renamed).is_err());
    let mut changed = sealed;
    *changed.sealed.last_mut().unwrap() ^= 1;
    assert_eq!(key.open(here, &changed).unwrap_err().kind, ErrorKind::NotConfigured);
    changed.sealed.truncate(5);
    assert!(key.open(here, &changed).is_err());
}

#[test]
fn the_key_file_is_private_and_created_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secrets.key");
    let source = KeySource::File(path.clone());
    assert!(source.keys().unwrap().is_empty());
    let first = source.current().unwrap();
    assert_eq!(source.current().unwrap().id, first.id);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = write_keys(&path, &[fresh_key().unwrap()], Existing::Keep);
    assert!(again.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists));
    assert_eq!(source.current().unwrap().id, first.id);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "no draft is left");
}

#[test]
fn a_damaged_key_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secrets.key");
    for text in ["short\n", &"g".repeat(64), &format!("{}\n\n", "a".repeat(64))] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(read_keys(&path).unwrap_err().kind, ErrorKind::NotConfigured, "{text}");
    }
}
