//! The TLS settings of one endpoint. Errors name the setting of each file.

use std::path::PathBuf;

use pulsetrain_net::{ClientTls, ClientTlsError, ClientTlsFile, no_client_tls};
use rustls::{ClientConfig, pki_types::ServerName};

use super::config::{SignalConfig, TlsFiles};
use crate::SinkError;

/// Returns the TLS settings for the endpoint of `config`. No file is read for plain `http`.
pub(super) fn client_config(config: &SignalConfig) -> Result<ClientConfig, SinkError> {
    let read = client_tls(config).map_or_else(no_client_tls, |files| files.read());
    read.map_err(|error| sink_error(error, config))
}

/// Returns the name that the server's certificate must have, if it is not the host of the endpoint.
pub(super) fn server_name(config: &SignalConfig) -> Result<Option<ServerName<'static>>, SinkError> {
    let Some(name) = &config.tls.server_name else {
        return Ok(None);
    };
    let parsed = ServerName::try_from(name.clone()).map_err(|_| SinkError::ServerName { name: name.clone() });
    parsed.map(Some)
}

/// Returns the PEM files of the endpoint.
pub(super) fn files(config: &SignalConfig) -> Vec<PathBuf> {
    client_tls(config).map_or_else(Vec::new, |files| files.files())
}

/// Returns the files for the endpoint of `config`, or `None` for plain `http`.
fn client_tls(config: &SignalConfig) -> Option<ClientTls> {
    let TlsFiles {
        authority,
        identity,
        insecure_skip_verify,
        server_name: _,
    } = &config.tls;
    (config.endpoint.scheme_str() == Some("https")).then(|| ClientTls {
        authority: authority.as_ref().map(|file| file.path.clone()),
        identity: (identity.as_ref())
            .map(|identity| (identity.certificate.path.clone(), identity.key.path.clone())),
        insecure_skip_verify: *insecure_skip_verify,
    })
}

/// Converts an error. Names the setting of the file, or the endpoint.
fn sink_error(error: ClientTlsError, config: &SignalConfig) -> SinkError {
    let endpoint = super::transport::origin(&config.endpoint);
    match error {
        ClientTlsError::Pem { file, path, source } => SinkError::Pem {
            variable: setting(file, &config.tls),
            path,
            content: file,
            source,
        },
        ClientTlsError::Rustls(source) => SinkError::Tls { endpoint, source },
        _ => SinkError::NoAuthorities { endpoint },
    }
}

/// Returns the variable or the key that names a file.
fn setting(file: ClientTlsFile, files: &TlsFiles) -> String {
    let identity = files.identity.as_ref();
    let named = match file {
        ClientTlsFile::Authority => files.authority.as_ref(),
        ClientTlsFile::Certificate => identity.map(|identity| &identity.certificate),
        ClientTlsFile::Key => identity.map(|identity| &identity.key),
    };
    named.map_or_else(String::new, |named| named.variable.clone())
}
