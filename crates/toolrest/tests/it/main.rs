//! Black-box tests: the real binary over HTTP, on SQLite and on PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// Tests poll and parse any JSON, which the product must not.
#![allow(clippy::disallowed_methods)]

#[macro_use]
mod on;

mod access;
mod accounts;
mod architecture;
mod backup;
mod chats;
mod command;
mod concurrency;
mod contents;
mod data_tools;
mod doctor;
mod durability;
mod edits;
mod encodings;
mod events;
mod exchanged_folders;
mod fairness;
mod files;
mod fixture;
mod folder_guards;
mod folder_history;
mod folders;
mod full_disk;
mod grep;
mod hashes;
mod history;
mod hostile;
mod http;
mod isolation;
mod job_network;
mod local_folder;
mod memory;
mod moves;
mod names;
mod nothing_silent;
mod origins;
mod outage;
mod patches;
mod processes;
mod programs;
mod quotas;
mod reference;
mod replicas;
mod replies;
mod roles;
mod search_storm;
mod sessions;
mod setup;
mod specifications;
mod start;
mod storm;
mod toolset;
mod toolset_backend;
mod toolset_coding;
mod toolset_file;
mod toolset_system;
mod undo;
mod upgrade;
mod user_command;
mod workspace_settings;
