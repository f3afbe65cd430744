//! Every setting of the server, defined once in the table below.
//!
//! A value is taken from the last of these that gives one: the built-in default, the TOML file, the
//! environment (`TOOLREST__SECTION__KEY`), the command line. The section structs, their defaults, the
//! report of effective values and the reference for the documentation all follow from the table.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strsim::normalized_damerau_levenshtein as alike;
use toml::Value;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toolrest_ops::outside::{AddressRange, AllowList};

use crate::http::host::{HostPattern, Origin};

const PREFIX: &str = "TOOLREST__";
const HIDDEN: &str = "********";
const SECRET_MIN_CHARS: usize = 32;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const GIB: i64 = 1 << 30;

/// Names that specification 000 gives to settings of ours.
const ALIASES: [(&str, &str); 2] = [
    ("BUILDSCALE__JWT__SECRET", "jwt.secret"),
    ("BUILDSCALE__JWT__ACCESS_TOKEN_EXPIRATION_MINUTES", "jwt.access_token_expiration_minutes"),
];

macro_rules! settings {
    ($(
        $(#[doc = $section_about:literal])+
        $section:ident: $Section:ident {$(
            $(#[doc = $about:literal])+
            $name:ident: $Type:ty = $default:expr, $accepts:expr;
        )+}
    )+) => {
        /// Holds the value of every setting, grouped by section as in the file.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Settings {
            $(
                $(#[doc = $section_about])+
                pub $section: $Section,
            )+
            /// Absolute path of the settings file that was read, or that the next start would read.
            pub file: Option<PathBuf>,
        }

        $(
            $(#[doc = $section_about])+
            #[derive(Clone, PartialEq, Eq)]
            pub struct $Section {$(
                $(#[doc = $about])+
                pub $name: $Type,
            )+}

            impl Default for $Section {
                fn default() -> Self {
                    Self { $($name: $default,)+ }
                }
            }

            // Not derived, so that secrets stay hidden wherever a section ends up in a log.
            impl fmt::Debug for $Section {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_struct(stringify!($Section))
                        $(.field(
                            stringify!($name),
                            &format_args!("{}", $accepts.show(Value::try_from(&self.$name).ok())),
                        ))+
                        .finish()
                }
            }
        )+

        const SECTIONS: &[&str] = &[$(stringify!($section)),+];

        const TABLE: &[Setting] = &[$($(Setting {
            key: concat!(stringify!($section), ".", stringify!($name)),
            about: concat!($($about),+),
            accepts: $accepts,
            get: |settings| Value::try_from(&settings.$section.$name).ok(),
            set: |settings, value| {
                value.try_into().map(|value| settings.$section.$name = value).is_ok()
            },
        }),+),+];
    };
}

settings! {
    /// Where the server listens, where it keeps its files, and how it stops.
    server: Server {
        /// Address and port to listen on; port 0 takes a free one.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 3000)), Accepts::Address;
        /// Folder for everything the server keeps on disk, the embedded database included. With `folders.local_dir`, the default is `toolrest` in the user's own data folder (`$XDG_DATA_HOME` or `~/.local/share`).
        data_dir: PathBuf = PathBuf::from("./data"), Accepts::Folder;
        /// How long calls under way may still take once the server is told to stop; 0 does not wait.
        shutdown_grace_ms: u64 = 30_000, Accepts::Whole(0, DAY_MS);
        /// Host names that requests may name (`tools.example.com`, `*.example.com`, `*` for any), beside the built-in ones: on a loopback address `localhost` and loopback addresses, on other addresses also every IP address.
        allowed_hosts: Vec<String> = Vec::new(), Accepts::HostNames;
        /// Web pages that may call the server, beside those that it serves itself (`https://console.example.com`).
        allowed_origins: Vec<String> = Vec::new(), Accepts::Origins;
        /// Addresses of proxies whose `X-Forwarded-For` is believed (`127.0.0.1`, `10.1.0.0/16`).
        trusted_proxies: Vec<String> = Vec::new(), Accepts::Ranges;
    }

    /// The database, and how it is used.
    database: Database {
        /// PostgreSQL to use; without it, SQLite in `server.data_dir`.
        url: Option<String> = None, Accepts::PostgresUrl;
        /// Most connections to hold open at once.
        pool_size: usize = 10, Accepts::Whole(1, 1000);
        /// Longest a single statement may run.
        statement_timeout_ms: u64 = 30_000, Accepts::Whole(1, DAY_MS);
    }

    /// The tokens that callers show.
    jwt: Jwt {
        /// Key that signs access tokens; without it, one is made and kept in the database.
        secret: Option<String> = None, Accepts::Secret;
        /// How long an access token is good for.
        access_token_expiration_minutes: u32 = 15, Accepts::Whole(1, 525_600);
    }

    /// Accounts and signing in.
    auth: Auth {
        /// Whether anybody may register an account. With `folders.local_dir`, the default is false.
        registration_open: bool = true, Accepts::Switch;
        /// How long a refresh token is good for.
        refresh_token_expiration_days: u32 = 30, Accepts::Whole(1, 3650);
        /// Whether cookies are sent over HTTPS only.
        secure_cookies: bool = false, Accepts::Switch;
        /// Sign-in attempts allowed for one account within the window.
        attempts_per_account: u32 = 10, Accepts::Whole(1, 1_000_000);
        /// Sign-in attempts allowed from one address within the window.
        attempts_per_address: u32 = 100, Accepts::Whole(1, 1_000_000);
        /// Registrations allowed from one address within the window.
        registrations_per_address: u32 = 20, Accepts::Whole(1, 1_000_000);
        /// Length of the window in which sign-in attempts and registrations are counted.
        attempts_window_minutes: u32 = 15, Accepts::Whole(1, 1440);
    }

    /// What one call, and one workspace, may use.
    limits: Limits {
        /// Largest request body.
        body_bytes: usize = 32 << 20, Accepts::Whole(1, GIB);
        /// Largest response body.
        response_bytes: usize = 32 << 20, Accepts::Whole(1, GIB);
        /// Bytes of requests and answers in memory at once, over all callers; a request for which there is no room waits, then gets 503. One account can hold a quarter; a sixteenth is kept for small bodies. As many bytes of large files can be read at once.
        in_flight_bytes: usize = 256 << 20, Accepts::Whole(1 << 20, 1024 * GIB);
        /// Connections open at once; half of them from one address, unless that is a trusted proxy.
        connections: usize = 4096, Accepts::Whole(2, 1_000_000);
        /// Longest a call may take, waiting included; one that runs a program may take `run.max_timeout_ms` more.
        call_timeout_ms: u64 = 30_000, Accepts::Whole(1, DAY_MS);
        /// Calls under way at once in one workspace; more wait until their deadline.
        calls_per_workspace: usize = 256, Accepts::Whole(1, 100_000);
        /// Calls of one account under way at once, over all workspaces; more wait until their deadline.
        calls_per_account: usize = 512, Accepts::Whole(1, 100_000);
    }

    /// What one account, and one workspace, may have.
    quotas: Quotas {
        /// Bytes that one workspace may store in the database, earlier versions and the trash included; 0 sets no limit.
        bytes_per_workspace: u64 = 8 << 30, Accepts::Whole(0, 1024 * 1024 * GIB);
        /// Bytes that all workspaces of one owner may store together; 0 sets no limit.
        bytes_per_account: u64 = 32 << 30, Accepts::Whole(0, 1024 * 1024 * GIB);
        /// Workspaces that one account may own; 0 sets no limit.
        workspaces_per_account: u64 = 500, Accepts::Whole(0, 1_000_000);
        /// Event streams that one account may have open.
        event_streams_per_account: usize = 32, Accepts::Whole(1, 100_000);
    }

    /// Real folders as workspaces.
    folders: Folders {
        /// Folders whose contents, and those of the folders below them, any account may make workspaces.
        allowed_roots: Vec<PathBuf> = Vec::new(), Accepts::Folders;
        /// Folders that only the named accounts may make workspaces, with those below them (`ada@example.com=/srv/ada`). Such an entry also takes the folder out of an allowed root above it for everybody else.
        account_roots: Vec<String> = Vec::new(), Accepts::AccountRoots;
        /// A folder to open as the local workspace. It belongs to the account `local` alone.
        local_dir: Option<PathBuf> = None, Accepts::Folder;
        /// Whether tools may change `.git`. Git on the host runs what its `config` and `hooks` say.
        git_writable: bool = false, Accepts::Switch;
        /// Largest file whose earlier contents are kept; of larger ones only the hash and the size.
        history_file_bytes: u64 = 64 << 20, Accepts::Whole(0, GIB);
        /// Most that one change adds to the history of what was there before.
        history_commit_bytes: u64 = 256 << 20, Accepts::Whole(0, 1024 * GIB);
        /// Most that the history of one folder takes; the oldest contents go first. 0 sets no limit.
        history_total_bytes: u64 = 4 << 30, Accepts::Whole(0, 1024 * 1024 * GIB);
    }

    /// Programs that tools run, in the sandbox.
    run: Run {
        /// Whether programs may be run at all.
        enabled: bool = true, Accepts::Switch;
        /// How long a program may run that asks for nothing else.
        timeout_ms: u64 = 60_000, Accepts::Whole(1, DAY_MS);
        /// Longest that a program can ask for.
        max_timeout_ms: u64 = 600_000, Accepts::Whole(1, DAY_MS);
        /// Memory of a program that asks for nothing else, all its processes together.
        memory_bytes: u64 = 1 << 30, Accepts::Whole(16 << 20, 1024 * GIB);
        /// Most memory that a program can ask for.
        max_memory_bytes: u64 = 4 << 30, Accepts::Whole(16 << 20, 1024 * GIB);
        /// Processes and threads of a program alive at once.
        processes: u64 = 256, Accepts::Whole(1, 100_000);
        /// By how much a program may let the workspace's files grow.
        disk_bytes: u64 = 2 << 30, Accepts::Whole(1 << 20, 1024 * GIB);
        /// How many files and folders a program may add.
        new_files: u64 = 200_000, Accepts::Whole(1, 100_000_000);
        /// How much a program may print before it is ended.
        output_bytes: u64 = 256 << 20, Accepts::Whole(1, 1024 * GIB);
        /// How much of each stream of a program is answered: its beginning and its end.
        output_kept_bytes: usize = 256 << 10, Accepts::Whole(1, 16 << 20);
        /// Programs that run at once; more wait until their deadline.
        at_once: usize = 32, Accepts::Whole(1, 10_000);
        /// Programs of one account that run at once, over all workspaces; more wait, and hold nobody else up.
        at_once_per_account: usize = 16, Accepts::Whole(1, 10_000);
        /// Programs that run at once in one workspace; more wait, and hold nobody else up.
        at_once_per_workspace: usize = 8, Accepts::Whole(1, 10_000);
        /// Interpreters that wait for the next script, so that it starts at once; 0 keeps none.
        waiting_interpreters: usize = 8, Accepts::Whole(0, 1000);
        /// Largest file that is kept of what a program wrote; larger ones are left out.
        keep_file_bytes: u64 = 64 << 20, Accepts::Whole(0, GIB);
        /// Most that is kept of what one program wrote; the rest is left out. Programs that end at once hold twice as much in memory, those of one account as much.
        keep_bytes: u64 = 256 << 20, Accepts::Whole(0, 1024 * GIB);
        /// Most files and folders that are kept of what one program changed; the rest is left out.
        keep_files: usize = 20_000, Accepts::Whole(0, 1_000_000);
        /// Hosts that workspaces may allow their programs to reach (`pypi.org`, `*.example.com`, `*`); without any, none.
        network_hosts: Vec<String> = Vec::new(), Accepts::Hosts;
        /// Ranges of addresses that programs may reach although they are not public (`10.1.0.0/16`).
        network_private: Vec<String> = Vec::new(), Accepts::Ranges;
        /// What to do with a folder over which no overlay can be mounted: refuse the program, or run it on the folder itself.
        without_overlay: WithoutOverlay = WithoutOverlay::Refuse, Accepts::OneOf("refuse, in_place");
        /// Whether programs may run on a kernel without Landlock, with one layer less between them and the server.
        accept_missing_landlock: bool = false, Accepts::Switch;
        /// Folder of the Python environment for data; `python` in the data folder where it is not given.
        python_dir: Option<PathBuf> = None, Accepts::Folder;
        /// Background processes that run at once in one workspace.
        background_at_once: usize = 8, Accepts::Whole(0, 1000);
        /// Background processes of one account that run at once, over all workspaces.
        background_at_once_per_account: usize = 16, Accepts::Whole(0, 100_000);
        /// Background processes that run at once in all workspaces together.
        background_at_once_in_all: usize = 64, Accepts::Whole(0, 100_000);
        /// How long background processes go on without anybody asking after them.
        background_lease_ms: u64 = 1_800_000, Accepts::Whole(1, 30 * DAY_MS);
        /// Longest that a background process may run.
        background_max_ms: u64 = 86_400_000, Accepts::Whole(1, 30 * DAY_MS);
        /// How often what a background process has changed is committed.
        background_commit_ms: u64 = 10_000, Accepts::Whole(100, DAY_MS);
    }

    /// Searching files.
    search: Search {
        /// Longest a search may take.
        timeout_ms: u64 = 10_000, Accepts::Whole(1, DAY_MS);
        /// Memory for the texts of workspaces that were searched lately, over all of them; 0 keeps nothing.
        cache_bytes: usize = 512 << 20, Accepts::Whole(0, 1024 * GIB);
    }

    /// How long things are kept that nobody uses any more.
    retention: Retention {
        /// Days that deleted files stay in the trash; 0 keeps them for ever.
        trash_days: u32 = 30, Accepts::Whole(0, 36_500);
        /// Days that the records of calls are kept; 0 keeps them for ever.
        calls_days: u32 = 30, Accepts::Whole(0, 36_500);
    }

    /// What is logged, and how it is written.
    log: Log {
        /// Least severe level that is logged.
        level: LogLevel = LogLevel::Info, Accepts::OneOf("error, warn, info, debug, trace");
        /// How log lines are written: for people, or for machines.
        format: LogFormat = LogFormat::Text, Accepts::OneOf("text, json");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutOverlay {
    Refuse,
    InPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

/// One row of the table.
struct Setting {
    key: &'static str,
    about: &'static str,
    accepts: Accepts,
    get: fn(&Settings) -> Option<Value>,
    /// Answers false, and changes nothing, if the value does not fit the field's type.
    set: fn(&mut Settings, Value) -> bool,
}

/// What a setting takes beyond its type, and how its value may be shown.
enum Accepts {
    AccountRoots,
    Address,
    Folder,
    Folders,
    HostNames,
    Hosts,
    OneOf(&'static str),
    Origins,
    PostgresUrl,
    Ranges,
    Secret,
    Switch,
    Whole(i64, i64),
}

impl Accepts {
    /// Gives text from the environment or the command line the type that a file would write it in.
    fn typed(&self, text: &str) -> Value {
        let typed = match self {
            Self::Switch => text.parse().ok().map(Value::Boolean),
            Self::Whole(..) => text.parse().ok().map(Value::Integer),
            Self::Folders => {
                let folders = std::env::split_paths(text).map(|path| path.display().to_string());
                Some(Value::Array(folders.map(Value::String).collect()))
            }
            Self::AccountRoots | Self::HostNames | Self::Hosts | Self::Origins | Self::Ranges => {
                let entries = text.split(',').map(|entry| Value::String(entry.trim().to_owned()));
                Some(Value::Array(entries.collect()))
            }
            _ => None,
        };
        typed.unwrap_or_else(|| Value::String(text.to_owned()))
    }

    fn allows(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Folder, Value::String(path)) => !path.is_empty(),
            (Self::Folders, Value::Array(paths)) => {
                paths.iter().all(|path| path.as_str().is_some_and(|path| !path.is_empty()))
            }
            (Self::AccountRoots, Value::Array(roots)) => all_texts(roots, |root| account_root(root).is_some()),
            (Self::HostNames, Value::Array(names)) => all_texts(names, |name| HostPattern::parse(name).is_some()),
            (Self::Origins, Value::Array(origins)) => all_texts(origins, |origin| Origin::parse(origin).is_some()),
            (Self::Hosts, Value::Array(hosts)) => AllowList::new(hosts.iter().filter_map(Value::as_str)).is_ok(),
            (Self::Ranges, Value::Array(ranges)) => {
                ranges.iter().filter_map(Value::as_str).all(|range| range.parse::<AddressRange>().is_ok())
            }
            (Self::PostgresUrl, Value::String(url)) => {
                url.starts_with("postgres://") || url.starts_with("postgresql://")
            }
            (Self::Secret, Value::String(secret)) => secret.chars().count() >= SECRET_MIN_CHARS,
            (Self::Whole(min, max), Value::Integer(number)) => (min..=max).contains(&number),
            // The rest is for the type of the field to judge.
            _ => true,
        }
    }

    fn show(&self, value: Option<Value>) -> String {
        match (self, value) {
            (_, None) => "(none)".to_owned(),
            (Self::Secret, _) => format!("{HIDDEN:?}"),
            (Self::PostgresUrl, Some(Value::String(url))) => {
                format!("{:?}", without_password(&url))
            }
            (_, Some(value)) => value.to_string(),
        }
    }

    /// Shows a value that was refused: in one that is malformed, the secret part cannot be told apart.
    fn show_refused(&self, value: &Value) -> String {
        match self {
            Self::Secret | Self::PostgresUrl => "(hidden)".to_owned(),
            _ => value.to_string(),
        }
    }
}

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AccountRoots => {
                f.write_str("a list of `account=/folder`; in the environment with commas between the entries")
            }
            Self::HostNames => {
                f.write_str("a list of host names without ports; in the environment with commas between them")
            }
            Self::Origins => f.write_str(
                "a list of origins such as \"https://example.com:8443\"; in the environment with commas between them",
            ),
            Self::Address => f.write_str("an IP address with a port, such as \"127.0.0.1:3000\""),
            Self::Folder => f.write_str("the path of a folder"),
            Self::Folders => f.write_str("a list of folders; in the environment with colons between them"),
            Self::Hosts => f.write_str("a list of hosts; in the environment with commas between them"),
            Self::OneOf(names) => write!(f, "one of {names}"),
            Self::PostgresUrl => f.write_str("a URL such as \"postgres://user@host/database\""),
            Self::Ranges => f.write_str("a list of address ranges; in the environment with commas between them"),
            Self::Secret => write!(f, "a text of at least {SECRET_MIN_CHARS} characters"),
            Self::Switch => f.write_str("true or false"),
            Self::Whole(min, max) => write!(f, "a whole number from {min} to {max}"),
        }
    }
}

/// Whether every entry of a list is a text that passes.
fn all_texts(entries: &[Value], passes: impl Fn(&str) -> bool) -> bool {
    entries.iter().all(|entry| entry.as_str().is_some_and(&passes))
}

/// The account, in lower case, and the folder of an entry `account=/folder`.
fn account_root(entry: &str) -> Option<(String, PathBuf)> {
    let (account, _) = entry.split_once("=/")?;
    let folder = PathBuf::from(entry.get(account.len() + 1..)?);
    (!account.trim().is_empty()).then(|| (account.trim().to_lowercase(), folder))
}

/// Hides the password of a database URL, be it before the host or among the parameters.
fn without_password(url: &str) -> String {
    let hide = |part: &str| match part.split_once("password=") {
        Some((before, value)) => {
            let separator = if value.ends_with('&') { "&" } else { "" };
            format!("{before}password={HIDDEN}{separator}")
        }
        None => part.to_owned(),
    };
    let url: String = url.split_inclusive(['?', '&']).map(hide).collect();
    // The last `@` and not the first: rather hide too much than half of a password that holds one.
    if let Some((login, host)) = url.rsplit_once('@')
        && let [scheme, user, _] = login.splitn(3, ':').collect::<Vec<_>>()[..]
    {
        return format!("{scheme}:{user}:{HIDDEN}@{host}");
    }
    url
}

/// Everything that settings are read from. It has no `Debug`, because it holds secrets in the clear.
#[derive(Clone, Default)]
pub struct Sources {
    /// Path and text of the TOML file.
    pub file: Option<(PathBuf, String)>,
    /// Names and values of all variables; those that are not ours are passed over.
    pub environment: Vec<(String, String)>,
    /// Key of the setting, the flag as it is typed (`--listen`), and its value.
    pub flags: Vec<(&'static str, String, String)>,
}

impl Settings {
    /// The file of the embedded database.
    pub fn database_file(&self) -> PathBuf {
        self.server.data_dir.join("toolrest.db")
    }

    /// The accounts that `folders.account_roots` gives folders to, in lower case, with the folders.
    pub(crate) fn account_roots(&self) -> impl Iterator<Item = (String, PathBuf)> {
        self.folders.account_roots.iter().filter_map(|entry| account_root(entry))
    }
}

/// Says what is wrong with the settings, and where: in which file and line, variable or flag.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SettingsError {
    pub place: String,
    pub problem: Problem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("not valid TOML: {0}")]
    Syntax(String),
    #[error("`{key}` is not known; did you mean `{nearest}`?")]
    Unknown { key: String, nearest: String },
    #[error("`{0}` is a section, not a setting; write its settings below `[{0}]`")]
    NotASection(String),
    #[error("`{key} = {value}` is refused; expected {expected}")]
    Refused { key: &'static str, value: String, expected: String },
}

impl Problem {
    fn at(self, place: impl fmt::Display) -> SettingsError {
        SettingsError { place: place.to_string(), problem: self }
    }

    fn unknown_key(key: &str) -> Self {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        // The name weighs more: a setting in the wrong section is likelier meant than its neighbour.
        let likeness = |known: &Setting| {
            let (known_section, known_name) = known.key.split_once('.').unwrap_or_default();
            2.0 * alike(name, known_name) + alike(section, known_section)
        };
        let nearest = (TABLE.iter()).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        Self::Unknown { key: key.to_owned(), nearest: nearest.map_or("", |setting| setting.key).to_owned() }
    }

    fn unknown_section(section: &str) -> Self {
        let likeness = |known| alike(section, known);
        let nearest = (SECTIONS.iter()).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        Self::Unknown { key: format!("[{section}]"), nearest: format!("[{}]", nearest.unwrap_or(&"")) }
    }
}

/// The settings in effect, each with its origin. Displays as one line per setting, secrets hidden.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    pub settings: Settings,
    /// Holds no entry for a setting that is at its default.
    origins: BTreeMap<&'static str, String>,
}

/// One setting in effect, its value as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    pub key: &'static str,
    pub value: String,
    /// `default`, `file toolrest.toml`, `environment TOOLREST__X__Y` or `flag --listen`.
    pub origin: String,
}

