//! The flight recorders of a run: available over HTTP while the trainer runs, and saved to a file if it fails.
//!
//! No signal saves them: every signal is forwarded to the trainer, including SIGUSR1, with which launchers announce the
//! end of the time limit.

use pulsetrain_pipeline::CancellationToken;

use crate::{
    agent::{Readiness, Recorders, serve_health},
    config::Config,
    log::{self, Subject},
};

/// Serves the health address if there are recorders. If the address is in use, for example by the first rank of the
/// machine, the run continues without it.
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

/// Saves the recorders after the failure of a trainer.
pub(super) async fn save(recorders: &Recorders) {
    if !recorders.is_empty() {
        recorders.save().await;
    }
}
