//! The flight recorders of a run: for whoever asks while the trainer runs, and in a file when it has failed.
//!
//! No signal writes them: every signal is the trainer's, SIGUSR1 too, by which launchers announce the end of its time.

use pulsetrain_pipeline::CancellationToken;

use crate::{
    agent::{Readiness, Recorders, serve_health},
    config::Config,
    log::{self, Subject},
};

/// Answers on the health address, where there are recorders. Where another has it, as the first rank of a machine, the run
/// continues without.
pub(super) fn serve(config: &Config, recorders: &Recorders) {
    let health = &config.health;
    if recorders.is_empty() || !health.enabled {
        return;
    }
    let ready = Readiness::starting();
    ready.set();
    match serve_health(
        health,
        ready,
        recorders.clone(),
        (None, None),
        CancellationToken::new(),
    ) {
        Ok(answers) => drop(tokio::spawn(answers)),
        Err(error) => log::warn(
            Subject::Program,
            format_args!("continues without GET /trace: health.listen: {error}"),
        ),
    }
}

/// Writes what the recorders hold of a trainer that has failed.
pub(super) async fn save(recorders: &Recorders) {
    if !recorders.is_empty() {
        recorders.save().await;
    }
}
