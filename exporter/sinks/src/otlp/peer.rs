//! The receiver as one signal sees it: its name in messages, the limits of one attempt at it, and the ways to fail.

use std::{error::Error, fmt::Display, future::Future, time::Duration};

use http_body_util::LengthLimitError;
use pulsetrain_pipeline::Delivery;

use super::{
    advice::{self, Advice},
    config::Protocol,
    transport::TransportError,
};

/// The maximum size of a request before compression (OTLP specification, "Message size").
pub(super) const MAX_REQUEST_BYTES: usize = 64 << 20;
/// The largest answer that is read; a longer one is a failure for good (OTLP specification, "Message size").
pub(crate) const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A receiver for one signal.
#[derive(Clone)]
pub(crate) struct Peer {
    url: String,
    protocol: Protocol,
    timeout: Option<Duration>,
}

impl Peer {
    pub(crate) fn new(url: String, protocol: Protocol, timeout: Option<Duration>) -> Self {
        Self {
            url,
            protocol,
            timeout,
        }
    }

    /// Runs one attempt; one that takes too long may be made again.
    pub(crate) async fn within_timeout(&self, attempt: impl Future<Output = Delivery>) -> Delivery {
        let Some(limit) = self.timeout else {
            return attempt.await;
        };
        match tokio::time::timeout(limit, attempt).await {
            Ok(delivery) => delivery,
            Err(_) => self.retry(
                None,
                format_args!("no complete answer within {limit:?}"),
                Some(advice::SLOW),
            ),
        }
    }

    /// The receiver may take the batch later.
    pub(crate) fn retry(&self, after: Option<Duration>, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Retry {
            after,
            message: self.message(what, advice),
        }
    }

    /// The receiver will never take the batch.
    pub(crate) fn refused(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Refused {
            message: self.message(what, advice),
        }
    }

    /// The receiver accepts no batch from this sink.
    pub(crate) fn denied(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Denied {
            message: self.message(what, advice),
        }
    }

    /// The request is larger than the receiver accepts.
    pub(crate) fn too_large(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::TooLarge {
            message: self.message(what, advice),
        }
    }

    /// The receiver does not support the batch's signal, or is no OTLP receiver.
    pub(crate) fn unsupported(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Unsupported {
            message: self.message(what, advice),
        }
    }

    /// The connection failed; where it broke off no one knows whether the batch was taken, so it is sent again.
    pub(crate) fn unreachable(&self, error: &TransportError) -> Delivery {
        self.retry(
            None,
            advice::chain(error),
            advice::transport(error, self.protocol),
        )
    }

    /// The body of the answer could not be read: it is too long, or the connection broke.
    pub(crate) fn unreadable(&self, error: &(dyn Error + 'static)) -> Delivery {
        match advice::find::<LengthLimitError>(error) {
            Some(_) => self.answer_too_large(),
            None => self.retry(None, advice::chain(error), None),
        }
    }

    pub(crate) fn answer_too_large(&self) -> Delivery {
        let what = format_args!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
        self.refused(what, Some("check that an OTLP receiver listens there"))
    }

    /// Returns `Err` for a request over the limit of the specification.
    pub(crate) fn check_size(&self, length: usize) -> Result<(), Delivery> {
        if length <= MAX_REQUEST_BYTES {
            return Ok(());
        }
        let what = format_args!("not sent: the request has {length} bytes, OTLP allows {MAX_REQUEST_BYTES}");
        Err(self.too_large(what, Some("make smaller batches")))
    }

    fn message(&self, what: impl Display, advice: Advice) -> String {
        match advice {
            Some(advice) => format!("{}: {what}; {advice}", self.url),
            None => format!("{}: {what}", self.url),
        }
    }
}
