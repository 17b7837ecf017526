//! TLS settings of one endpoint: whom to trust and what to show, from PEM files.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::config::{Identity, NamedFile, SignalConfig, TlsFiles};
use crate::SinkError;

/// Settings for the endpoint of `config`; no file is read where the endpoint is plain `http`.
pub(super) fn client_config(config: &SignalConfig) -> Result<ClientConfig, SinkError> {
    let endpoint = super::transport::origin(&config.endpoint);
    let plain = TlsFiles::default();
    let (files, roots) = match config.endpoint.scheme_str() {
        Some("https") => (&config.tls, roots(&config.tls, &endpoint)?),
        _ => (&plain, RootCertStore::empty()),
    };
    let in_endpoint = |source| SinkError::Tls {
        endpoint: endpoint.clone(),
        source,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(in_endpoint)?
        .with_root_certificates(roots);
    match &files.identity {
        None => Ok(builder.with_no_client_auth()),
        Some(Identity { certificate, key }) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(in_endpoint),
    }
}

fn roots(files: &TlsFiles, endpoint: &str) -> Result<RootCertStore, SinkError> {
    let mut roots = RootCertStore::empty();
    match &files.authority {
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
                return Err(SinkError::NoAuthorities {
                    endpoint: endpoint.to_owned(),
                });
            }
        }
    }
    Ok(roots)
}

fn certificates(file: &NamedFile) -> Result<Vec<CertificateDer<'static>>, SinkError> {
    let read = |path: &Path| CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    match read(&file.path) {
        Ok(certificates) if certificates.is_empty() => Err(pem(file, "certificates", "it holds none")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(pem(file, "certificates", error)),
    }
}

fn private_key(file: &NamedFile) -> Result<PrivateKeyDer<'static>, SinkError> {
    PrivateKeyDer::from_pem_file(&file.path)
        .map_err(|error| pem(file, "one private key, not encrypted", error))
}

fn pem(
    file: &NamedFile,
    content: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> SinkError {
    SinkError::Pem {
        variable: file.variable.clone(),
        path: file.path.clone(),
        content,
        source: source.into(),
    }
}
