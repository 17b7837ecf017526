//! TLS settings of the clients of stores, and advice about a failed handshake.

use std::{error::Error, io, iter};

use pulsetrain_net::{ClientTls, no_client_tls};
use rustls::{CertificateError, ClientConfig};

use super::{client::BackendOptions, error::BackendError};

/// Returns the TLS settings for an address. Files are read only if TLS is needed.
pub(super) fn client_config(is_needed: bool, options: &BackendOptions) -> Result<ClientConfig, BackendError> {
    let config = if is_needed {
        let files = ClientTls {
            authority: options.authority.clone(),
            identity: options.identity.clone(),
            insecure_skip_verify: false,
        };
        files.read()
    } else {
        no_client_tls()
    };
    config.map_err(BackendError::Tls)
}

/// Returns the remedy for a failed connection.
pub(super) fn advice(error: &(dyn Error + 'static)) -> &'static str {
    match causes(error).find_map(|error| error.downcast_ref::<rustls::Error>()) {
        None => "is it running there?",
        Some(rustls::Error::InvalidMessage(_)) => "the port does not speak TLS: use http://",
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "renew its certificate, or set this machine's clock",
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => "use the host name that its certificate is for",
        Some(rustls::Error::InvalidCertificate(_)) => {
            "set --ca to the file of the authority that signed its certificate"
        }
        Some(rustls::Error::AlertReceived(_)) => {
            "it may require a certificate: set --client-certificate and --client-key"
        }
        Some(_) => "does it speak TLS there?",
    }
}

/// Returns an error and its causes. `io::Error::source` skips the wrapped error, which is therefore read with `get_ref`.
pub(super) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