/// Reads all sources, the stronger after the weaker. A fault in a weaker source is an error even where
/// a stronger one overrides the value: it would come to light on the day the stronger one goes.
pub fn load(sources: Sources) -> Result<Loaded, SettingsError> {
    let mut loaded = Loaded::default();
    if let Some((path, text)) = sources.file {
        loaded.read_file(&path.display().to_string(), &text)?;
        // Only an empty path has no absolute form, and the text was read from somewhere.
        loaded.settings.file = Some(std::path::absolute(&path).unwrap_or(path));
    }
    loaded.read_environment(&sources.environment)?;
    for (key, flag, text) in sources.flags {
        loaded.set_text(key, &text, format!("flag {flag}"))?;
    }
    if loaded.settings.folders.local_dir.is_some() {
        loaded.default_for_one_folder(&sources.environment);
    }
    Ok(loaded)
}

/// The folder for a user's own data, as the XDG base directory specification has it.
fn own_data_dir(environment: &[(String, String)]) -> Option<PathBuf> {
    let variable =
        |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| PathBuf::from(value));
    let absolute = |path: &PathBuf| path.is_absolute();
    let data = variable("XDG_DATA_HOME").filter(absolute);
    let data = data.or_else(|| Some(variable("HOME").filter(absolute)?.join(".local/share")))?;
    Some(data.join("toolrest"))
}

