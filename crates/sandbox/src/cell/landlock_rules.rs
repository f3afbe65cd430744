//! The Landlock rules of a job: its own folders, the system read-only, and nothing else, whatever is mounted.

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::io::Errno;

use crate::{
    Access, CellSpec,
    step::{Failure, Step},
};

/// Access rights that must be restricted. Needs Linux 6.2.
const REQUIRED: ABI = ABI::V3;

/// Access rights and scopes that are also restricted if the kernel supports it. The namespaces and the few devices
/// already leave nothing to reach with them.
const OPTIONAL: ABI = ABI::V6;

pub(super) fn restrict(spec: &CellSpec, may_lack: bool) -> Result<(), Failure> {
    let failed = |subject: String, errno: Errno| Failure { subject, ..Failure::new(Step::Landlock, errno) };
    let created = match create() {
        Ok(created) => created,
        Err(_) if may_lack => return Ok(()),
        Err(error) => return Err(failed(format!("({error})"), Errno::OPNOTSUPP)),
    };
    add_rules(created, spec)
        .and_then(|created| created.restrict_self().map(drop).map_err(|error| error.to_string()))
        .map_err(|error| failed(format!("({error})"), Errno::INVAL))
}

fn create() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(OPTIONAL))?
        .scope(Scope::from_all(OPTIONAL))?
        .create()
}

fn add_rules(mut created: RulesetCreated, spec: &CellSpec) -> Result<RulesetCreated, String> {
    let all = AccessFs::from_all(OPTIONAL) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let read = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let mut rules: Vec<(&std::path::Path, BitFlags<AccessFs>)> = Vec::new();
    for path in ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc"] {
        rules.push((path.as_ref(), read));
    }
    rules.push(("/".as_ref(), AccessFs::ReadDir.into()));
    rules.push(("/tmp".as_ref(), all));
    rules.push(("/dev".as_ref(), all));
    for mount in &spec.mounts {
        rules.push((mount.target(), if mount.access() == Access::ReadWrite { all } else { read }));
    }
    for (path, access) in rules {
        // Some systems lack some of these folders.
        let Ok(file) = PathFd::new(path) else { continue };
        created = created.add_rule(PathBeneath::new(file, access)).map_err(|error| error.to_string())?;
    }
    Ok(created)
}
