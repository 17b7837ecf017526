//! The receiver as one signal sees it: its name in messages, the limits of one attempt at it, and the ways to fail.

use std::{error::Error, fmt::Display, future::Future, time::Duration};

use http_body_util::LengthLimitError;
use pulsetrain_pipeline::Delivery;

use super::{
    advice::{self, Advice},
    config::Protocol,
    transport::TransportError,
};

/// The largest request, before compression; a larger batch is refused and lost (OTLP specification, "Message size").
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// The largest answer that is read; a longer one is a failure for good (OTLP specification, "Message size").
pub(super) const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A receiver for one signal.
pub(super) struct Peer {
    url: String,
    protocol: Protocol,
    timeout: Option<Duration>,
}

impl Peer {
    pub(super) fn new(url: String, protocol: Protocol, timeout: Option<Duration>) -> Self {
        Self {
            url,
            protocol,
            timeout,
        }
    }

    /// Runs one attempt; one that takes too long may be made again.
    pub(super) async fn within_timeout(&self, attempt: impl Future<Output = Delivery>) -> Delivery {
        let Some(limit) = self.timeout else {
            return attempt.await;
        };
        match tokio::time::timeout(limit, attempt).await {
            Ok(delivery) => delivery,
            Err(_) => self.retry(
                None,
                format_args!("no whole answer within {limit:?}"),
                Some(advice::SLOW),
            ),
        }
    }

    /// The receiver may take the batch later.
    pub(super) fn retry(&self, after: Option<Duration>, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Retry {
            after,
            message: self.message(what, advice),
        }
    }

    /// The receiver will never take the batch.
    pub(super) fn refused(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Refused {
            message: self.message(what, advice),
        }
    }

    /// The receiver does not support the batch's signal, or is no OTLP receiver.
    pub(super) fn unsupported(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Unsupported {
            message: self.message(what, advice),
        }
    }

    /// The connection failed; where it broke off no one knows whether the batch was taken, so it is sent again.
    pub(super) fn unreachable(&self, error: &TransportError) -> Delivery {
        self.retry(
            None,
            advice::chain(error),
            advice::transport(error, self.protocol),
        )
    }

    /// The body of the answer could not be read: it is too long, or the connection broke.
    pub(super) fn unreadable(&self, error: &(dyn Error + 'static)) -> Delivery {
        match advice::find::<LengthLimitError>(error) {
            Some(_) => self.answer_too_large(),
            None => self.retry(None, advice::chain(error), None),
        }
    }

    pub(super) fn answer_too_large(&self) -> Delivery {
        let what = format_args!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
        self.refused(what, Some("check that an OTLP receiver listens there"))
    }

    /// Refuses a request over the limit.
    pub(super) fn check_size(&self, length: usize) -> Result<(), Delivery> {
        if length <= MAX_REQUEST_BYTES {
            return Ok(());
        }
        let what = format_args!("not sent: the request has {length} bytes, OTLP allows {MAX_REQUEST_BYTES}");
        Err(self.refused(what, Some("make smaller batches")))
    }

    fn message(&self, what: impl Display, advice: Advice) -> String {
        match advice {
            Some(advice) => format!("{}: {what}; {advice}", self.url),
            None => format!("{}: {what}", self.url),
        }
    }
}
