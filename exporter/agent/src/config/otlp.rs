//! The sink `otlp`: its receiver and the settings of its requests.

use std::{collections::BTreeMap, fmt, time::Duration};

use pulsetrain_net::client::{ClientTls, Compression, Credentials, Identity, NamedFile, Password};
use pulsetrain_pipeline::{MergeConfig, Problem, QueueConfig, RetryConfig, SinkTaskConfig};
use pulsetrain_sinks::{OtlpSettings, SinkError};
use serde::Deserialize;

use super::{
    Location, Spanned,
    attribute_rules::AttributeList,
    check::too_small_for_logs,
    disk_queue::DiskQueueSetting,
    quantity::{Size, Time, TimeOrNever},
    section::{Setting, Shown, section},
    signals::SignalList,
    source_list::{SourceList, sources_doc},
};

/// The minimum of the initial backoff.
const MIN_RETRY_WAIT: Duration = Duration::from_millis(100);

section! {
    /// An OTLP endpoint: a Collector, Tempo, Mimir.
    pub(crate) struct OtlpSection {
        /// grpc://host:port, grpcs://host:port, http://host:port or https://host:port. The OTEL_EXPORTER_OTLP_* variables
        /// set the missing settings below, if their endpoint has the same scheme, host and port. Without variables the
        /// endpoint is http://localhost:4318. If signals have endpoints on several hosts or ports, each endpoint has its
        /// own queue. HTTPS_PROXY (for https and gRPC), HTTP_PROXY and NO_PROXY are respected.
        endpoint: Option<Spanned<String>> = None,
        /// The signals to receive: a list of traces, metrics and logs. Default: all. By default, items of an unsupported
        /// signal are counted as unsupported_signal. They do not count as lost as long as the receiver supports another
        /// signal. The receiver must support every signal that is listed here.
        signals: Option<Spanned<SignalList>> = None,
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
        /// Rules that change attributes before they are sent: a list of {drop: KEY}, {hash: KEY} (unsalted SHA-256 of the
        /// value) and {rename: {from: KEY, to: KEY}}. They apply to resources, scopes, spans, events, links, points,
        /// exemplars and log records, but not to keys inside values.
        attributes: AttributeList = AttributeList::default(),
        /// The encoding of HTTP bodies: protobuf or json. Default: from OTEL_EXPORTER_OTLP_PROTOCOL.
        encoding: Option<Spanned<String>> = None,
        /// Headers of every request, of all signals. Keep secrets in variables or files: Bearer ${TOKEN}, ${file:/run/key}.
        headers: Headers = Headers::default(),
        /// A file with a token, which is sent as authorization: Bearer TOKEN. The file is read again when it changes. While
        /// the receiver rejects the token, batches stay queued.
        bearer_token_file: Option<Spanned<String>> = None,
        /// A user and a password, sent as authorization: Basic.
        basic_auth: BasicAuthSection = BasicAuthSection::default(),
        /// TLS, for https and grpcs. Certificates are read again when their files change.
        tls: TlsSection = TlsSection::default(),
        /// gzip, zstd or none. The Collector's receivers read all of them; zstd is not in the OTLP specification.
        compression: Option<Spanned<String>> = None,
        /// The level of the compression: 1 (fastest, the default) to 9 for gzip, to 22 for zstd.
        compression_level: Option<Spanned<i32>> = None,
        /// The timeout of a request.
        timeout: Option<Time> = None,
        /// The maximum number of concurrent requests. Metrics use one at a time, because samples of a series must arrive in
        /// order.
        concurrency: Spanned<usize> = Spanned::without_location(SinkTaskConfig::default().concurrency),
        /// How queued batches are merged into one request.
        batch: BatchSection = BatchSection::default(),
        /// The limits of this sink's queue.
        queue: QueueSection = QueueSection::default(),
        /// Keeps batches on disk until they are delivered, so that a kill or a restart loses none. off keeps them in
        /// memory.
        disk_queue: DiskQueueSetting = DiskQueueSetting::default(),
        /// The retry policy of failed requests.
        retry: RetrySection = RetrySection::default(),
        /// Whether its data must arrive. While the queue of a required sink is full, receivers answer 503 and reading of
        /// logs pauses. Otherwise the sink drops data when its queue is full.
        required: bool = true,
    }
}

