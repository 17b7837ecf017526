//! The OTLP sink against local receivers with scripted responses.

#![expect(
    clippy::unwrap_used,
    reason = "a receiver or a file that a test cannot make fails the test"
)]

mod answers;
mod credentials;
mod delivery;
mod grpc;
mod http;
mod proxy;
mod receiver;
mod tempo;
mod tls;
mod unreachable;
