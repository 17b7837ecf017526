//! The sink `otlp`: its receiver, and how requests are made for it.

use std::{collections::BTreeMap, fmt, time::Duration};

use pulsetrain_pipeline::{MergeConfig, QueueConfig, RetryConfig, SinkTaskConfig};
use pulsetrain_sinks::{
    Compression, Credentials, Identity, NamedFile, OtlpSettings, Password, SinkError, TlsFiles,
};
use serde::Deserialize;

use super::{
    Location, Spanned,
    attribute_rules::AttributeList,
    disk_queue::DiskQueueSetting,
    quantity::{Size, Time, TimeOrNever},
    section::{Setting, Shown, section},
    signals::SignalList,
    source_list::{SourceList, sources_doc},
};

/// The shortest wait before a request is sent again.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

section! {
    /// A receiver of OTLP: a Collector, Tempo, Mimir.
    pub(crate) struct OtlpSection {
        /// grpc://host:port, grpcs://host:port, http://host:port or https://host:port. Settings below that are not given come
        /// from the OTEL_EXPORTER_OTLP_* variables if the endpoint of the variables has the same scheme, host and port.
        /// Without variables the endpoint is http://localhost:4318. Where signals have endpoints of several hosts or ports, each
        /// of these has a queue of its own. HTTPS_PROXY (for https and gRPC), HTTP_PROXY and NO_PROXY are respected.
        endpoint: Option<Spanned<String>> = None,
        /// The signals that it receives (a list of traces, metrics and logs); without the key all of them. Without the key, the
        /// items of a signal that the receiver does not support are counted as unsupported_signal, and are no loss while it
        /// supports another signal. A signal that is named here has to be supported.
        signals: Option<Spanned<SignalList>> = None,
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
        /// What the receiver does not see of attributes: a list of {drop: KEY}, {hash: KEY} (the value becomes its SHA-256, without
        /// salt) and {rename: {from: KEY, to: KEY}}. The rules hold for the attributes of resources, scopes, spans, events, links,
        /// points, exemplars and log records. Keys inside values are not looked at.
        attributes: AttributeList = AttributeList::default(),
        /// How bodies over HTTP are encoded: protobuf or json; without the key as OTEL_EXPORTER_OTLP_PROTOCOL has it.
        encoding: Option<Spanned<String>> = None,
        /// Headers of every request, of all signals. Keep secrets in variables or files: Bearer ${TOKEN}, ${file:/run/key}.
        headers: Headers = Headers::default(),
        /// A file with a token, which is sent as authorization: Bearer TOKEN. The file is read again when it changes. While the
        /// receiver refuses the token, batches wait.
        bearer_token_file: Option<Spanned<String>> = None,
        /// A user and a password, which are sent as authorization: Basic.
        basic_auth: BasicAuthSection = BasicAuthSection::default(),
        /// TLS, for https and grpcs. Certificates are read again when their files change.
        tls: TlsSection = TlsSection::default(),
        /// gzip, zstd or none. The Collector's receivers read all of them; zstd is not in the OTLP specification.
        compression: Option<Spanned<String>> = None,
        /// The level of the compression: 1 (fastest, the default) to 9 for gzip, to 22 for zstd.
        compression_level: Option<Spanned<i32>> = None,
        /// The longest that one request may take.
        timeout: Option<Time> = None,
        /// The most requests at one time. Metrics have one at a time, because samples of a series must arrive in order.
        concurrency: Spanned<usize> = Spanned::without_location(SinkTaskConfig::default().concurrency),
        /// How batches that wait are merged into one request.
        batch: BatchSection = BatchSection::default(),
        /// How much may wait for this sink.
        queue: QueueSection = QueueSection::default(),
        /// Keeps batches on disk until they are delivered, so that a kill or a restart loses none; off keeps them in memory.
        disk_queue: DiskQueueSetting = DiskQueueSetting::default(),
        /// When a request that failed is sent again.
        retry: RetrySection = RetrySection::default(),
        /// Whether its data must arrive: while its queue is full, receivers answer 503 and logs are not read on. Otherwise it
        /// drops what finds no room.
        required: bool = true,
    }
}

section! {
    /// How batches that wait are merged into one request.
    pub(crate) struct BatchSection {
        /// The size of a merged request, before compression. Larger batches are sent alone; with 0B nothing is merged.
        max_bytes: Size = Size(MergeConfig::default().max_bytes),
        /// How long a batch waits for others. With 0s a request merges what waits already, and an idle sink adds no delay.
        max_wait: Time = Time(MergeConfig::default().max_wait),
    }
}

section! {
    /// How much may wait for a sink in memory: with a disk queue what is not written yet.
    pub(crate) struct QueueSection {
        /// The most batches, instead of limits.queue_batches.
        batches: Option<Spanned<usize>> = None,
        /// The most bytes, instead of limits.queue_bytes.
        bytes: Option<Spanned<Size>> = None,
    }
}