impl Loaded {
    /// Sets other defaults for a server that is started for one folder: it is for one user, and its data must not lie
    /// in that folder.
    fn default_for_one_folder(&mut self, environment: &[(String, String)]) {
        const ORIGIN: &str = "default with folders.local_dir";
        if !self.origins.contains_key("auth.registration_open") {
            self.settings.auth.registration_open = false;
            self.origins.insert("auth.registration_open", ORIGIN.to_owned());
        }
        if let Some(data_dir) = own_data_dir(environment)
            && !self.origins.contains_key("server.data_dir")
        {
            self.settings.server.data_dir = data_dir;
            self.origins.insert("server.data_dir", ORIGIN.to_owned());
        }
    }

    /// Lists every setting, in the order of the table.
    pub fn report(&self) -> Vec<Effective> {
        let effective = |setting: &Setting| Effective {
            key: setting.key,
            value: setting.accepts.show((setting.get)(&self.settings)),
            origin: (self.origins.get(setting.key)).map_or("default", String::as_str).to_owned(),
        };
        TABLE.iter().map(effective).collect()
    }

    fn read_file(&mut self, file: &str, text: &str) -> Result<(), SettingsError> {
        let place = |span: Range<usize>| {
            let before = text.get(..span.start).unwrap_or_default();
            format!("file {file}, line {}", before.matches('\n').count() + 1)
        };
        // Only the message: the error as a whole quotes the line, which may hold a secret.
        let syntax = |error: toml::de::Error| {
            Problem::Syntax(error.message().to_owned()).at(place(error.span().unwrap_or_default()))
        };
        for (section, content) in DeTable::parse(text).map_err(syntax)?.into_inner() {
            let name = section.get_ref();
            let rows = match (content.into_inner(), SECTIONS.contains(&name.as_ref())) {
                (DeValue::Table(rows), true) => Ok(rows),
                (DeValue::Table(_), false) => Err(Problem::unknown_section(name)),
                (_, true) => Err(Problem::NotASection(name.to_string())),
                (_, false) => Err(Problem::unknown_key(name)),
            };
            for (key, value) in rows.map_err(|problem| problem.at(place(section.span())))? {
                // Only a number past 64 bits fails here. Infinity, which no setting takes, stands for it,
                // because the message of the failure would show the number, and it may be a secret.
                let value = Value::deserialize(ValueDeserializer::from(value)).unwrap_or(Value::Float(f64::INFINITY));
                let path = format!("{name}.{}", key.get_ref());
                self.set(&path, |_| value, format!("file {file}")).map_err(|problem| problem.at(place(key.span())))?;
            }
        }
        Ok(())
    }

