//! Sections that are about the agent itself: its limits, its telemetry, its health checks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use pulsetrain_pipeline::{QueueConfig, RetryConfig, SinkTaskConfig};

use super::{
    AuthSection, ExposureKeys, ServerTlsSection, Spanned,
    quantity::{Size, Time, TimeOrNever},
    section::section,
};

section! {
    /// How much may wait in front of each sink, and how long anything is tried.
    pub(crate) struct LimitsConfig {
        /// The most batches that wait for one sink. When a required sink has no room, receivers answer 503 and logs are not
        /// read on; a sink that is not required drops the newest and counts it. GPU readings, the agent's own telemetry and
        /// what `run` reads cannot wait: a full queue drops the newest of them.
        queue_batches: Spanned<usize> = Spanned::without_location(1000),
        /// The most bytes that wait for one sink.
        queue_bytes: Spanned<Size> = Spanned::without_location(Size(64 << 20)),
        /// How long a sink that failed is left alone the first time; each time in a row it is half as long again.
        retry_after: Spanned<Time> = Spanned::without_location(Time(RetryConfig::default().initial)),
        /// The longest that a sink is left alone, but for what a receiver itself asks for.
        retry_at_most: Spanned<Time> = Spanned::without_location(Time(RetryConfig::default().max)),
        /// The age from which a batch is dropped when its sink has no room for newer ones, or never. What is read from logs
        /// is not dropped by a required sink: the log is read on when there is room.
        give_up_after: TimeOrNever = TimeOrNever(None),
        /// How long the sinks have for what is queued when the agent ends, or when a reload changes or removes them.
        drain: Time = Time::secs(5),
    }
}

impl LimitsConfig {
    /// The settings of every sink that has none of its own.
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
        /// Whether it goes to the sinks, as everything else does.
        enabled: bool = true,
        /// How often.
        interval: Spanned<Time> = Spanned::without_location(Time::secs(5)),
    }
}

section! {
    /// Answers /healthz (the agent lives) and /readyz (200 when every source and sink is open; the body names the sinks that
    /// fail) over HTTP; to this machine and to clients that prove who they are /status, too (JSON: each source and sink with its
    /// state, its last error and its queue).
    pub(crate) struct HealthConfig {
        /// Whether it listens at all.
        enabled: bool = true,
        /// Where it listens. Only this machine can reach a loopback address.
        listen: Spanned<SocketAddr> = Spanned::without_location(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 13133)),
        /// Allows an address that other machines can reach without both tls and auth (or tls with client_ca).
        allow_remote: bool = false,
        /// TLS of the connections.
        tls: Option<Spanned<ServerTlsSection>> = None,
        /// Credentials that every request has to carry.
        auth: Option<Spanned<AuthSection>> = None,
    }
}

impl HealthConfig {
    /// The keys about who may connect.
    pub(crate) fn exposure(&self) -> ExposureKeys<'_> {
        ExposureKeys {
            allow_remote: self.allow_remote,
            tls: self.tls.as_ref(),
            auth: self.auth.as_ref(),
        }
    }
}
