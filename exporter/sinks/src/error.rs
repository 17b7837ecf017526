//! What can be wrong before the first batch: a file that cannot be opened, a variable or a target that makes no sense.
//!
//! What goes wrong later is a `Delivery`. No message here ever repeats a header value or credentials.

use std::{io, path::PathBuf};

use pulsetrain_net::{ClientTlsFile, NetError};

/// Why a sink could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The output file could not be opened for writing.
    #[error("cannot write {}: {source}; {advice}", path.display())]
    OpenFile {
        /// The file.
        path: PathBuf,
        /// What to do.
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
    /// The output file could not be brought to where its sources go on.
    #[error(
        "cannot go on writing {}, whose journal is {}: {source}; make room on the disk and see that both can be written, \
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
    /// The name of the output file does not show its format.
    #[error("cannot write {}: name it .jsonl for JSON lines, .binpb for length-prefixed protobuf", path.display())]
    FileFormat {
        /// The file.
        path: PathBuf,
    },
    /// The name of a trace does not end as one.
    #[error("cannot write {}: name it .pftrace; every file gets the time of its begin before that", path.display())]
    TraceName {
        /// The path.
        path: PathBuf,
    },
    /// A variable, or a target on the command line, has a value that cannot be used.
    #[error("{name} is {value:?}: {expected}")]
    Setting {
        /// The variable, or `target`.
        name: String,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// An endpoint carries a user or a password, which would show up in messages.
    #[error(
        "{name} holds a user or a password before the host: put them in OTEL_EXPORTER_OTLP_HEADERS instead"
    )]
    Credentials {
        /// The variable, or `target`.
        name: String,
    },
    /// An entry of a list of headers cannot be sent.
    #[error("{variable}: entry {position} {problem}")]
    Header {
        /// The variable.
        variable: String,
        /// The place of the entry in the list, from 1.
        position: usize,
        /// What is wrong and how to write it.
        problem: &'static str,
    },
    /// Only one half of a client's certificate and key is given.
    #[error("{given} is set but {missing} is not: a client certificate needs both files")]
    HalfIdentity {
        /// The variable that is set.
        given: String,
        /// The variable that is not.
        missing: String,
    },
    /// A PEM file could not be read.
    #[error("{variable}: cannot use {}: {source}; give a PEM file with {content}", path.display())]
    Pem {
        /// The variable that names the file.
        variable: String,
        /// The file.
        path: PathBuf,
        /// What the file should hold.
        content: ClientTlsFile,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The name that a certificate is to be checked for cannot be in one.
    #[error("tls.server_name is {name:?}: write a host name or an address, without scheme and port")]
    ServerName {
        /// The name.
        name: String,
    },
    /// The file with a token or a password could not be used.
    #[error("{name}: cannot use {}: {source}; write one line with the token or the password", path.display())]
    Secret {
        /// The key that names the file.
        name: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The certificates could be read but TLS cannot use them.
    #[error(
        "cannot set up TLS for {endpoint}: {source}; check that the client's certificate and key belong together \
         (tls.certificate and tls.key of the sink, or OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY)"
    )]
    Tls {
        /// The endpoint.
        endpoint: String,
        /// What is wrong.
        source: rustls::Error,
    },
    /// The system has no certificate authorities and none is named.
    #[error(
        "no certificate authorities on this system for {endpoint}: set tls.ca of the sink, or OTEL_EXPORTER_OTLP_CERTIFICATE, \
         to a PEM file"
    )]
    NoAuthorities {
        /// The endpoint.
        endpoint: String,
    },
    /// The page cannot be served.
    #[error(transparent)]
    Net(#[from] NetError),
}