section! {
    /// When a request that failed is sent again.
    pub(crate) struct RetrySection {
        /// The first wait, instead of limits.retry_after; each one in a row is half as long again.
        initial: Option<Spanned<Time>> = None,
        /// The longest wait, instead of limits.retry_at_most.
        max: Option<Spanned<Time>> = None,
        /// The age from which a batch is dropped when newer ones find no room, or never; instead of limits.give_up_after.
        give_up_after: Option<TimeOrNever> = None,
    }
}

section! {
    /// A user and a password, which are sent as authorization: Basic.
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
        /// A PEM file with the authorities that may have signed the receiver's certificate, instead of the system's.
        ca: Option<Spanned<String>> = None,
        /// A PEM file with the client's certificate, for receivers that ask for one; needs a key.
        certificate: Option<Spanned<String>> = None,
        /// A PEM file with the private key of the certificate.
        key: Option<Spanned<String>> = None,
        /// The name that the receiver's certificate is for, if it is not the host of the endpoint.
        server_name: Option<Spanned<String>> = None,
        /// Accepts every certificate. Anybody on the way can then read and change what is sent.
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
    /// A setting that makes no sense, with its place.
    pub(crate) fn settings(&self) -> Result<OtlpSettings, (Location, String)> {
        let pairs = self
            .headers
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), value.0.as_str()));
        let headers = OtlpSettings::headers("headers", pairs);
        let headers = headers.map_err(|error| (self.location(), error.to_string()))?;
        Ok(OtlpSettings {
            json: self.json()?,
            headers: (!headers.is_empty()).then_some(headers),
            credentials: self.credentials()?,
            timeout: self.timeout.map(|time| time.0),
            compression: self.compression()?,
            tls: self.tls.files(self)?,
        })
    }

    /// Returns how batches are queued, merged and retried, with `limits` for what the section does not set.
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

    /// Returns the settings that would let nothing through, or that would try too often, each with its place.
    pub(crate) fn faults(&self) -> Vec<(Location, String)> {
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
        let mut faults: Vec<(Location, String)> = zero
            .into_iter()
            .filter(|(is_zero, _)| *is_zero)
            .map(|(_, location)| {
                (
                    location.unwrap_or_default(),
                    "a queue of zero accepts nothing: give it at least 1".to_owned(),
                )
            })
            .collect();
        if *self.concurrency == 0 {
            faults.push((
                self.concurrency.location,
                "concurrency is 0, so nothing would be sent: give it at least 1".to_owned(),
            ));
        }
        for wait in [&self.retry.initial, &self.retry.max].into_iter().flatten() {
            if wait.0 < SHORTEST_RETRY {
                faults.push((
                    wait.location,
                    "a retry every few milliseconds overloads a receiver that fails: give it at least 100ms"
                        .to_owned(),
                ));
            }
        }
        faults
    }

    fn json(&self) -> Result<Option<bool>, (Location, String)> {
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
                "gRPC has one encoding: remove encoding, or use http:// or https://".to_owned(),
            ));
        }
        match encoding.as_str() {
            "protobuf" => Ok(Some(false)),
            "json" => Ok(Some(true)),
            _ => Err((
                encoding.location,
                "encoding: set it to protobuf or json".to_owned(),
            )),
        }
    }

    fn credentials(&self) -> Result<Option<Credentials>, (Location, String)> {
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
                    "basic_auth has a user and one of password and password_file".to_owned(),
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
                    "basic_auth.user has a colon, which ends a user's name: remove it".to_owned(),
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
                    "there are bearer_token_file and basic_auth: keep one".to_owned(),
                ));
            }
        };
        match credentials {
            (location, _) if has_header => Err((
                location,
                "headers has authorization, which bearer_token_file and basic_auth set: keep one".to_owned(),
            )),
            (_, credentials) => Ok(Some(credentials)),
        }
    }

    fn compression(&self) -> Result<Option<Compression>, (Location, String)> {
        let level = self.compression_level.as_ref();
        match (&self.compression, level) {
            (None, None) => Ok(None),
            (None, Some(level)) => Err((
                level.location,
                "compression_level needs compression: gzip or zstd".to_owned(),
            )),
            (Some(name), _) => {
                let location = level.map_or(name.location, |level| level.location);
                let compression = Compression::named(name, level.map(|level| level.value));
                // The value is not repeated: it may be a secret at the wrong key.
                compression
                    .map(Some)
                    .map_err(|expected| (location, format!("compression: {expected}")))
            }
        }
    }

    /// The place of the endpoint, where it is given.
    pub(crate) fn location(&self) -> Location {
        self.endpoint
            .as_ref()
            .map(|endpoint| endpoint.location)
            .unwrap_or_default()
    }
}

impl TlsSection {
    fn files(&self, of: &OtlpSection) -> Result<TlsFiles, (Location, String)> {
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
            let message =
                "tls is set, but the endpoint is a plain one: use https:// or grpcs://, or remove tls";
            return Err((endpoint.location, message.to_owned()));
        }
        Ok(TlsFiles {
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

fn half(given: &str, missing: &str) -> String {
    let (given, missing) = (given.to_owned(), missing.to_owned());
    SinkError::HalfIdentity { given, missing }.to_string()
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
