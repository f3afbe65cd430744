//! Every setting of the server, defined once in the table below.
//!
//! The TOML file overrides the defaults, the environment (`TOOLREST__SECTION__KEY`) overrides the file, and the command
//! line overrides both. The section structs, their defaults, the report of effective values and the page of the
//! documentation are generated from the table.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strsim::normalized_damerau_levenshtein as alike;
use toml::Value;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toolrest_core::rules::{ApprovalMode, Rule, RuleList};
use toolrest_ops::outside::http_client::{HttpUrl, ProxyAddress, USER_AGENT};
use toolrest_ops::outside::{AddressRange, AllowList};

use crate::http::host::{HostPattern, Origin};
use crate::tool_backend::ToolBackendListen;

const PREFIX: &str = "TOOLREST__";
const HIDDEN: &str = "********";
const SECRET_MIN_CHARS: usize = 32;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const GIB: i64 = 1 << 30;

/// The names of settings in specification 000.
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

            // Not derived, because a log must not contain secrets.
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
    /// Address, data folder and shutdown.
    server: Server {
        /// Address and port to listen on; with port 0 the system chooses a free port.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 3000)), Accepts::Address;
        /// Folder for all data of the server, including the embedded database. With `folders.local_dir`, the default is `toolrest` in the user's own data folder (`$XDG_DATA_HOME` or `~/.local/share`).
        data_dir: PathBuf = PathBuf::from("./data"), Accepts::Folder;
        /// Time that running calls get to finish when the server stops; 0 does not wait.
        shutdown_grace_ms: u64 = 30_000, Accepts::Whole(0, DAY_MS);
        /// Host names that the header `Host` may have (`tools.example.com`, `*.example.com`, `*` for any). Always allowed are `localhost` and loopback addresses and, if the server listens on another address, all IP addresses.
        allowed_hosts: Vec<String> = Vec::new(), Accepts::HostNames;
        /// Origins of web pages that may call the server (`https://console.example.com`). The server's own origin is always allowed.
        allowed_origins: Vec<String> = Vec::new(), Accepts::Origins;
        /// Addresses of proxies whose `X-Forwarded-For` is trusted (`127.0.0.1`, `10.1.0.0/16`).
        trusted_proxies: Vec<String> = Vec::new(), Accepts::Ranges;
    }

    /// The database.
    database: Database {
        /// URL of a PostgreSQL database. `sslmode=require` encrypts connections; `sslmode=verify-full` also verifies the server, with the root certificates of the machine or those in `sslrootcert=FILE`. Without a URL, the server uses SQLite in `server.data_dir`.
        url: Option<String> = None, Accepts::PostgresUrl;
        /// Maximum number of open connections.
        pool_size: usize = 10, Accepts::Whole(1, 1000);
        /// Time limit of one statement.
        statement_timeout_ms: u64 = 30_000, Accepts::Whole(1, DAY_MS);
    }

    /// Access tokens.
    jwt: Jwt {
        /// Key that signs access tokens. Without it, the server creates one and stores it in the database.
        secret: Option<String> = None, Accepts::Secret;
        /// Lifetime of an access token.
        access_token_expiration_minutes: u32 = 15, Accepts::Whole(1, 525_600);
    }

    /// Accounts and sign-in.
    auth: Auth {
        /// Whether anybody may register an account. With `folders.local_dir`, the default is false.
        registration_open: bool = true, Accepts::Switch;
        /// Lifetime of a refresh token.
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

    /// Limits of requests and calls.
    limits: Limits {
        /// Maximum size of a request body.
        body_bytes: usize = 32 << 20, Accepts::Whole(1, GIB);
        /// Maximum size of a response body.
        response_bytes: usize = 32 << 20, Accepts::Whole(1, GIB);
        /// Maximum number of bytes of requests and answers in memory, for all callers together. A request for which there is no room waits, then gets 503. One account can use a quarter; a sixteenth is reserved for small bodies. The same limit holds for large files that calls read.
        in_flight_bytes: usize = 256 << 20, Accepts::Whole(1 << 20, 1024 * GIB);
        /// Maximum number of open connections. One address can use half of them, unless it is a trusted proxy.
        connections: usize = 4096, Accepts::Whole(2, 1_000_000);
        /// Time limit of a call, including waiting; a call that runs a program may take `run.max_timeout_ms` more.
        call_timeout_ms: u64 = 30_000, Accepts::Whole(1, DAY_MS);
        /// Maximum number of calls at once in one workspace; further calls wait until their deadline.
        calls_per_workspace: usize = 256, Accepts::Whole(1, 100_000);
        /// Maximum number of calls at once of one account, over all workspaces; further calls wait until their deadline.
        calls_per_account: usize = 512, Accepts::Whole(1, 100_000);
    }

    /// Limits of accounts and workspaces.
    quotas: Quotas {
        /// Maximum number of bytes that one workspace stores in the database, including earlier versions and the trash; 0 means no limit.
        bytes_per_workspace: u64 = 8 << 30, Accepts::Whole(0, 1024 * 1024 * GIB);
        /// Maximum number of bytes that all workspaces of one owner store together; 0 means no limit.
        bytes_per_account: u64 = 32 << 30, Accepts::Whole(0, 1024 * 1024 * GIB);
        /// Maximum number of workspaces that one account owns; 0 means no limit.
        workspaces_per_account: u64 = 500, Accepts::Whole(0, 1_000_000);
        /// Maximum number of open event streams of one account.
        event_streams_per_account: usize = 32, Accepts::Whole(1, 100_000);
    }

    /// Real folders as workspaces.
    folders: Folders {
        /// Folders that any account may open as workspaces, with all folders below them.
        allowed_roots: Vec<PathBuf> = Vec::new(), Accepts::Folders;
        /// Folders that only the named accounts may open as workspaces, with all folders below them (`ada@example.com=/srv/ada`). Such an entry also closes the folder to all other accounts if it is below an allowed root.
        account_roots: Vec<String> = Vec::new(), Accepts::AccountRoots;
        /// Folder to open as the local workspace, which only the account `local` can use.
        local_dir: Option<PathBuf> = None, Accepts::Folder;
        /// Whether tools may change `.git`. Git on the host executes commands from its `config` and `hooks`.
        git_writable: bool = false, Accepts::Switch;
        /// Maximum size of a file whose earlier contents are kept. Of larger files, only the hash and the size are kept.
        history_file_bytes: u64 = 64 << 20, Accepts::Whole(0, GIB);
        /// Maximum number of bytes of earlier contents that one change adds to the history.
        history_commit_bytes: u64 = 256 << 20, Accepts::Whole(0, 1024 * GIB);
        /// Maximum size of the history of one folder; the oldest contents are removed first. 0 means no limit.
        history_total_bytes: u64 = 4 << 30, Accepts::Whole(0, 1024 * 1024 * GIB);
    }

    /// Programs, which run in the sandbox.
    run: Run {
        /// Whether tools may run programs.
        enabled: bool = true, Accepts::Switch;
        /// Default time limit of a program.
        timeout_ms: u64 = 60_000, Accepts::Whole(1, DAY_MS);
        /// Maximum time limit that a call can request for a program.
        max_timeout_ms: u64 = 600_000, Accepts::Whole(1, DAY_MS);
        /// Default memory limit of a program, for all its processes together.
        memory_bytes: u64 = 1 << 30, Accepts::Whole(16 << 20, 1024 * GIB);
        /// Maximum memory limit that a call can request for a program.
        max_memory_bytes: u64 = 4 << 30, Accepts::Whole(16 << 20, 1024 * GIB);
        /// Maximum number of processes and threads of a program at once.
        processes: u64 = 256, Accepts::Whole(1, 100_000);
        /// Maximum number of bytes by which a program may enlarge the files.
        disk_bytes: u64 = 2 << 30, Accepts::Whole(1 << 20, 1024 * GIB);
        /// Maximum number of files and folders that a program may create.
        new_files: u64 = 200_000, Accepts::Whole(1, 100_000_000);
        /// Maximum number of bytes that a program may print; then it is ended.
        output_bytes: u64 = 256 << 20, Accepts::Whole(1, 1024 * GIB);
        /// Maximum number of bytes of each output stream in an answer: the beginning and the end.
        output_kept_bytes: usize = 256 << 10, Accepts::Whole(1, 16 << 20);
        /// Maximum number of programs at once; further programs wait until their deadline.
        at_once: usize = 32, Accepts::Whole(1, 10_000);
        /// Maximum number of programs at once of one account, over all workspaces; further programs wait without delaying other accounts.
        at_once_per_account: usize = 16, Accepts::Whole(1, 10_000);
        /// Maximum number of programs at once in one workspace; further programs wait without delaying other workspaces.
        at_once_per_workspace: usize = 8, Accepts::Whole(1, 10_000);
        /// Number of interpreters that are started in advance, so that short scripts start at once; 0 starts none.
        waiting_interpreters: usize = 8, Accepts::Whole(0, 1000);
        /// Maximum size of a file in a program's commit; larger files are left out.
        keep_file_bytes: u64 = 64 << 20, Accepts::Whole(0, GIB);
        /// Maximum number of bytes in a program's commit; the rest is left out. Programs that end at the same time use twice as much memory together, and those of one account once as much.
        keep_bytes: u64 = 256 << 20, Accepts::Whole(0, 1024 * GIB);
        /// Maximum number of files and folders in a program's commit; the rest is left out.
        keep_files: usize = 20_000, Accepts::Whole(0, 1_000_000);
        /// Hosts that workspaces may allow their programs to reach (`pypi.org`, `*.example.com`, `*`). If the list is empty, programs have no network.
        network_hosts: Vec<String> = Vec::new(), Accepts::Hosts;
        /// Private address ranges that programs may reach (`10.1.0.0/16`).
        network_private: Vec<String> = Vec::new(), Accepts::Ranges;
        /// What to do if no overlay can be mounted on a folder: `refuse` the program, or run it on the folder itself (`in_place`).
        without_overlay: WithoutOverlay = WithoutOverlay::Refuse, Accepts::OneOf("refuse, in_place");
        /// Whether programs may run on a kernel without Landlock, which is one layer of isolation less.
        accept_missing_landlock: bool = false, Accepts::Switch;
        /// Whether programs may use the compilers and interpreters that the server's own `PATH` shows: those of rustup, pyenv, nvm and the like in the home directory, and folders outside of it. Default with `--dir`: true.
        host_toolchains: bool = false, Accepts::Switch;
        /// Folders that programs see at the same path, read-only, besides `/usr`.
        read_only: Vec<PathBuf> = Vec::new(), Accepts::Folders;
        /// Folders of programs that are searched before the system's.
        path: Vec<PathBuf> = Vec::new(), Accepts::Folders;
        /// Maximum size of the home directory that the programs of a workspace keep between runs; if it is larger, it is emptied when no program uses it. 0 gives every program an empty one.
        cache_bytes: u64 = 4 << 30, Accepts::Whole(0, 1024 * GIB);
        /// Maximum size of these home directories of one account together; those that were used longest ago are emptied first.
        cache_bytes_per_account: u64 = 8 << 30, Accepts::Whole(0, 1024 * GIB);
        /// Days after which a home directory that was not used is emptied.
        cache_days: u32 = 30, Accepts::Whole(1, 3650);
        /// Folder of the Python environment of the data tools. Default: `python` in the data folder.
        python_dir: Option<PathBuf> = None, Accepts::Folder;
        /// Maximum number of background processes at once in one workspace.
        background_at_once: usize = 8, Accepts::Whole(0, 1000);
        /// Maximum number of background processes at once of one account, over all workspaces.
        background_at_once_per_account: usize = 16, Accepts::Whole(0, 100_000);
        /// Maximum number of background processes at once in all workspaces together.
        background_at_once_in_all: usize = 64, Accepts::Whole(0, 100_000);
        /// Time after which a background process is ended if no call has asked for it.
        background_lease_ms: u64 = 1_800_000, Accepts::Whole(1, 30 * DAY_MS);
        /// Maximum time that a background process may run.
        background_max_ms: u64 = 86_400_000, Accepts::Whole(1, 30 * DAY_MS);
        /// Interval at which the changes of a background process are committed.
        background_commit_ms: u64 = 10_000, Accepts::Whole(100, DAY_MS);
    }

    /// File search.
    search: Search {
        /// Time limit of a search.
        timeout_ms: u64 = 10_000, Accepts::Whole(1, DAY_MS);
        /// Size of the cache for texts of recently searched workspaces, for all workspaces together; 0 disables the cache.
        cache_bytes: usize = 512 << 20, Accepts::Whole(0, 1024 * GIB);
    }

    /// Secrets of workspaces.
    secrets: SecretSettings {
        /// Key that encrypts the secrets of workspaces. Without it, the server creates one in the file `secrets.key` of `server.data_dir`. Servers on several machines need the same key, and so this setting.
        key: Option<String> = None, Accepts::Secret;
        /// The key before, with which older secrets are still read. `toolrest secrets rotate-key` encrypts them with the new key.
        previous_key: Option<String> = None, Accepts::Secret;
    }

    /// The listener of specification 003.
    tool_backend: ToolBackend {
        /// Address and port at which specification 003 is served (`GET /health`, `GET /tools`, `POST /execute-tool`), for one workspace: the folder of `folders.local_dir`, or else the database workspace `tool-backend` of the account `local`. `auto` is `127.0.0.1:3001`, without an error if that port is taken; `none` turns it off.
        listen: ToolBackendListen = ToolBackendListen::Auto, Accepts::OptionalAddress;
        /// Whether calls need a token. Without it, a call from this machine that has no token acts for the account `local`. An address that other machines can reach is served only with `true`.
        require_token: bool = false, Accepts::Switch;
    }

    /// The web: `web_fetch`, `web_search` and `browse_web`.
    web: Web {
        /// Whether tools may reach the web.
        enabled: bool = true, Accepts::Switch;
        /// Hosts that `web_fetch` reaches without asking a person (`docs.rs`, `*.example.com`, `example.com:8443`, `*`).
        fetch_hosts: Vec<String> = Vec::new(), Accepts::Hosts;
        /// Private address ranges that tools may reach (`10.1.0.0/16`).
        allow_private: Vec<String> = Vec::new(), Accepts::Ranges;
        /// Default time limit of a request.
        timeout_ms: u64 = 20_000, Accepts::Whole(1, DAY_MS);
        /// Maximum time limit that a call can request.
        max_timeout_ms: u64 = 120_000, Accepts::Whole(1, DAY_MS);
        /// Maximum size of a response, also when it is decompressed.
        response_bytes: usize = 5 << 20, Accepts::Whole(1, GIB);
        /// Maximum number of requests at once; further requests wait.
        at_once: usize = 64, Accepts::Whole(1, 10_000);
        /// Maximum number of requests at once of one account.
        at_once_per_account: usize = 8, Accepts::Whole(1, 10_000);
        /// The name under which hosts see the server (`User-Agent`).
        user_agent: String = USER_AGENT.to_owned(), Accepts::FieldValue;
        /// Whether tools leave out what hosts exclude for programs in their `robots.txt`.
        robots_txt: bool = false, Accepts::Switch;
        /// Whether `browse_web` has pages with scripts rendered by Chromium, in the sandbox for programs, if Chromium is installed.
        browser: bool = true, Accepts::Switch;
        /// Proxy for all requests of the web and GitHub tools (`http://proxy.example.com:3128`). It resolves the names of hosts.
        proxy: Option<String> = None, Accepts::Proxy;
        /// File with certificates in PEM format that are trusted in addition to those of the machine.
        ca_file: Option<PathBuf> = None, Accepts::File;
        /// Service of `web_search`.
        search_provider: Option<SearchService> = None, Accepts::OneOf("searxng, brave, tavily");
        /// Address of the search service. It is needed for `searxng`, and has a default for the others.
        search_url: Option<String> = None, Accepts::Url;
        /// Access key of the search service.
        search_key: Option<String> = None, Accepts::Key;
        /// Address of the API of a model that writes the summaries of `browse_web` (`http://127.0.0.1:11434/v1`, `https://api.anthropic.com/v1`). Without it, they consist of sentences of the page.
        model_url: Option<String> = None, Accepts::Url;
        /// The format of that API.
        model_api: ModelFormat = ModelFormat::OpenAi, Accepts::OneOf("openai, anthropic");
        /// The model for summaries.
        model: Option<String> = None, Accepts::FieldValue;
        /// Access key of that API.
        model_key: Option<String> = None, Accepts::Key;
    }

    /// GitHub.
    github: GitHub {
        /// Address of the API; for GitHub Enterprise, `https://HOST/api/v3`.
        api_url: String = "https://api.github.com".to_owned(), Accepts::Url;
        /// Access token for calls of the local user (`serve --dir`). Other accounts never use it.
        token: Option<String> = None, Accepts::Key;
    }

    /// The toolset `agent`. The sizes are the maximum bytes of the text of an answer; what does not fit is named, counted and kept.
    agent: Agent {
        /// The editors that models get: `both`, only `edit`, or only `apply_patch` (`patch`).
        edit_tools: EditTools = EditTools::Both, Accepts::OneOf("both, edit, patch");
        /// Time for which `run` waits for a command; then the command goes on as a job.
        wait_seconds: u64 = 45, Accepts::Whole(0, 600);
        /// Answers of `read`.
        read_bytes: usize = 32_768, Accepts::Whole(16_384, 40_000);
        /// Answers of `web_fetch`.
        web_bytes: usize = 16_384, Accepts::Whole(2_048, 40_000);
        /// Answers of `changes`.
        changes_bytes: usize = 12_288, Accepts::Whole(2_048, 40_000);
        /// Answers of `run` and `job`.
        run_bytes: usize = 10_240, Accepts::Whole(2_048, 40_000);
        /// Answers of `grep`.
        grep_bytes: usize = 8_192, Accepts::Whole(2_048, 40_000);
        /// Answers of `ls`.
        ls_bytes: usize = 6_144, Accepts::Whole(2_048, 40_000);
        /// Answers of tools that change files.
        edit_bytes: usize = 3_072, Accepts::Whole(1_024, 40_000);
    }

    /// Rules and approvals.
    policy: PolicySettings {
        /// When calls wait for a person: as each specification and the rules say (`spec`), before everything but reading (`all`), never, with what would ask allowed (`off`) or refused (`never`). Without it, each workspace chooses; its default is `spec`.
        approvals: Option<ApprovalMode> = None, Accepts::OneOf("spec, off, all, never");
        /// Whether persons may approve calls that they made themselves. Calls of their agent keys they may always decide.
        self_approval: bool = true, Accepts::Switch;
        /// Time for which a call that must ask waits for a decision, if its caller does not say otherwise. Then the caller learns that it waits.
        wait_ms: u64 = 45_000, Accepts::Whole(0, 600_000);
        /// Rules for all workspaces, such as `deny write(**/.env)`. In the file they can also be tables `[[rule]]`.
        rules: Vec<Rule> = Vec::new(), Accepts::Rules;
    }

    /// Messages about approvals and failed calls.
    webhooks: Webhooks {
        /// Addresses that get a message when a call waits for approval, is decided about, or fails.
        urls: Vec<String> = Vec::new(), Accepts::Urls;
        /// Key with which messages are signed.
        secret: Option<String> = None, Accepts::Secret;
    }

    /// Metrics for monitoring.
    metrics: Metrics {
        /// Address and port that serve `GET /metrics` in the text format of Prometheus, without a token; use an address that only the monitoring can reach. Without it, there is no such listener.
        listen: Option<SocketAddr> = None, Accepts::Address;
        /// Token with which `GET /metrics` is also served at `server.listen` (`Authorization: Bearer …`). Without it, that route does not exist.
        token: Option<String> = None, Accepts::Secret;
    }

    /// How long deleted files and records are kept.
    retention: Retention {
        /// Days that deleted files stay in the trash; 0 keeps them forever.
        trash_days: u32 = 30, Accepts::Whole(0, 36_500);
        /// Days that the records of calls are kept; 0 keeps them forever.
        calls_days: u32 = 30, Accepts::Whole(0, 36_500);
    }

    /// The log.
    log: Log {
        /// Least severe level that is logged.
        level: LogLevel = LogLevel::Info, Accepts::OneOf("error, warn, info, debug, trace");
        /// Format of log lines: `text` for people, `json` for machines.
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
pub enum EditTools {
    Both,
    Edit,
    Patch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchService {
    Searxng,
    Brave,
    Tavily,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelFormat {
    OpenAi,
    Anthropic,
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

/// One row of the table of settings.
struct Setting {
    key: &'static str,
    about: &'static str,
    accepts: Accepts,
    get: fn(&Settings) -> Option<Value>,
    /// Returns false, and changes nothing, if the value does not fit the field's type.
    set: fn(&mut Settings, Value) -> bool,
}

/// The values that a setting accepts, and how they are shown.
enum Accepts {
    AccountRoots,
    Address,
    FieldValue,
    File,
    Folder,
    Folders,
    HostNames,
    Hosts,
    Key,
    OneOf(&'static str),
    OptionalAddress,
    Origins,
    PostgresUrl,
    Proxy,
    Ranges,
    Rules,
    Secret,
    Switch,
    Url,
    Urls,
    Whole(i64, i64),
}

impl Accepts {
    /// Converts a text from the environment or the command line into the type that it would have in a file.
    fn typed(&self, text: &str) -> Value {
        let typed = match self {
            Self::Switch => text.parse().ok().map(Value::Boolean),
            Self::Whole(..) => text.parse().ok().map(Value::Integer),
            Self::Folders => {
                let folders = std::env::split_paths(text).map(|path| path.display().to_string());
                Some(Value::Array(folders.map(Value::String).collect()))
            }
            Self::AccountRoots | Self::HostNames | Self::Hosts | Self::Origins | Self::Ranges | Self::Urls => {
                let entries = text.split(',').map(|entry| Value::String(entry.trim().to_owned()));
                Some(Value::Array(entries.collect()))
            }
            Self::Rules => {
                let rules = text.split(';').map(str::trim);
                Some(Value::Array(rules.map(|rule| Value::String(rule.to_owned())).collect()))
            }
            _ => None,
        };
        typed.unwrap_or_else(|| Value::String(text.to_owned()))
    }

    fn allows(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::File | Self::Folder, Value::String(path)) => !path.is_empty(),
            (Self::FieldValue | Self::Key, Value::String(text)) => {
                !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            }
            (Self::Proxy, Value::String(url)) => url.parse::<ProxyAddress>().is_ok(),
            (Self::Url, Value::String(url)) => HttpUrl::parse(url).is_ok(),
            (Self::Urls, Value::Array(urls)) => all_texts(urls, |url| HttpUrl::parse(url).is_ok()),
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
            (Self::Rules, rules) => {
                rules.clone().try_into().is_ok_and(|rules: Vec<Rule>| RuleList::compile(rules).is_ok())
            }
            (Self::PostgresUrl, Value::String(url)) => {
                url.starts_with("postgres://") || url.starts_with("postgresql://")
            }
            (Self::Secret, Value::String(secret)) => secret.chars().count() >= SECRET_MIN_CHARS,
            (Self::Whole(min, max), Value::Integer(number)) => (min..=max).contains(&number),
            // Other values are checked by the type of the field.
            _ => true,
        }
    }

    fn show(&self, value: Option<Value>) -> String {
        match (self, value) {
            (_, None) => "(none)".to_owned(),
            (Self::Key | Self::Secret, _) => format!("{HIDDEN:?}"),
            (Self::PostgresUrl | Self::Proxy, Some(Value::String(url))) => {
                format!("{:?}", without_password(&url))
            }
            (_, Some(value)) => value.to_string(),
        }
    }

    /// Shows a value that was refused. In a malformed value the secret part cannot be found, so all of it is hidden.
    fn show_refused(&self, value: &Value) -> String {
        match self {
            Self::Key | Self::Proxy | Self::Secret | Self::PostgresUrl => "(hidden)".to_owned(),
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
            Self::FieldValue => f.write_str("a text of ASCII characters"),
            Self::File => f.write_str("the path of a file"),
            Self::Folder => f.write_str("the path of a folder"),
            Self::Folders => f.write_str("a list of folders; in the environment with colons between them"),
            Self::Hosts => f.write_str("a list of hosts; in the environment with commas between them"),
            Self::OptionalAddress => f.write_str("an IP address with a port, `auto` or `none`"),
            Self::Key => f.write_str("an access key"),
            Self::OneOf(names) => write!(f, "one of {names}"),
            Self::PostgresUrl => f.write_str("a URL such as \"postgres://user@host/database\""),
            Self::Proxy => f.write_str("a URL such as \"http://user:password@host:3128\""),
            Self::Ranges => f.write_str("a list of address ranges; in the environment with commas between them"),
            Self::Rules => f.write_str("a list of rules; in the environment with semicolons between them"),
            Self::Secret => write!(f, "a text of at least {SECRET_MIN_CHARS} characters"),
            Self::Switch => f.write_str("true or false"),
            Self::Url => f.write_str("a URL such as \"https://example.com/api\""),
            Self::Urls => f.write_str("a list of URLs; in the environment with commas between them"),
            Self::Whole(min, max) => write!(f, "a whole number from {min} to {max}"),
        }
    }
}

/// Whether every entry of a list is a text that passes.
fn all_texts(entries: &[Value], passes: impl Fn(&str) -> bool) -> bool {
    entries.iter().all(|entry| entry.as_str().is_some_and(&passes))
}

/// Parses an entry `account=/folder` into the account, in lower case, and the folder.
fn account_root(entry: &str) -> Option<(String, PathBuf)> {
    let (account, _) = entry.split_once("=/")?;
    let folder = PathBuf::from(entry.get(account.len() + 1..)?);
    (!account.trim().is_empty()).then(|| (account.trim().to_lowercase(), folder))
}

/// Hides the password of a database URL, before the host and among the parameters.
fn without_password(url: &str) -> String {
    let hide = |part: &str| match part.split_once("password=") {
        Some((before, value)) => {
            let separator = if value.ends_with('&') { "&" } else { "" };
            format!("{before}password={HIDDEN}{separator}")
        }
        None => part.to_owned(),
    };
    let url: String = url.split_inclusive(['?', '&']).map(hide).collect();
    // The last `@` and not the first: a password may contain `@`.
    if let Some((login, host)) = url.rsplit_once('@')
        && let [scheme, user, _] = login.splitn(3, ':').collect::<Vec<_>>()[..]
    {
        return format!("{scheme}:{user}:{HIDDEN}@{host}");
    }
    url
}

/// The sources of settings. The type has no `Debug`, because it holds secrets in plain text.
#[derive(Clone, Default)]
pub struct Sources {
    /// Path and text of the TOML file.
    pub file: Option<(PathBuf, String)>,
    /// Names and values of all variables; variables without our prefix are ignored.
    pub environment: Vec<(String, String)>,
    /// Key of the setting, the flag (`--listen`), and its value.
    pub flags: Vec<(&'static str, String, String)>,
}

impl Settings {
    /// Returns the path of the embedded database.
    pub fn database_file(&self) -> PathBuf {
        self.server.data_dir.join("toolrest.db")
    }

    /// Returns the entries of `folders.account_roots`: account in lower case, and folder.
    pub(crate) fn account_roots(&self) -> impl Iterator<Item = (String, PathBuf)> {
        self.folders.account_roots.iter().filter_map(|entry| account_root(entry))
    }
}

/// An error in the settings, with its place: file and line, variable or flag.
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
        // The name weighs more than the section: a setting in the wrong section is the likelier mistake.
        let likeness = |known: &Setting| {
            let (known_section, known_name) = known.key.split_once('.').unwrap_or_default();
            2.0 * alike(name, known_name) + alike(section, known_section)
        };
        // Of equally similar ones, the first in the table.
        let nearest = (TABLE.iter().rev()).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        Self::Unknown { key: key.to_owned(), nearest: nearest.map_or("", |setting| setting.key).to_owned() }
    }

    fn unknown_section(section: &str) -> Self {
        let likeness = |known| alike(section, known);
        let nearest = (SECTIONS.iter()).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        Self::Unknown { key: format!("[{section}]"), nearest: format!("[{}]", nearest.unwrap_or(&"")) }
    }
}

/// The settings in effect, each with its origin. `Display` writes one line per setting, with secrets hidden.
#[derive(Clone, Debug, Default)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// Has no entry for a setting that has its default.
    origins: BTreeMap<&'static str, String>,
}

/// One setting in effect, with its value as shown to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveSetting {
    pub key: &'static str,
    pub value: String,
    /// `default`, `file toolrest.toml`, `environment TOOLREST__X__Y` or `flag --listen`.
    pub origin: String,
}

/// Reads all sources, in the order in which they override each other. A wrong value is an error even if a later source
/// overrides it, because it would show up only when the later one is removed.
pub fn load(sources: Sources) -> Result<LoadedSettings, SettingsError> {
    let mut loaded = LoadedSettings::default();
    if let Some((path, text)) = sources.file {
        loaded.read_file(&path.display().to_string(), &text)?;
        // This fails only for an empty path, from which no text can have been read.
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

/// Returns the folder for a user's own data by the XDG base directory specification.
fn own_data_dir(environment: &[(String, String)]) -> Option<PathBuf> {
    let variable =
        |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| PathBuf::from(value));
    let absolute = |path: &PathBuf| path.is_absolute();
    let data = variable("XDG_DATA_HOME").filter(absolute);
    let data = data.or_else(|| Some(variable("HOME").filter(absolute)?.join(".local/share")))?;
    Some(data.join("toolrest"))
}

impl LoadedSettings {
    /// Sets other defaults for `serve --dir`: the server is for one user, and its data must not be in that folder.
    fn default_for_one_folder(&mut self, environment: &[(String, String)]) {
        const ORIGIN: &str = "default with folders.local_dir";
        if !self.origins.contains_key("auth.registration_open") {
            self.settings.auth.registration_open = false;
            self.origins.insert("auth.registration_open", ORIGIN.to_owned());
        }
        if !self.origins.contains_key("run.host_toolchains") {
            self.settings.run.host_toolchains = true;
            self.origins.insert("run.host_toolchains", ORIGIN.to_owned());
        }
        if let Some(data_dir) = own_data_dir(environment)
            && !self.origins.contains_key("server.data_dir")
        {
            self.settings.server.data_dir = data_dir;
            self.origins.insert("server.data_dir", ORIGIN.to_owned());
        }
    }

    /// Lists every setting, in the order of the table.
    pub fn report(&self) -> Vec<EffectiveSetting> {
        let effective = |setting: &Setting| EffectiveSetting {
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
        // Only the message is used: the whole error quotes the line, which may contain a secret.
        let syntax = |error: toml::de::Error| {
            Problem::Syntax(error.message().to_owned()).at(place(error.span().unwrap_or_default()))
        };
        for (section, content) in DeTable::parse(text).map_err(syntax)?.into_inner() {
            let name = section.get_ref();
            if name == "rule" {
                if self.origins.contains_key("policy.rules") {
                    let message =
                        "the rules are given twice, as `[[rule]]` and as `policy.rules`; give them in one form";
                    return Err(Problem::Syntax(message.to_owned()).at(place(section.span())));
                }
                let rules = Value::deserialize(ValueDeserializer::from(content));
                let rules = rules.unwrap_or(Value::Float(f64::INFINITY));
                self.set("policy.rules", |_| rules, format!("file {file}"))
                    .map_err(|problem| problem.at(place(section.span())))?;
                continue;
            }
            let rows = match (content.into_inner(), SECTIONS.contains(&name.as_ref())) {
                (DeValue::Table(rows), true) => Ok(rows),
                (DeValue::Table(_), false) => Err(Problem::unknown_section(name)),
                (_, true) => Err(Problem::NotASection(name.to_string())),
                (_, false) => Err(Problem::unknown_key(name)),
            };
            for (key, value) in rows.map_err(|problem| problem.at(place(section.span())))? {
                // Only a number over 64 bits fails here. It is replaced by infinity, which no setting accepts, because the
                // message of the failure would show the number, which may be a secret.
                let value = Value::deserialize(ValueDeserializer::from(value)).unwrap_or(Value::Float(f64::INFINITY));
                let path = format!("{name}.{}", key.get_ref());
                self.set(&path, |_| value, format!("file {file}")).map_err(|problem| problem.at(place(key.span())))?;
            }
        }
        Ok(())
    }

    fn read_environment(&mut self, variables: &[(String, String)]) -> Result<(), SettingsError> {
        // Aliases are read first, so that our own name overrides them.
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

impl fmt::Display for LoadedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |e: EffectiveSetting| (format!("{} = {}", e.key, e.value), e.origin);
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
