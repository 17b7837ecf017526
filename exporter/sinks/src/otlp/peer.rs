//! The receiver of one signal: its name in messages, the limits of an attempt, and the kinds of failure.

use std::{error::Error, fmt::Display, future::Future, time::Duration};

use http_body_util::LengthLimitError;
use pulsetrain_pipeline::{Delivery, Problem};

use super::{
    advice::{self, Advice, Encryption},
    config::{Protocol, SignalConfig},
    transport::TransportError,
};

/// The maximum size of a request before compression (OTLP specification, "Message size").
pub(super) const MAX_REQUEST_BYTES: usize = 64 << 20;
/// The maximum size of a response. A longer one is a permanent error (OTLP specification, "Message size").
pub(crate) const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The receiver of one signal.
#[derive(Clone)]
pub(crate) struct Peer {
    url: String,
    protocol: Protocol,
    encryption: Encryption,
    timeout: Option<Duration>,
}

impl Peer {
    pub(crate) fn new(url: String, config: &SignalConfig) -> Self {
        Self {
            url,
            protocol: config.protocol,
            encryption: Encryption::of(config),
            timeout: config.timeout,
        }
    }

    /// Runs one attempt with the timeout. After a timeout the delivery may be retried.
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

    /// Returns a delivery that may be retried.
    pub(crate) fn retry(&self, after: Option<Duration>, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Retry {
            after,
            problem: self.problem(what, advice),
        }
    }

    /// Returns a delivery that waits for valid credentials in a file, with the advice about the file.
    pub(super) fn wait_for_credentials(&self, what: impl Display, advice: String) -> Delivery {
        Delivery::Retry {
            after: None,
            problem: self.problem(what, None).with_remedy(advice),
        }
    }

    /// Returns a permanently rejected batch.
    pub(crate) fn refused(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Refused(self.problem(what, advice))
    }

    /// Returns a delivery that the receiver rejects for every batch of this sink.
    pub(crate) fn denied(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Denied(self.problem(what, advice))
    }

    /// Returns a delivery that is larger than the receiver accepts.
    pub(crate) fn too_large(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::TooLarge(self.problem(what, advice))
    }

    /// Returns a delivery whose signal the receiver does not support, or whose receiver does not speak OTLP.
    pub(crate) fn unsupported(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Unsupported(self.problem(what, advice))
    }

    /// Returns the delivery of a failed connection. If it broke during the request, the batch may have
    /// arrived; it is sent again.
    pub(crate) fn unreachable(&self, error: &TransportError) -> Delivery {
        let what = advice::chain(error);
        let advice = advice::transport(error, self.protocol, self.encryption);
        match error {
            TransportError::Request(_) => Delivery::Unreachable(self.problem(what, advice)),
            TransportError::Answer(_) | TransportError::Body(_) => self.retry(None, what, advice),
        }
    }

    /// Returns the delivery of a response that is too long or incomplete.
    pub(crate) fn unreadable(&self, error: &(dyn Error + 'static)) -> Delivery {
        match advice::find::<LengthLimitError>(error) {
            Some(_) => self.answer_too_large(),
            None => self.retry(None, advice::chain(error), None),
        }
    }

    pub(crate) fn answer_too_large(&self) -> Delivery {
        let what = format_args!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
        self.refused(what, Some(advice::NOT_A_RECEIVER))
    }

    /// Returns `Err` for a request over the limit of the specification.
    pub(crate) fn check_size(&self, length: usize) -> Result<(), Delivery> {
        if length <= MAX_REQUEST_BYTES {
            return Ok(());
        }
        let what = format_args!("not sent: the request has {length} bytes, OTLP allows {MAX_REQUEST_BYTES}");
        Err(self.too_large(what, Some("make smaller batches")))
    }

    fn problem(&self, what: impl Display, advice: Advice) -> Problem {
        Problem {
            subject: Some(self.url.clone()),
            what: what.to_string(),
            remedy: advice.map(Into::into),
        }
    }
}
