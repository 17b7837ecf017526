//! The outcome of a delivery that a test expects.

use std::time::Duration;

use pulsetrain_pipeline::Delivery;

/// The message of a refusal.
pub(crate) fn refusal(delivery: Delivery) -> String {
    match delivery {
        Delivery::Refused { message } | Delivery::Denied { message } => message,
        other => panic!("not refused: {other:?}"),
    }
}

/// The message of a request that is larger than the receiver accepts.
pub(crate) fn too_large(delivery: Delivery) -> String {
    match delivery {
        Delivery::TooLarge { message } => message,
        other => panic!("not too large: {other:?}"),
    }
}

/// The message of a delivery whose signal the receiver does not support.
pub(crate) fn unsupported(delivery: Delivery) -> String {
    match delivery {
        Delivery::Unsupported { message } => message,
        other => panic!("supported: {other:?}"),
    }
}

/// The delay and the message of a delivery that may be tried again.
pub(crate) fn retry(delivery: Delivery) -> (Option<Duration>, String) {
    match delivery {
        Delivery::Retry { after, message } => (after, message),
        other => panic!("no retry: {other:?}"),
    }
}
