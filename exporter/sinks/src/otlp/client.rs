//! The client of one endpoint, from the settings of a signal. Errors name the setting of each file.

use http::Uri;
use pulsetrain_net::client::{Client, ClientConfig, ClientError, HttpVersion};

use super::config::{Protocol, SignalConfig};
use crate::{SinkError, error::HeaderFault};

/// The maximum size of a response. A longer one is a permanent error (OTLP specification, "Message size").
const MAX_ANSWER_BYTES: usize = 4 << 20;

impl SignalConfig {
    /// Reads the certificates and the credentials, and returns the client.
    ///
    /// # Errors
    /// A file or a setting that cannot be used.
    pub(crate) fn client(&self) -> Result<Client, SinkError> {
        let config = ClientConfig {
            version: match self.protocol {
                Protocol::Grpc => HttpVersion::Http2,
                Protocol::HttpProtobuf | Protocol::HttpJson => HttpVersion::Http1,
            },
            tls: self.tls.clone(),
            credentials: self.credentials.clone(),
            proxy: self.proxy.clone(),
            timeout: self.timeout,
            max_response_bytes: MAX_ANSWER_BYTES,
            user_agent: super::USER_AGENT,
        };
        Client::new(&self.endpoint, config).map_err(|error| sink_error(error, &self.endpoint))
    }
}

/// Converts an error. Names the setting of the file, or the endpoint.
fn sink_error(error: ClientError, endpoint: &Uri) -> SinkError {
    let endpoint = origin(endpoint);
    match error {
        ClientError::Pem {
            variable,
            content,
            path,
            source,
        } => SinkError::Pem {
            variable,
            path,
            content,
            source,
        },
        ClientError::ServerName { name } => SinkError::ServerName { name },
        ClientError::Rustls(source) => SinkError::Tls { endpoint, source },
        ClientError::Secret {
            variable,
            path,
            source,
        } => SinkError::Secret {
            name: variable,
            path,
            source,
        },
        ClientError::UserOrPassword => SinkError::Header {
            variable: "basic_auth".to_owned(),
            position: 1,
            fault: HeaderFault::Credentials,
        },
        _ => SinkError::NoAuthorities { endpoint },
    }
}

/// Returns scheme and authority, which messages show.
pub(crate) fn origin(endpoint: &Uri) -> String {
    let authority = endpoint.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}", endpoint.scheme_str().unwrap_or("http"))
}