section! {
    /// How queued batches are merged into one request.
    pub(crate) struct BatchSection {
        /// The maximum size of a merged request, before compression. Larger batches are sent alone; 0B disables merging.
        max_bytes: Size = Size(MergeConfig::default().max_bytes),
        /// The maximum time that a batch waits for others. With 0s a request merges only batches that are already queued,
        /// and an idle sink adds no delay.
        max_wait: Time = Time(MergeConfig::default().max_wait),
    }
}

section! {
    /// The limits of a sink's queue in memory; with a disk queue, of the batches that are not yet on disk.
    pub(crate) struct QueueSection {
        /// The maximum number of batches, instead of limits.queue_batches.
        batches: Option<Spanned<usize>> = None,
        /// The maximum number of bytes, instead of limits.queue_bytes.
        bytes: Option<Spanned<Size>> = None,
    }
}

section! {
    /// The retry policy of failed requests.
    pub(crate) struct RetrySection {
        /// The initial backoff, instead of limits.retry_after. Each consecutive failure multiplies it by 1.5.
        initial: Option<Spanned<Time>> = None,
        /// The maximum backoff, instead of limits.retry_at_most.
        max: Option<Spanned<Time>> = None,
        /// The age after which a batch is dropped if the queue is full, or never; instead of limits.give_up_after.
        give_up_after: Option<TimeOrNever> = None,
    }
}

section! {
    /// A user and a password, sent as authorization: Basic.
    pub(crate) struct BasicAuthSection {
        /// The user.
        user: Option<Spanned<String>> = None,
        /// The password. Keep it in a variable or a file.
        password: Option<Secret> = None,
        /// A file with the password, which is read again when it changes.
        password_file: Option<Spanned<String>> = None,
    }
}

section! {
    /// TLS of a client.
    pub(crate) struct TlsSection {
        /// A PEM file with the trusted certificate authorities for the receiver, instead of the system's.
        ca: Option<Spanned<String>> = None,
        /// A PEM file with the client certificate, for mutual TLS; requires key.
        certificate: Option<Spanned<String>> = None,
        /// A PEM file with the private key of the client certificate.
        key: Option<Spanned<String>> = None,
        /// The expected name in the receiver's certificate, if it differs from the host of the endpoint.
        server_name: Option<Spanned<String>> = None,
        /// Accepts every certificate. A man in the middle can then read and change the data.
        insecure_skip_verify: bool = false,
    }
}

