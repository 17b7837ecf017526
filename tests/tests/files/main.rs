//! Tests without servers: files as input, files or text as output, and the rules of the repository. `tests/run --quick` runs
//! them.

mod bad_input;
mod bad_text;
mod command_line;
mod console;
mod derived_signals;
mod generated_dashboards;
mod golden;
mod idempotent;
mod import_counts;
mod import_events;
mod language;
mod log_times;
mod mapping;
mod picture;
mod pipes;
mod progress;
mod ranks;
mod semconv_command;
mod structure;
mod test_runs;
mod timezones;
