//! The sections about the agent itself: its limits, its telemetry, its health checks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use pulsetrain_pipeline::{QueueConfig, RetryConfig, SinkTaskConfig};

use super::{
    AuthSection, ExposureKeys, ServerTlsSection, Spanned,
    quantity::{Size, Time, TimeOrNever},
    section::section,
};

section! {
    /// The limits of queues, retries and shutdown.
    pub(crate) struct LimitsConfig {
        /// The maximum number of batches in the queue of a sink. When the queue of a required sink is full, receivers
        /// answer 503 and reading of logs pauses. A sink that is not required drops its oldest batches and counts them.
        /// GPU readings, the agent's own telemetry and the output that `run` reads cannot wait: a full queue drops the
        /// oldest of them, and a full disk queue the newest.
        queue_batches: Spanned<usize> = Spanned::without_location(1000),
        /// The maximum number of bytes in the queue of a sink.
        queue_bytes: Spanned<Size> = Spanned::without_location(Size(64 << 20)),
        /// The initial backoff after a failure of a sink. Each consecutive failure multiplies it by 1.5.
        retry_after: Spanned<Time> = Spanned::without_location(Time(RetryConfig::default().initial)),
        /// The maximum backoff, unless a receiver requests a longer one.
        retry_at_most: Spanned<Time> = Spanned::without_location(Time(RetryConfig::default().max)),
        /// The age after which a batch is dropped if its queue is full, or never. A required sink never drops data from
        /// logs: reading of the log pauses until the queue has room.
        give_up_after: TimeOrNever = TimeOrNever(None),
        /// The time limit for sending queued data when the agent stops, or when a reload changes or removes a sink.
        drain: Time = Time::secs(5),
    }
}

impl LimitsConfig {
    /// Returns the settings of every sink that does not override them.
    pub(crate) fn task_config(&self) -> SinkTaskConfig {
        SinkTaskConfig {
            queue: QueueConfig {
                max_batches: *self.queue_batches,
                max_bytes: self.queue_bytes.0,
            },
            retry: RetryConfig {
                initial: self.retry_after.0,
                max: self.retry_at_most.0,
                give_up: self.give_up_after.give_up(),
                ..RetryConfig::default()
            },
            ..SinkTaskConfig::default()
        }
    }
}

section! {
    /// The agent's own metrics: accepted, delivered and dropped items, queues, lag, all named pulsetrain.*
    pub(crate) struct TelemetryConfig {
        /// Whether the agent's own metrics are sent to the sinks.
        enabled: bool = true,
        /// The export interval.
        interval: Spanned<Time> = Spanned::without_location(Time::secs(5)),
    }
}

section! {
    /// Answers /healthz (the agent is alive) and /readyz (200 when every source and sink is open; the body lists
    /// failing sinks) over HTTP. This machine and authenticated clients can also read /status (JSON: each source and
    /// sink with its state, last error and queue).
    pub(crate) struct HealthConfig {
        /// Whether the endpoint is enabled.
        enabled: bool = true,
        /// The address to listen on. Only this machine can reach a loopback address.
        listen: Spanned<SocketAddr> = Spanned::without_location(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 13133)),
        /// Allows an address that other machines can reach without both tls and auth (or tls with client_ca).
        allow_remote: bool = false,
        /// TLS of the connections.
        tls: Option<Spanned<ServerTlsSection>> = None,
        /// The credentials that every request must have.
        auth: Option<Spanned<AuthSection>> = None,
    }
}

impl HealthConfig {
    /// Returns the keys of the exposure.
    pub(crate) fn exposure(&self) -> ExposureKeys<'_> {
        ExposureKeys {
            allow_remote: self.allow_remote,
            tls: self.tls.as_ref(),
            auth: self.auth.as_ref(),
        }
    }
}