/// Headers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Headers(pub(crate) BTreeMap<String, Secret>);

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl OtlpSection {
    /// Returns the settings of the sink.
    ///
    /// # Errors
    /// Returns an invalid setting, with its place.
    pub(crate) fn settings(&self) -> Result<OtlpSettings, (Location, Problem)> {
        let pairs = self
            .headers
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), value.0.as_str()));
        let headers = OtlpSettings::headers("headers", pairs);
        let headers = headers.map_err(|error| (self.location(), error.problem()))?;
        Ok(OtlpSettings {
            json: self.json()?,
            headers: (!headers.is_empty()).then_some(headers),
            credentials: self.credentials()?,
            timeout: self.timeout.map(|time| time.0),
            compression: self.compression()?,
            tls: self.tls.files(self)?,
        })
    }

    /// Returns the queue, merge and retry settings, with `limits` for the keys that the section does not set.
    pub(crate) fn task_config(&self, limits: SinkTaskConfig) -> SinkTaskConfig {
        let SinkTaskConfig {
            queue, retry, disk, ..
        } = limits;
        SinkTaskConfig {
            queue: QueueConfig {
                max_batches: self
                    .queue
                    .batches
                    .as_ref()
                    .map_or(queue.max_batches, |batches| batches.value),
                max_bytes: self
                    .queue
                    .bytes
                    .as_ref()
                    .map_or(queue.max_bytes, |bytes| bytes.value.0),
            },
            disk,
            held_when_delivered: false,
            retry: RetryConfig {
                initial: self
                    .retry
                    .initial
                    .as_ref()
                    .map_or(retry.initial, |time| time.value.0),
                max: self.retry.max.as_ref().map_or(retry.max, |time| time.value.0),
                give_up: self
                    .retry
                    .give_up_after
                    .map_or(retry.give_up, TimeOrNever::give_up),
                ..retry
            },
            merge: MergeConfig {
                max_bytes: self.batch.max_bytes.0,
                max_wait: self.batch.max_wait.0,
            },
            concurrency: *self.concurrency,
        }
    }

    /// Returns the settings that would accept nothing, or retry too often, each with its place.
    pub(crate) fn faults(&self) -> Vec<(Location, Problem)> {
        let zero = [
            (
                self.queue.batches.as_ref().is_some_and(|batches| **batches == 0),
                &self.queue.batches.as_ref().map(|set| set.location),
            ),
            (
                self.queue.bytes.as_ref().is_some_and(|bytes| bytes.0 == 0),
                &self.queue.bytes.as_ref().map(|set| set.location),
            ),
        ];
        let mut faults: Vec<(Location, Problem)> = zero
            .into_iter()
            .filter(|(is_zero, _)| *is_zero)
            .map(|(_, location)| {
                (
                    location.unwrap_or_default(),
                    Problem::new("a queue of zero accepts nothing").with_remedy("give it at least 1"),
                )
            })
            .collect();
        let bytes = self.queue.bytes.as_ref();
        faults.extend(bytes.and_then(|bytes| Some((bytes.location, too_small_for_logs(bytes)?))));
        if *self.concurrency == 0 {
            faults.push((
                self.concurrency.location,
                Problem::new("concurrency is 0, so nothing would be sent").with_remedy("give it at least 1"),
            ));
        }
        for wait in [&self.retry.initial, &self.retry.max].into_iter().flatten() {
            if wait.0 < MIN_RETRY_WAIT {
                faults.push((
                    wait.location,
                    Problem::new("a retry every few milliseconds overloads a receiver that fails")
                        .with_remedy("give it at least 100ms"),
                ));
            }
        }
        faults
    }

    fn json(&self) -> Result<Option<bool>, (Location, Problem)> {
        let Some(encoding) = &self.encoding else {
            return Ok(None);
        };
        if self
            .endpoint
            .as_ref()
            .is_some_and(|endpoint| endpoint.starts_with("grpc"))
        {
            return Err((
                encoding.location,
                Problem::new("gRPC has one encoding")
                    .with_remedy("remove encoding, or use http:// or https://"),
            ));
        }
        match encoding.as_str() {
            "protobuf" => Ok(Some(false)),
            "json" => Ok(Some(true)),
            _ => Err((encoding.location, "encoding: set it to protobuf or json".into())),
        }
    }

    fn credentials(&self) -> Result<Option<Credentials>, (Location, Problem)> {
        let BasicAuthSection {
            user,
            password,
            password_file,
        } = &self.basic_auth;
        let basic = match (user, password, password_file) {
            (None, None, None) => None,
            (Some(user), Some(password), None) => Some((user, Password::Text(password.0.clone()))),
            (Some(user), None, Some(file)) => {
                Some((user, Password::File(named("basic_auth.password_file", file))))
            }
            (user, _, file) => {
                let location = user
                    .as_ref()
                    .or(file.as_ref())
                    .map_or(self.location(), |spanned| spanned.location);
                return Err((
                    location,
                    "basic_auth has a user and one of password and password_file".into(),
                ));
            }
        };
        let has_header = self
            .headers
            .0
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        let credentials = match (&self.bearer_token_file, basic) {
            (None, None) => return Ok(None),
            (Some(file), None) => (
                file.location,
                Credentials::Bearer(named("bearer_token_file", file)),
            ),
            (None, Some((user, _))) if user.contains(':') => {
                return Err((
                    user.location,
                    Problem::new("basic_auth.user has a colon, which ends a user's name")
                        .with_remedy("remove it"),
                ));
            }
            (None, Some((user, password))) => {
                let user_name = user.value.clone();
                (
                    user.location,
                    Credentials::Basic {
                        user: user_name,
                        password,
                    },
                )
            }
            (Some(file), Some(_)) => {
                return Err((
                    file.location,
                    Problem::new("there are bearer_token_file and basic_auth").with_remedy("keep one"),
                ));
            }
        };
        match credentials {
            (location, _) if has_header => Err((
                location,
                Problem::new("headers has authorization, which bearer_token_file and basic_auth set")
                    .with_remedy("keep one"),
            )),
            (_, credentials) => Ok(Some(credentials)),
        }
    }

    fn compression(&self) -> Result<Option<Compression>, (Location, Problem)> {
        let level = self.compression_level.as_ref();
        match (&self.compression, level) {
            (None, None) => Ok(None),
            (None, Some(level)) => Err((
                level.location,
                "compression_level needs compression: gzip or zstd".into(),
            )),
            (Some(name), _) => {
                let location = level.map_or(name.location, |level| level.location);
                let compression = Compression::named(name, level.map(|level| level.value));
                // The message does not repeat the value, which may be a secret at the wrong key.
                compression
                    .map(Some)
                    .map_err(|expected| (location, Problem::new(format!("compression: {expected}"))))
            }
        }
    }

    /// Returns the place of the endpoint if it is set.
    pub(crate) fn location(&self) -> Location {
        self.endpoint
            .as_ref()
            .map(|endpoint| endpoint.location)
            .unwrap_or_default()
    }
}

