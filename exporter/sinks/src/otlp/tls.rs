//! TLS settings of one endpoint: whom to trust and what to show, from PEM files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

use super::config::{Identity, NamedFile, SignalConfig, TlsFiles};
use crate::SinkError;

/// Settings for the endpoint of `config`; no file is read where the endpoint is plain `http`.
pub(super) fn client_config(config: &SignalConfig) -> Result<ClientConfig, SinkError> {
    let endpoint = super::transport::origin(&config.endpoint);
    let plain = TlsFiles::default();
    let is_tls = config.endpoint.scheme_str() == Some("https");
    let files = if is_tls { &config.tls } else { &plain };
    let provider = Arc::new(ring::default_provider());
    let in_endpoint = |source| SinkError::Tls {
        endpoint: endpoint.clone(),
        source,
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(in_endpoint)?;
    let builder = if files.insecure_skip_verify {
        let verifier = Arc::new(AcceptsEveryCertificate(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier)
    } else if is_tls {
        builder.with_root_certificates(roots(files, &endpoint)?)
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    match &files.identity {
        None => Ok(builder.with_no_client_auth()),
        Some(Identity { certificate, key }) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(in_endpoint),
    }
}

/// Returns the name that the server's certificate is checked for, where it is not the host of the endpoint.
pub(super) fn server_name(config: &SignalConfig) -> Result<Option<ServerName<'static>>, SinkError> {
    let Some(name) = &config.tls.server_name else {
        return Ok(None);
    };
    let parsed = ServerName::try_from(name.clone()).map_err(|_| SinkError::ServerName { name: name.clone() });
    parsed.map(Some)
}

/// The PEM files that are read for the endpoint of `config`.
pub(super) fn files(config: &SignalConfig) -> Vec<PathBuf> {
    if config.endpoint.scheme_str() != Some("https") {
        return Vec::new();
    }
    let TlsFiles {
        authority, identity, ..
    } = &config.tls;
    let identity = identity
        .iter()
        .flat_map(|identity| [&identity.certificate, &identity.key]);
    authority
        .iter()
        .chain(identity)
        .map(|file| file.path.clone())
        .collect()
}

/// For `insecure_skip_verify`: the signatures of the handshake are checked, the certificate is not.
#[derive(Debug)]
struct AcceptsEveryCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptsEveryCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
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
