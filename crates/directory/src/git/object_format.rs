//! The hash format of a repository, from its configuration.

/// The hash algorithm of a repository's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Returns the format that a configuration names, or SHA-1 if it names none. Returns `None` if the format is
    /// unknown or the configuration cannot be parsed.
    pub(crate) fn of_config(config: &[u8]) -> Option<Self> {
        let config = String::from_utf8_lossy(config).to_ascii_lowercase();
        let mut format = Self::Sha1;
        let mut section = String::new();
        for line in config.lines() {
            let mut line = line.trim();
            if let Some(rest) = line.strip_prefix('[') {
                let (name, rest) = rest.split_once(']')?;
                name.trim().clone_into(&mut section);
                line = rest.trim();
            }
            let Some(value) = line.strip_prefix("objectformat").filter(|_| section == "extensions") else { continue };
            let value = value.trim().strip_prefix('=')?.trim();
            format = match value.trim_matches('"') {
                "sha1" => Self::Sha1,
                "sha256" => Self::Sha256,
                _ => return None,
            };
        }
        Some(format)
    }

    pub(super) const fn hash_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}
