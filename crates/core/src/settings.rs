//! What the owner of a workspace has set for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the owner of a workspace has set for it. The operator's limits stand above.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceSettings {
    /// Programs that are run in it.
    pub run: RunSettings,
}

/// The most that a program in a workspace may use, and what it may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// How long it may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Memory of all its processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads alive at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// By how much the files of the workspace may grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// How much it may print before it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Hosts that it may reach, of those that the operator allows: `pypi.org`, `*.example.com`, `example.com:8080`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
}

/// A change to the settings of a workspace: what is given is set, what is null goes, the rest stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceSettingsPatch {
    /// Programs that are run in it.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub run: Option<Option<RunSettingsPatch>>,
}

/// A change to [`RunSettings`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettingsPatch {
    /// How long a program may run.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Option<u64>>,
    /// Memory of all its processes together.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Option<u64>>,
    /// Processes and threads alive at once.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub processes: Option<Option<u64>>,
    /// By how much the files of the workspace may grow.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<Option<u64>>,
    /// How much it may print before it is ended.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<Option<u64>>,
    /// Hosts that it may reach, in the place of those before.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub network: Option<Option<Vec<String>>>,
}

/// Tells a value that is null from one that is not given.
#[expect(clippy::option_option, reason = "not given, null and a value are three things")]
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}
