//! Errors at the creation of a sink: a file that cannot be opened, an invalid variable or target.
//!
//! Later errors are a `Delivery`. No message contains a header value or credentials.

use std::{borrow::Cow, fmt, io, path::PathBuf};

use pulsetrain_net::{NetError, client::ClientTlsFile};
use pulsetrain_pipeline::Problem;
use pulsetrain_prometheus::PrometheusError;

/// The reason why a sink cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The output file cannot be opened for writing.
    OpenFile {
        /// The file.
        path: PathBuf,
        /// The remedy.
        remedy: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Another program writes to the output file.
    FileInUse {
        /// The file.
        path: PathBuf,
    },
    /// The output file cannot be truncated to its last acknowledged batch.
    RecoverFile {
        /// The file.
        path: PathBuf,
        /// Its journal.
        journal: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The moved or removed file cannot be opened again under its path.
    ReopenFile {
        /// The name of the sink.
        sink: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The extension of the output file names no format.
    FileFormat {
        /// The file.
        path: PathBuf,
    },
    /// The path of a trace does not end in `.pftrace`.
    TraceName {
        /// The path.
        path: PathBuf,
    },
    /// A variable, or a target on the command line, has an invalid value.
    Setting {
        /// The variable, or `target`.
        name: String,
        /// Its value.
        value: String,
        /// The expected value.
        expected: &'static str,
    },
    /// An endpoint contains credentials, which messages would show.
    Credentials {
        /// The variable, or `target`.
        name: String,
    },
    /// An entry of a header list cannot be sent.
    Header {
        /// The variable.
        variable: String,
        /// The position of the entry in the list, from 1.
        position: usize,
        /// The fault of the entry.
        fault: HeaderFault,
    },
    /// A client certificate or its key is missing.
    HalfIdentity {
        /// The variable that is set.
        given: String,
        /// The missing variable.
        missing: String,
    },
    /// A PEM file cannot be read.
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
    ServerName {
        /// The name.
        name: String,
    },
    /// A file with a token or a password cannot be used.
    Secret {
        /// The key that names the file.
        name: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The certificates are readable, but TLS cannot use them.
    Tls {
        /// The endpoint.
        endpoint: String,
        /// The cause.
        source: rustls::Error,
    },
    /// The system has no certificate authorities, and none is configured.
    NoAuthorities {
        /// The endpoint.
        endpoint: String,
    },
    /// The address cannot be served.
    Net(#[from] NetError),
}

/// The fault of an entry of a header list, or of credentials that become a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderFault {
    /// The entry has no `=`.
    Form,
    /// The key is not a header name.
    Name,
    /// The exporter sets the header itself.
    Reserved,
    /// The value contains a control character.
    Value,
    /// The user or the password of basic authentication contains a control character.
    Credentials,
}

impl SinkError {
    /// Returns whether a file with certificates or credentials does not exist, so that the sink can be created once it
    /// does.
    pub fn is_missing_file(&self) -> bool {
        let source = match self {
            Self::Pem { source, .. } => match source.downcast_ref() {
                Some(rustls::pki_types::pem::Error::Io(source)) => source,
                _ => return false,
            },
            Self::Secret { source, .. } => source,
            _ => return false,
        };
        source.kind() == io::ErrorKind::NotFound
    }

    /// Returns the cause and the remedy.
    pub fn problem(&self) -> Problem {
        Problem {
            remedy: self.remedy(),
            ..Problem::new(self.cause())
        }
    }

    fn cause(&self) -> String {
        match self {
            Self::OpenFile { path, source, .. } => format!("cannot write {}: {source}", path.display()),
            Self::FileInUse { path } => format!(
                "cannot write {}: another program writes to it and holds its lock",
                path.display()
            ),
            Self::RecoverFile {
                path,
                journal,
                source,
            } => format!(
                "cannot continue to write {}, whose journal is {}: {source}",
                path.display(),
                journal.display()
            ),
            Self::ReopenFile { sink, source } => {
                format!("{sink}: cannot open it again: {source}; continues to write to the moved file")
            }
            Self::FileFormat { path } => format!("cannot write {}", path.display()),
            Self::TraceName { path } => format!(
                "cannot write {}: each file gets its creation time before the extension",
                path.display()
            ),
            Self::Setting { name, value, .. } => format!("{name} is {value:?}"),
            Self::Credentials { name } => format!("{name} holds a user or a password before the host"),
            Self::Header {
                variable,
                position,
                fault,
            } => format!("{variable}: entry {position} {fault}"),
            Self::HalfIdentity { given, missing } => format!("{given} is set but {missing} is not"),
            Self::Pem {
                variable,
                path,
                source,
                ..
            } => format!("{variable}: cannot use {}: {source}", path.display()),
            Self::ServerName { name } => format!("tls.server_name is {name:?}"),
            Self::Secret { name, path, source } => {
                format!("{name}: cannot use {}: {source}", path.display())
            }
            Self::Tls { endpoint, source } => format!("cannot set up TLS for {endpoint}: {source}"),
            Self::NoAuthorities { endpoint } => {
                format!("no certificate authorities on this system for {endpoint}")
            }
            Self::Net(error) => error.to_string(),
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::OpenFile { remedy, .. } => remedy,
            Self::FileInUse { .. } => "end that program or name another file",
            Self::RecoverFile { .. } => "free disk space and make both files writable, or name another file",
            Self::ReopenFile { .. } => return None,
            Self::FileFormat { .. } => "name it .jsonl for JSON lines, .binpb for length-prefixed protobuf",
            Self::TraceName { .. } => "name it .pftrace",
            Self::Setting { expected, .. } => expected,
            Self::Credentials { .. } => "put them in OTEL_EXPORTER_OTLP_HEADERS instead",
            Self::Header { fault, .. } => fault.remedy(),
            Self::HalfIdentity { .. } => "a client certificate needs both files",
            Self::Pem { content, .. } => return Some(format!("give a PEM file with {content}").into()),
            Self::ServerName { .. } => "write a host name or an address, without scheme and port",
            Self::Secret { .. } => "write one line with the token or the password",
            Self::Tls { .. } => {
                "check that the client's certificate and key belong together (tls.certificate and tls.key of the sink, or \
                 OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY)"
            }
            Self::NoAuthorities { .. } => {
                "set tls.ca of the sink, or OTEL_EXPORTER_OTLP_CERTIFICATE, to a PEM file"
            }
            Self::Net(error) => return Some(error.remedy()),
        }))
    }
}

impl HeaderFault {
    fn remedy(self) -> &'static str {
        match self {
            Self::Form => "write key=value, with commas percent-encoded (%2C)",
            Self::Name => "use letters, digits and hyphens",
            Self::Reserved | Self::Value => "leave it out",
            Self::Credentials => "remove line breaks and control characters",
        }
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem().fmt(f)
    }
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "has no `=`",
            Self::Name => "has a key that is not a header name",
            Self::Reserved => "names a header that the exporter sets itself",
            Self::Value => "has a value with a line break or another control character",
            Self::Credentials => "has a user or a password that no header can have",
        })
    }
}

impl From<PrometheusError> for SinkError {
    fn from(error: PrometheusError) -> Self {
        match error {
            PrometheusError::Setting {
                name,
                value,
                expected,
            } => Self::Setting {
                name: name.to_owned(),
                value,
                expected,
            },
            PrometheusError::Net { source } => Self::Net(source),
        }
    }
}
