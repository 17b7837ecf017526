//! The expected outcome of a delivery.

use std::time::Duration;

use pulsetrain_pipeline::Delivery;

/// Returns the message of a rejection.
pub(crate) fn refusal(delivery: Delivery) -> String {
    match delivery {
        Delivery::Refused(problem) | Delivery::Denied(problem) => problem.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

/// Returns the message of a refusal that does not blame the contents.
pub(crate) fn denial(delivery: Delivery) -> String {
    match delivery {
        Delivery::Denied(problem) => problem.to_string(),
        other => panic!("not denied: {other:?}"),
    }
}

/// Returns the message of a request that is larger than the receiver accepts.
pub(crate) fn too_large(delivery: Delivery) -> String {
    match delivery {
        Delivery::TooLarge(problem) => problem.to_string(),
        other => panic!("not too large: {other:?}"),
    }
}

/// Returns the message of a delivery whose signal the receiver does not support.
pub(crate) fn unsupported(delivery: Delivery) -> String {
    match delivery {
        Delivery::Unsupported(problem) => problem.to_string(),
        other => panic!("supported: {other:?}"),
    }
}

/// Returns the delay and the message of a delivery that may be retried.
pub(crate) fn retry(delivery: Delivery) -> (Option<Duration>, String) {
    match delivery {
        Delivery::Retry { after, problem } => (after, problem.to_string()),
        Delivery::Unreachable(problem) => (None, problem.to_string()),
        other => panic!("no retry: {other:?}"),
    }
}
