//! Checks that the isolation works on this machine, and reports what is missing.

use std::{
    fmt, fs, io,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    CellSpec, Enforcer, Error, Job, LimitEnforcers, Mount, Report, Result, Sandbox, Source,
    canary::{self, CanaryResult, CanaryTargets},
    wire::Payload,
};

/// A layer of the isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Layer {
    Namespaces,
    PrivateRoot,
    PrivateProcesses,
    PrivateNetwork,
    IdMappedMounts,
    NoCapabilities,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    ResourceLimits,
    MemoryLimit,
    /// Needed only for jobs on an overlay.
    Overlay,
}

impl Layer {
    pub const ALL: [Self; 12] = [
        Self::Namespaces,
        Self::PrivateRoot,
        Self::PrivateProcesses,
        Self::PrivateNetwork,
        Self::IdMappedMounts,
        Self::NoCapabilities,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::ResourceLimits,
        Self::MemoryLimit,
        Self::Overlay,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::PrivateRoot => "private root",
            Self::PrivateProcesses => "private processes",
            Self::PrivateNetwork => "private network",
            Self::IdMappedMounts => "id-mapped mounts",
            Self::NoCapabilities => "no capabilities",
            Self::NoNewPrivileges => "no new privileges",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
            Self::ResourceLimits => "resource limits",
            Self::MemoryLimit => "memory limit",
            Self::Overlay => "overlay",
        }
    }

    /// Returns instructions for the operator.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Namespaces => {
                "Allow user namespaces: set user.max_user_namespaces above 0, kernel.unprivileged_userns_clone to 1 \
                 and kernel.apparmor_restrict_unprivileged_userns to 0 where they exist; in a container, allow \
                 clone3 and unshare in its seccomp profile."
            }
            Self::PrivateRoot => {
                "Allow mounts within user namespaces: set kernel.apparmor_restrict_unprivileged_userns to 0 where it \
                 exists; in a container, run it with a seccomp and an AppArmor profile that allow mount and \
                 pivot_root."
            }
            Self::PrivateProcesses => {
                "Let /proc be mounted within user namespaces: in a container, run it without masked paths beneath \
                 /proc (Docker: --security-opt systempaths=unconfined)."
            }
            Self::PrivateNetwork => "Allow network namespaces: set user.max_net_namespaces above 0.",
            Self::IdMappedMounts => {
                "Keep workspaces on a file system that allows id-mapped mounts (ext4, xfs, btrfs, tmpfs; Linux 5.12 or \
                 newer) and give root CAP_SYS_ADMIN, or run the server as an ordinary user."
            }
            Self::NoCapabilities | Self::NoNewPrivileges | Self::ResourceLimits => {
                "This is a part of every Linux kernel: look for a security module that forbids it."
            }
            Self::Landlock => {
                "Use Linux 6.2 or newer with CONFIG_SECURITY_LANDLOCK, with landlock in the lsm= list at boot; in a \
                 container, allow the landlock_* system calls in its seccomp profile."
            }
            Self::Seccomp => "Use a kernel with CONFIG_SECCOMP_FILTER.",
            Self::MemoryLimit => "Nothing to do: a watchdog replaces the control group.",
            Self::Overlay => {
                "Use Linux 5.11 or newer with CONFIG_OVERLAY_FS, and keep the folders on ext4, xfs or btrfs."
            }
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether a layer is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Present,
    Missing,
    /// Missing, and accepted by the configuration.
    Accepted,
    /// Not tested, because another layer is missing.
    Unknown,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Present => "present",
            Self::Missing => "MISSING",
            Self::Accepted => "accepted as missing",
            Self::Unknown => "not tried",
        })
    }
}

/// The result for one layer.
#[derive(Debug, Clone)]
pub struct LayerResult {
    pub layer: Layer,
    pub state: State,
    /// What enforces the layer, or what went wrong.
    pub detail: String,
}

/// The results for all layers.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    pub findings: Vec<LayerResult>,
    /// Resources that jobs share with each other and with the server, or that are not counted per job. If there are
    /// any, the server is fit for one tenant only. Empty if each job has its own user and control group.
    pub shared: Vec<&'static str>,
}

impl ProbeReport {
    /// Fails if a layer is missing that jobs without an overlay need, and names all of them.
    pub fn verify(&self) -> Result<()> {
        let lacking = |finding: &&LayerResult| finding.state == State::Missing && finding.layer != Layer::Overlay;
        let missing: Vec<String> = self
            .findings
            .iter()
            .filter(lacking)
            .map(|LayerResult { layer, detail, .. }| format!("{layer}: {detail}. {}", layer.remedy()))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::IsolationFailed { missing }) }
    }

    pub fn state(&self, layer: Layer) -> State {
        self.findings.iter().find(|finding| finding.layer == layer).map_or(State::Unknown, |finding| finding.state)
    }

    fn set(&mut self, layer: Layer, state: State, detail: impl Into<String>) {
        let detail = detail.into();
        self.findings.retain(|finding| finding.layer != layer);
        self.findings.push(LayerResult { layer, state, detail });
        self.findings.sort_by_key(|finding| finding.layer);
    }
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for LayerResult { layer, state, detail } in &self.findings {
            writeln!(f, "{layer:<18} {state:<8} {detail}")?;
            if *state == State::Missing {
                writeln!(f, "{:<18} {}", "", layer.remedy())?;
            }
        }
        Ok(())
    }
}

