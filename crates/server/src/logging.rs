//! Structured logs on standard error.

use crate::settings::{Log, LogFormat, LogLevel};
use tracing_subscriber::{
    Layer, filter::LevelFilter, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

/// Starts logging by the settings. Does nothing if the process has a logger already.
pub fn start(log: &Log) {
    let level = match log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match log.format {
        LogFormat::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // The protocol library logs whole messages, which contain files and arguments.
    let filter = Targets::new().with_default(level).with_target("rmcp", level.min(LevelFilter::ERROR));
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