    fn read_environment(&mut self, variables: &[(String, String)]) -> Result<(), SettingsError> {
        // The aliases come first, so that our own name for the same setting wins.
        for (alias, key) in ALIASES {
            for (_, text) in variables.iter().filter(|(variable, _)| variable == alias) {
                self.set_text(key, text, format!("environment {alias}"))?;
            }
        }
        for (variable, text) in variables {
            if let Some(rest) = variable.strip_prefix(PREFIX) {
                let key = rest.to_lowercase().replacen("__", ".", 1);
                self.set_text(&key, text, format!("environment {variable}"))?;
            }
        }
        Ok(())
    }

    fn set_text(&mut self, key: &str, text: &str, origin: String) -> Result<(), SettingsError> {
        self.set(key, |accepts| accepts.typed(text), origin.clone()).map_err(|problem| problem.at(origin))
    }

    fn set(&mut self, key: &str, value: impl FnOnce(&Accepts) -> Value, origin: String) -> Result<(), Problem> {
        let setting = TABLE.iter().find(|setting| setting.key == key);
        let setting = setting.ok_or_else(|| Problem::unknown_key(key))?;
        let value = value(&setting.accepts);
        if setting.accepts.allows(&value) && (setting.set)(&mut self.settings, value.clone()) {
            self.origins.insert(setting.key, origin);
            return Ok(());
        }
        Err(Problem::Refused {
            key: setting.key,
            value: setting.accepts.show_refused(&value),
            expected: setting.accepts.to_string(),
        })
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |e: Effective| (format!("{} = {}", e.key, e.value), e.origin);
        let lines: Vec<_> = self.report().into_iter().map(line).collect();
        let widths = lines.iter().map(|(assignment, _)| assignment.chars().count());
        let width = widths.max().unwrap_or_default();
        for (assignment, origin) in lines {
            writeln!(f, "{assignment:<width$}   # {origin}")?;
        }
        Ok(())
    }
}

/// Writes the table as Markdown, for `docs/configuration.md`.
pub fn reference() -> String {
    let defaults = Settings::default();
    let row = |setting: &Setting| {
        let key = setting.key;
        let aliases = ALIASES.iter().filter(|(_, aliased)| *aliased == key);
        let mut names = vec![format!("{PREFIX}{}", key.to_uppercase().replace('.', "__"))];
        names.extend(aliases.map(|(alias, _)| (*alias).to_owned()));
        let default = setting.accepts.show((setting.get)(&defaults));
        let about = format!("{} Takes {}.", setting.about.trim_start(), setting.accepts);
        format!("| `{key}` | `{}` | `{default}` | {about} |\n", names.join("`, `"))
    };
    let head = "| setting | environment | default | what it does |\n|---|---|---|---|\n";
    let rows: Vec<_> = TABLE.iter().map(row).collect();
    head.to_owned() + &rows.concat()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
