//! TLS towards stores: whom to trust and what to show, from PEM files, and what to do where that was not enough.

use std::{error::Error, io, iter, path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::{client::BackendOptions, error::BackendError};

/// Settings for an address; no file is read where TLS is not needed.
pub(super) fn client_config(is_needed: bool, options: &BackendOptions) -> Result<ClientConfig, BackendError> {
    let roots = if is_needed {
        roots(options)?
    } else {
        RootCertStore::empty()
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| BackendError::Tls(error.to_string()))?
        .with_root_certificates(roots);
    match options.identity.as_ref().filter(|_| is_needed) {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| pem(key, "one private key, not encrypted", error))?;
            builder
                .with_client_auth_cert(certificates(certificate)?, key)
                .map_err(|error| BackendError::Tls(error.to_string()))
        }
    }
}

fn roots(options: &BackendOptions) -> Result<RootCertStore, BackendError> {
    let mut roots = RootCertStore::empty();
    match &options.authority {
        Some(file) => {
            for certificate in certificates(file)? {
                roots
                    .add(certificate)
                    .map_err(|error| pem(file, "certificate authorities", error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                let none = "this system has no certificate authorities; --ca names a file with some";
                return Err(BackendError::Tls(none.to_owned()));
            }
        }
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, BackendError> {
    let read = |path: &Path| CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    match read(file) {
        Ok(certificates) if certificates.is_empty() => Err(pem(file, "certificates", "it holds none")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(pem(file, "certificates", error)),
    }
}

fn pem(file: &Path, content: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> BackendError {
    BackendError::Pem {
        path: file.to_owned(),
        content,
        source: source.into(),
    }
}

/// What to do about a connection that failed.
pub(super) fn advice(error: &(dyn Error + 'static)) -> &'static str {
    match causes(error).find_map(|error| error.downcast_ref::<rustls::Error>()) {
        None => "is it running there?",
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS there: write http://",
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "renew its certificate, or set this machine's clock",
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => "use the host name that its certificate is for",
        Some(rustls::Error::InvalidCertificate(_)) => {
            "name the file of the authority that signed its certificate with --ca"
        }
        Some(rustls::Error::AlertReceived(_)) => {
            "it may want a certificate: --client-certificate and --client-key name one"
        }
        Some(_) => "does it speak TLS there?",
    }
}

/// An error and its causes. `io::Error::source` leaves out the error that it wraps, so that is asked for by name.
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
