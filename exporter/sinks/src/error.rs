//! Errors at the creation of a sink: a file that cannot be opened, an invalid variable or target.
//!
//! Later errors are a `Delivery`. No message contains a header value or credentials.

use std::{io, path::PathBuf};

use pulsetrain_net::{ClientTlsFile, NetError};

/// The reason why a sink cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The output file cannot be opened for writing.
    #[error("cannot write {}: {source}; {advice}", path.display())]
    OpenFile {
        /// The file.
        path: PathBuf,
        /// The advice to the user.
        advice: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Another program writes to the output file.
    #[error(
        "cannot write {}: another program writes to it and holds its lock; end that program or name another file",
        path.display()
    )]
    FileInUse {
        /// The file.
        path: PathBuf,
    },
    /// The output file cannot be truncated to its last acknowledged batch.
    #[error(
        "cannot continue to write {}, whose journal is {}: {source}; free disk space and make both files writable, \
         or name another file", path.display(), journal.display()
    )]
    RecoverFile {
        /// The file.
        path: PathBuf,
        /// Its journal.
        journal: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The extension of the output file names no format.
    #[error("cannot write {}; name it .jsonl for JSON lines, .binpb for length-prefixed protobuf", path.display())]
    FileFormat {
        /// The file.
        path: PathBuf,
    },
    /// The path of a trace does not end in `.pftrace`.
    #[error("cannot write {}: each file gets its creation time before the extension; name it .pftrace", path.display())]
    TraceName {
        /// The path.
        path: PathBuf,
    },
    /// A variable, or a target on the command line, has an invalid value.
    #[error("{name} is {value:?}: {expected}")]
    Setting {
        /// The variable, or `target`.
        name: String,
        /// Its value.
        value: String,
        /// The expected value.
        expected: &'static str,
    },
    /// An endpoint contains credentials, which messages would show.
    #[error(
        "{name} holds a user or a password before the host: put them in OTEL_EXPORTER_OTLP_HEADERS instead"
    )]
    Credentials {
        /// The variable, or `target`.
        name: String,
    },
    /// An entry of a header list cannot be sent.
    #[error("{variable}: entry {position} {problem}")]
    Header {
        /// The variable.
        variable: String,
        /// The position of the entry in the list, from 1.
        position: usize,
        /// The problem, and the correct form.
        problem: &'static str,
    },
    /// A client certificate or its key is missing.
    #[error("{given} is set but {missing} is not: a client certificate needs both files")]
    HalfIdentity {
        /// The variable that is set.
        given: String,
        /// The missing variable.
        missing: String,
    },
    /// A PEM file cannot be read.
    #[error("{variable}: cannot use {}: {source}; give a PEM file with {content}", path.display())]
    Pem {
        /// The variable that names the file.
        variable: String,
        /// The file.
        path: PathBuf,
        /// The expected content.
        content: ClientTlsFile,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server name for certificate verification is invalid.
    #[error("tls.server_name is {name:?}: write a host name or an address, without scheme and port")]
    ServerName {
        /// The name.
        name: String,
    },
    /// A file with a token or a password cannot be used.
    #[error("{name}: cannot use {}: {source}; write one line with the token or the password", path.display())]
    Secret {
        /// The key that names the file.
        name: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The certificates are readable, but TLS cannot use them.
    #[error(
        "cannot set up TLS for {endpoint}: {source}; check that the client's certificate and key belong together \
         (tls.certificate and tls.key of the sink, or OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY)"
    )]
    Tls {
        /// The endpoint.
        endpoint: String,
        /// The cause.
        source: rustls::Error,
    },
    /// The system has no certificate authorities, and none is configured.
    #[error(
        "no certificate authorities on this system for {endpoint}: set tls.ca of the sink, or OTEL_EXPORTER_OTLP_CERTIFICATE, \
         to a PEM file"
    )]
    NoAuthorities {
        /// The endpoint.
        endpoint: String,
    },
    /// The address cannot be served.
    #[error(transparent)]
    Net(#[from] NetError),
}
