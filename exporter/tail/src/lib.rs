//! Reads logs: imports a file or a folder to its end, or follows files while they are written.
//!
//! [`LogSource`] imports one input. [`TailSource`] follows every file that its configuration names, through rotation,
//! truncation and restarts; [`Checkpointer`] stores its checkpoints. Both give the bytes to a format of `pulsetrain-formats`.

mod catch_panic;
mod claims;
mod error;
mod event_files;
mod folder;
mod follow;
#[cfg(test)]
mod fragile;
mod import;
mod import_report;
mod input;
mod member;
mod run_options;
mod suggestion;

pub use catch_panic::catch_panic;
pub use claims::{Claims, SharedRank};
pub use error::TailError;
pub use event_files::options_of_file;
pub use folder::{is_log_of, logs_in};
pub use follow::{
    AtStop, CheckpointNotice, Checkpointer, JOINED_BYTES, LogState, LogStatus, OpenMode, PollReport,
    TailConfig, TailEvent, TailSource, TailStatus, followed_files,
};
pub use import::{LogSource, inspect};
pub use import_report::{ImportNotice, ImportReport};
pub use input::LogInput;
pub use member::{Member, RankPatternError, RankSource};
pub use run_options::RunOptions;
pub use suggestion::suggest_mapping_of;
