//! Proves that the sandbox holds on this machine, and says what is missing where it does not.

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
    Enforced, Enforcer, Error, Job, Mount, Place, Report, Result, Sandbox, Source,
    canary::{self, Bait, Note},
    wire::Act,
};

/// One of the things that keep a program in.
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
    /// Only what runs on an overlay of a folder needs it.
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

    /// How to get it where it is missing.
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
            Self::MemoryLimit => "Nothing to do: a watchdog takes the place of a control group.",
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

/// Whether a layer is in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Present,
    Missing,
    /// Missing, and accepted by who configured the sandbox.
    Accepted,
    /// Not reached, because another one is missing.
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

/// What was found out about a layer.
#[derive(Debug, Clone)]
pub struct Finding {
    pub layer: Layer,
    pub state: State,
    /// What enforces it, or what went wrong.
    pub detail: String,
}

/// What was found out about all layers.
#[derive(Debug, Clone)]
pub struct Probe {
    pub findings: Vec<Finding>,
    /// What jobs share with each other and with the server, which only one tenant should; empty where they have a user
    /// and control groups of their own.
    pub shared: Vec<&'static str>,
}

impl Probe {
    /// An error that names everything that is missing for a job on plain folders.
    pub fn verify(&self) -> Result<()> {
        let lacking = |finding: &&Finding| finding.state == State::Missing && finding.layer != Layer::Overlay;
        let missing: Vec<String> = self
            .findings
            .iter()
            .filter(lacking)
            .map(|Finding { layer, detail, .. }| format!("{layer}: {detail}. {}", layer.remedy()))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::Unproven { missing }) }
    }

    pub fn state(&self, layer: Layer) -> State {
        self.findings.iter().find(|finding| finding.layer == layer).map_or(State::Unknown, |finding| finding.state)
    }

    fn set(&mut self, layer: Layer, state: State, detail: impl Into<String>) {
        let detail = detail.into();
        self.findings.retain(|finding| finding.layer != layer);
        self.findings.push(Finding { layer, state, detail });
        self.findings.sort_by_key(|finding| finding.layer);
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { layer, state, detail } in &self.findings {
            writeln!(f, "{layer:<18} {state:<8} {detail}")?;
            if *state == State::Missing {
                writeln!(f, "{:<18} {}", "", layer.remedy())?;
            }
        }
        Ok(())
    }
}

impl Sandbox {
    /// Runs a canary that tries to get out, and says which layers hold.
    pub async fn probe(&self) -> Result<Probe> {
        let nest = Nest::build()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let bait = Bait {
            outside: nest.path.join("outside").display().to_string(),
            port: listener.local_addr()?.port(),
            namespaces: canary::own_namespaces(),
            without_landlock: self.options().accept_missing.contains(&Layer::Landlock),
        };
        let unknown = |layer| Finding { layer, state: State::Unknown, detail: String::new() };
        let mut probe = Probe { findings: Layer::ALL.map(unknown).into(), shared: Vec::new() };
        let folder = Place::new(Source::open(nest.path.join("folder"))?, "/workspace");
        match self.sing(folder.clone(), bait.clone()).await {
            Ok((report, notes)) => note(&mut probe, &report, notes, &nest, &bait),
            Err(Error::Unavailable { layer, failure }) => probe.set(layer, State::Missing, failure.to_string()),
            Err(error) => return Err(error),
        }
        let mount = Mount::Overlay {
            lower: vec![Source::open(nest.path.join("folder"))?],
            private: Source::open(nest.path.join("private"))?,
            target: "/workspace".into(),
        };
        let overlay = Place { mounts: vec![mount], ..folder };
        match self.sing(overlay, bait).await {
            Ok(_) => probe.set(Layer::Overlay, State::Present, "changes go to a folder of their own"),
            Err(Error::Unavailable { layer, failure }) if layer == Layer::Overlay => {
                probe.set(layer, State::Missing, failure.to_string());
            }
            Err(_) => {}
        }
        Ok(probe)
    }

    async fn sing(&self, place: Place, bait: Bait) -> Result<(Report, Vec<Note>)> {
        let mut job = Job::new(place, ["canary"]);
        job.place.limits.wall = Duration::from_secs(10);
        let report = self.start_act(job, Act::Canary(bait)).await?.wait().await?;
        let song = report.stdout.bytes();
        let notes = postcard::from_bytes(&song);
        let silent = || Error::Unproven { missing: vec![format!("the canary fell silent ({:?})", report.exit)] };
        let notes = notes.map_err(|_| silent())?;
        Ok((report, notes))
    }
}

fn note(probe: &mut Probe, report: &Report, notes: Vec<Note>, nest: &Nest, bait: &Bait) {
    for Note { layer, leak } in notes {
        match leak {
            Some(leak) => probe.set(layer, State::Missing, leak),
            None if layer == Layer::Landlock && bait.without_landlock => {
                probe.set(layer, State::Accepted, "jobs run without it where the kernel has none");
            }
            None => probe.set(layer, State::Present, "held against the canary"),
        }
    }
    let Enforced { memory, .. } = report.enforced_by;
    if !rustix::process::geteuid().is_root() {
        probe.shared.push("programs run as the server's own user, and use up the same quotas of the kernel");
    }
    if memory == Enforcer::Watchdog {
        probe.shared.push("no control group counts the memory that the kernel uses for a program");
    }
    let detail = if memory == Enforcer::Watchdog { "a watchdog in each job".to_owned() } else { memory.to_string() };
    probe.set(Layer::MemoryLimit, State::Present, detail);
    if nest.owned_by_us() {
        probe.set(Layer::IdMappedMounts, State::Present, "what a job writes belongs to the owner of the folder");
    } else {
        probe.set(Layer::IdMappedMounts, State::Missing, "what a job writes belongs to somebody else");
    }
}

/// A folder of its own for the canary, removed with it.
struct Nest {
    path: PathBuf,
}

impl Nest {
    fn build() -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("toolrest-canary-{}-{count}", std::process::id()));
        fs::create_dir(&path)?;
        let nest = Self { path };
        for folder in ["folder", "private", "private/upper", "private/work"] {
            fs::create_dir(nest.path.join(folder))?;
        }
        fs::write(nest.path.join("outside"), "the canary must not read this")?;
        Ok(nest)
    }

    /// Whether the file that the canary has left belongs to the owner of the folder.
    fn owned_by_us(&self) -> bool {
        let owner = |path: &Path| fs::metadata(path).map(|metadata| metadata.uid()).ok();
        let left = owner(&self.path.join("folder").join(canary::FEATHER));
        left.is_some() && left == owner(&self.path.join("folder"))
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        // The overlay has left a folder there that cannot even be looked into.
        let _ = fs::set_permissions(self.path.join("private/work/work"), fs::Permissions::from_mode(0o700));
        let _ = fs::remove_dir_all(&self.path);
    }
}
