//! The receiver of one signal: its name in messages, the limit of a request, and the kinds of failure.

use std::{fmt::Display, time::Duration};

use pulsetrain_net::client::{Client, RefusedFile, RequestError};
use pulsetrain_pipeline::{Delivery, Problem};

use super::{
    advice::{self, Advice, Encryption},
    config::{Protocol, SignalConfig},
    verdict::Verdict,
};

/// The maximum size of a request before compression (OTLP specification, "Message size").
pub(super) const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The receiver of one signal.
#[derive(Clone)]
pub(crate) struct Peer {
    url: String,
    protocol: Protocol,
    encryption: Encryption,
}

impl Peer {
    pub(crate) fn new(url: String, config: &SignalConfig) -> Self {
        Self {
            url,
            protocol: config.protocol,
            encryption: Encryption::from_config(config),
        }
    }

    /// Returns the delivery of a response other than success. `after` is the wait that the receiver requested; `client` has the
    /// credentials that were sent.
    pub(crate) fn delivery(
        &self,
        verdict: Verdict,
        what: impl Display,
        advice: Advice,
        after: Option<Duration>,
        client: &Client,
    ) -> Delivery {
        match verdict {
            Verdict::Credentials => self.unauthenticated(what, client.credentials_refused()),
            Verdict::Later => self.retry(after, what, advice),
            Verdict::TooLarge => self.too_large(what, advice),
            Verdict::Contents => self.refused(what, advice),
            Verdict::Service => Delivery::Denied(self.problem(what, advice)),
            Verdict::Signal => Delivery::Unsupported(self.problem(what, advice)),
        }
    }

    /// Returns a delivery that may be retried.
    fn retry(&self, after: Option<Duration>, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Retry {
            after,
            problem: self.problem(what, advice),
        }
    }

    /// Returns a permanently rejected batch.
    pub(crate) fn refused(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::Refused(self.problem(what, advice))
    }

    /// Returns a delivery that is larger than the receiver accepts.
    fn too_large(&self, what: impl Display, advice: Advice) -> Delivery {
        Delivery::TooLarge(self.problem(what, advice))
    }

    /// Returns the delivery of a request without a complete response. If a connection broke during the request, the batch
    /// may have arrived; it is sent again.
    pub(crate) fn failed(&self, error: &RequestError) -> Delivery {
        match error {
            RequestError::TooLarge { .. } => self.refused(error, Some(advice::NOT_A_RECEIVER)),
            RequestError::Compress(_) => self.refused(error, None),
            RequestError::Timeout { .. } => self.retry(None, error, Some(advice::SLOW)),
            // The head of the response has arrived, so the protocol is right.
            RequestError::Truncated(_) if self.protocol != Protocol::Grpc => {
                self.retry(None, advice::chain(error), None)
            }
            _ => {
                let what = advice::chain(error);
                let advice = advice::transport(error, self.protocol, self.encryption);
                match error {
                    RequestError::Unreachable(_) => Delivery::Unreachable(self.problem(what, advice)),
                    _ => self.retry(None, what, advice),
                }
            }
        }
    }

    /// Returns the delivery after rejected credentials, given their file. With a file, the batch waits for valid
    /// credentials.
    fn unauthenticated(&self, what: impl Display, file: Option<RefusedFile>) -> Delivery {
        let Some(RefusedFile { path, read_error }) = file else {
            return Delivery::Denied(self.problem(what, Some(advice::CREDENTIALS)));
        };
        let path = path.display();
        let remedy = match read_error {
            None => format!(
                "the credentials in {path} were refused: write valid ones there; the file is read again before the next \
                 attempt, and nothing is lost until then"
            ),
            Some(read_error) => format!(
                "{path} cannot be read ({read_error}) and the credentials that it held before were refused: write valid ones there"
            ),
        };
        Delivery::Retry {
            after: None,
            problem: self.problem(what, None).with_remedy(remedy),
        }
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