impl Sandbox {
    /// Runs the canary, a payload that tries to break the isolation, once on a folder and once on an overlay. Returns
    /// the state of each layer.
    pub async fn probe(&self) -> Result<ProbeReport> {
        let folders = CanaryFolders::create()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let targets = CanaryTargets {
            outside: folders.path.join("outside").display().to_string(),
            port: listener.local_addr()?.port(),
            namespaces: canary::own_namespaces(),
            without_landlock: self.options().accept_missing.contains(&Layer::Landlock),
        };
        let unknown = |layer| LayerResult { layer, state: State::Unknown, detail: String::new() };
        let mut probe = ProbeReport { findings: Layer::ALL.map(unknown).into(), shared: Vec::new() };
        let folder = CellSpec::new(Source::open(folders.path.join("folder"))?, "/workspace");
        match self.run_canary(folder.clone(), targets.clone()).await {
            Ok((report, results)) => record_results(&mut probe, &report, results, &folders, &targets),
            Err(Error::Unavailable { layer, failure }) => probe.set(layer, State::Missing, failure.to_string()),
            Err(error) => return Err(error),
        }
        let mount = Mount::Overlay {
            lower: vec![Source::open(folders.path.join("folder"))?],
            private: Source::open(folders.path.join("private"))?,
            target: "/workspace".into(),
        };
        let overlay = CellSpec { mounts: vec![mount], ..folder };
        match self.run_canary(overlay, targets).await {
            Ok(_) => probe.set(Layer::Overlay, State::Present, "changes go to a separate folder"),
            Err(Error::Unavailable { layer, failure }) if layer == Layer::Overlay => {
                probe.set(layer, State::Missing, failure.to_string());
            }
            Err(_) => {}
        }
        Ok(probe)
    }

    async fn run_canary(&self, spec: CellSpec, targets: CanaryTargets) -> Result<(Report, Vec<CanaryResult>)> {
        let mut job = Job::new(spec, ["canary"]);
        job.spec.limits.wall = Duration::from_secs(10);
        let report = self.start_payload(job, Payload::Canary(targets)).await?.wait().await?;
        let encoded = report.stdout.bytes();
        let results = postcard::from_bytes(&encoded);
        let no_result =
            || Error::IsolationFailed { missing: vec![format!("the canary reported no result ({:?})", report.exit)] };
        let results = results.map_err(|_| no_result())?;
        Ok((report, results))
    }
}

fn record_results(
    probe: &mut ProbeReport,
    report: &Report,
    results: Vec<CanaryResult>,
    folders: &CanaryFolders,
    targets: &CanaryTargets,
) {
    for CanaryResult { layer, leak } in results {
        match leak {
            Some(leak) => probe.set(layer, State::Missing, leak),
            None if layer == Layer::Landlock && targets.without_landlock => {
                probe.set(layer, State::Accepted, "jobs run without it where the kernel has none");
            }
            None => probe.set(layer, State::Present, "verified by the canary"),
        }
    }
    let LimitEnforcers { memory, .. } = report.enforced_by;
    if !rustix::process::geteuid().is_root() {
        probe.shared.push("programs run as the server's own user, and use up the same quotas of the kernel");
    }
    if memory == Enforcer::Watchdog {
        probe.shared.push("no control group counts the memory that the kernel uses for a program");
    }
    let detail = if memory == Enforcer::Watchdog { "a watchdog in each job".to_owned() } else { memory.to_string() };
    probe.set(Layer::MemoryLimit, State::Present, detail);
    if folders.marker_has_folder_owner() {
        probe.set(Layer::IdMappedMounts, State::Present, "what a job writes belongs to the owner of the folder");
    } else {
        probe.set(Layer::IdMappedMounts, State::Missing, "what a job writes belongs to somebody else");
    }
}

/// The canary's folders. Removed when dropped.
struct CanaryFolders {
    path: PathBuf,
}

impl CanaryFolders {
    fn create() -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("toolrest-canary-{}-{count}", std::process::id()));
        fs::create_dir(&path)?;
        let folders = Self { path };
        for folder in ["folder", "private", "private/upper", "private/work"] {
            fs::create_dir(folders.path.join(folder))?;
        }
        fs::write(folders.path.join("outside"), "the canary must not read this")?;
        Ok(folders)
    }

    /// Whether the file that the canary created has the same owner as its folder.
    fn marker_has_folder_owner(&self) -> bool {
        let owner = |path: &Path| fs::metadata(path).map(|metadata| metadata.uid()).ok();
        let left = owner(&self.path.join("folder").join(canary::MARKER_FILE));
        left.is_some() && left == owner(&self.path.join("folder"))
    }
}

impl Drop for CanaryFolders {
    fn drop(&mut self) {
        // The kernel leaves a folder without permissions in an overlay's work folder.
        let _ = fs::set_permissions(self.path.join("private/work/work"), fs::Permissions::from_mode(0o700));
        let _ = fs::remove_dir_all(&self.path);
    }
}
