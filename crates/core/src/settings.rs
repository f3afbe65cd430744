//! Settings of a workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings that the owner of a workspace made. The operator's limits take precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceSettings {
    /// Limits of programs that run in it.
    pub run: RunSettings,
}

/// Limits of a program in a workspace, and the hosts that it may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// Maximum run time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Maximum memory of all its processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Maximum number of processes and threads at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Maximum growth of the workspace's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Maximum output, after which it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Hosts that it may connect to, if the operator allows them: `pypi.org`, `*.example.com`, `example.com:8080`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
}

/// A change to the settings of a workspace. A value sets the setting, null resets it, a missing field leaves it as it
/// is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceSettingsPatch {
    /// Limits of programs that run in it.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub run: Option<Option<RunSettingsPatch>>,
}

/// A change to [`RunSettings`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettingsPatch {
    /// Maximum run time.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Option<u64>>,
    /// Maximum memory of all its processes together.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Option<u64>>,
    /// Maximum number of processes and threads at the same time.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub processes: Option<Option<u64>>,
    /// Maximum growth of the workspace's files.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<Option<u64>>,
    /// Maximum output, after which it is ended.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<Option<u64>>,
    /// Hosts that it may connect to. They replace the previous list.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub network: Option<Option<Vec<String>>>,
}

/// Deserialises a field that is present, so that null differs from a missing field.
#[expect(clippy::option_option, reason = "missing, null and a value are three cases")]
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}