impl TlsSection {
    fn files(&self, of: &OtlpSection) -> Result<ClientTls, (Location, Problem)> {
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some(Identity {
                certificate: named("tls.certificate", certificate),
                key: named("tls.key", key),
            }),
            (None, None) => None,
            (Some(given), None) => return Err((given.location, half("tls.certificate", "tls.key"))),
            (None, Some(given)) => return Err((given.location, half("tls.key", "tls.certificate"))),
        };
        let is_plain = |endpoint: &&Spanned<String>| {
            !endpoint.starts_with("https://") && !endpoint.starts_with("grpcs://")
        };
        if *self != Self::default()
            && let Some(endpoint) = of.endpoint.as_ref().filter(is_plain)
        {
            let message = Problem::new("tls is set, but the endpoint is a plain one")
                .with_remedy("use https:// or grpcs://, or remove tls");
            return Err((endpoint.location, message));
        }
        Ok(ClientTls {
            authority: self.ca.as_ref().map(|file| named("tls.ca", file)),
            identity,
            server_name: self.server_name.as_ref().map(|name| name.value.clone()),
            insecure_skip_verify: self.insecure_skip_verify,
        })
    }
}

fn named(key: &str, file: &Spanned<String>) -> NamedFile {
    NamedFile {
        variable: key.to_owned(),
        path: file.value.clone().into(),
    }
}

fn half(given: &str, missing: &str) -> Problem {
    let (given, missing) = (given.to_owned(), missing.to_owned());
    SinkError::HalfIdentity { given, missing }.problem()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Setting for Secret {
    fn shown(&self) -> Shown {
        Shown::Unset
    }
}

impl Setting for Headers {
    fn shown(&self) -> Shown {
        // Headers may hold secrets, which are not shown.
        Shown::Keys(Vec::new())
    }
}

#[cfg(test)]
mod tests;
