//! Chromium in the sandbox, which renders pages.

use super::Executor;
use crate::exec::errors::to_tool_error;
use crate::outside::proxy::{self, Gateway, ProxyLimits};
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;
use toolrest_core::{CallCx, ToolError};
use toolrest_sandbox::{CellSpec, Job, Limits, Network};

/// Where distributions install the program. In the sandbox there is nothing outside of /usr.
const PROGRAMS: [&str; 3] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
];
/// The port of its proxy, on its own loopback interface.
const PORT: u16 = 3128;
/// Its profile, which ends with the cell.
const HOME: &str = "/tmp";
/// Memory of all its processes together.
const MEMORY_BYTES: u64 = 1 << 30;
/// Address space that it reserves for the memory of scripts.
const RESERVED_BYTES: u64 = 16 << 40;
/// Maximum number of its processes and threads.
const PROCESSES: u64 = 512;
/// What it may send and receive for a page.
const TRAFFIC: ProxyLimits = ProxyLimits { connections: 32, total_bytes: 64 << 20 };
/// Time that scripts of a page see pass before the page is read. It does not pass while the page waits for a host.
const VIRTUAL_TIME: Duration = Duration::from_secs(5);
/// What the browser shows for a page that it could not load.
const ERROR_PAGE: &str = "id=\"main-frame-error\"";

/// Why a page was not rendered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RenderError {
    #[error("Chromium is not installed")]
    NotInstalled,
    #[error("{0}")]
    Sandbox(String),
    #[error("the browser could not load the page")]
    NotLoaded,
    #[error("the browser needed more than {0:?}")]
    TimedOut(Duration),
    #[error("the rendered page is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the browser failed")]
    Failed,
}

impl Executor {
    /// Has a browser render a page, and returns the page as it is after its scripts have run. It has no files of a
    /// workspace, and no connection but those that the gateway makes.
    pub(crate) async fn render(
        &self,
        cx: &CallCx,
        url: &str,
        gateway: impl Gateway,
        time: Duration,
        max_bytes: usize,
    ) -> Result<String, RenderError> {
        let program = PROGRAMS.into_iter().find(|program| Path::new(program).is_file());
        let program = program.ok_or(RenderError::NotInstalled)?;
        let spec = CellSpec {
            mounts: Vec::new(),
            links: Vec::new(),
            cwd: HOME.into(),
            env: [("HOME", HOME), ("LANG", "C.UTF-8"), ("PATH", "/usr/bin:/bin")]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
            network: Network::Listener { port: PORT },
            limits: limits(time, max_bytes),
        };
        let job = Job::new(spec, arguments(program, url));
        let run = async {
            let ready = self.ready().await?;
            let (_caller, mut gone) = oneshot::channel();
            let _slot = ready.wait_for_slot(cx, &mut gone).await?;
            let mut running = ready.pool.sandbox().spawn(job).await.map_err(|error| to_tool_error(&error))?;
            let listener = running.listener().await.map_err(|error| to_tool_error(&error))?;
            let _proxy = proxy::serve_through(listener, gateway, &TRAFFIC);
            running.wait().await.map_err(|error| to_tool_error(&error))
        };
        let report = run.await.map_err(|error: ToolError| RenderError::Sandbox(error.message))?;
        if report.limit_hit == Some(toolrest_sandbox::Limit::Time) {
            return Err(RenderError::TimedOut(time));
        }
        if report.stdout.cut_bytes() > 0 {
            return Err(RenderError::TooLarge(max_bytes));
        }
        let page = report.stdout.text();
        match page.trim() {
            _ if !report.success() => Err(RenderError::Failed),
            "" => Err(RenderError::Failed),
            page if page.contains(ERROR_PAGE) => Err(RenderError::NotLoaded),
            _ => Ok(page),
        }
    }
}

fn limits(time: Duration, max_bytes: usize) -> Limits {
    Limits {
        wall: time,
        cpu: time * 4,
        memory_bytes: MEMORY_BYTES,
        reserved_bytes: RESERVED_BYTES,
        processes: PROCESSES,
        output_kept_bytes: max_bytes,
        ..Limits::default()
    }
}

fn arguments(program: &str, url: &str) -> Vec<String> {
    let proxy = format!("--proxy-server=http://127.0.0.1:{PORT}");
    let budget = format!("--virtual-time-budget={}", VIRTUAL_TIME.as_millis());
    let arguments = [
        program,
        "--headless",
        // Its own sandbox needs what a cell does not allow; the cell takes its place.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-breakpad",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-sync",
        "--no-first-run",
        "--mute-audio",
        "--user-data-dir=/tmp/profile",
        &proxy,
        // Without this, loopback addresses would be reached without the proxy.
        "--proxy-bypass-list=<-loopback>",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        &budget,
        "--dump-dom",
        // It begins with its scheme, so it is no option.
        url,
    ];
    arguments.map(str::to_owned).into()
}
