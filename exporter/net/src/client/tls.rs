//! TLS of a client: the authorities that it trusts and the certificate that it shows, from PEM files.

use std::{
    error::Error,
    fmt::{self, Display, Formatter},
    path::PathBuf,
    sync::Arc,
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use super::{ClientError, NamedFile};
use crate::pem::{certificates, private_key};

/// The TLS settings of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// The certificate authorities to trust instead of the system's.
    pub authority: Option<NamedFile>,
    /// The client certificate.
    pub identity: Option<Identity>,
    /// The name that the server's certificate must have, instead of the host of the endpoint.
    pub server_name: Option<String>,
    /// Accepts every server certificate: the connection is encrypted, but the server is not authenticated.
    pub insecure_skip_verify: bool,
}

/// A client's certificate chain and its private key, not encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate chain.
    pub certificate: NamedFile,
    /// The private key.
    pub key: NamedFile,
}

/// A file of a TLS client; its text is the content that the file has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTlsFile {
    /// The authorities to trust.
    Authority,
    /// The certificate of the client.
    Certificate,
    /// The private key of the client.
    Key,
}

impl ClientTls {
    /// Reads the files, or none for a client without TLS connections.
    ///
    /// # Errors
    /// A file that cannot be used, or a system without certificate authorities.
    pub(super) fn read(&self, is_tls: bool) -> Result<ClientConfig, ClientError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        if !is_tls {
            return Ok(builder
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth());
        }
        let builder = if self.insecure_skip_verify {
            let verifier = Arc::new(AcceptsEveryCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let Some(Identity { certificate, key }) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let chain =
            certificates(&certificate.path).map_err(unusable(ClientTlsFile::Certificate, certificate))?;
        let private_key = private_key(&key.path).map_err(unusable(ClientTlsFile::Key, key))?;
        Ok(builder.with_client_auth_cert(chain, private_key)?)
    }

    /// Returns the name that the server's certificate must have, if it is not the host of the endpoint.
    pub(super) fn server_name(&self) -> Result<Option<ServerName<'static>>, ClientError> {
        let parsed = |name: &String| {
            ServerName::try_from(name.clone()).map_err(|_| ClientError::ServerName { name: name.clone() })
        };
        self.server_name.as_ref().map(parsed).transpose()
    }

    /// Returns the paths of all files.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let identity = (self.identity.iter()).flat_map(|identity| [&identity.certificate, &identity.key]);
        let files = self.authority.iter().chain(identity);
        files.map(|file| file.path.clone()).collect()
    }

    fn roots(&self) -> Result<RootCertStore, ClientError> {
        let mut roots = RootCertStore::empty();
        let Some(file) = &self.authority else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return match roots.is_empty() {
                true => Err(ClientError::NoAuthorities),
                false => Ok(roots),
            };
        };
        for certificate in certificates(&file.path).map_err(unusable(ClientTlsFile::Authority, file))? {
            let added = roots.add(certificate);
            added.map_err(|error| unusable(ClientTlsFile::Authority, file)(error.into()))?;
        }
        Ok(roots)
    }
}

impl Display for ClientTlsFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authority => "certificates of authorities",
            Self::Certificate => "certificates",
            Self::Key => "one private key, not encrypted",
        })
    }
}

fn unusable(
    content: ClientTlsFile,
    file: &NamedFile,
) -> impl FnOnce(Box<dyn Error + Send + Sync>) -> ClientError {
    move |source| ClientError::Pem {
        variable: file.variable.clone(),
        content,
        path: file.path.clone(),
        source,
    }
}

/// The verifier for `insecure_skip_verify`: it checks the signatures of the handshake, but not the certificate.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::watched_files::Described;

    #[test]
    fn unusable_client_tls_file_is_reported_with_its_expected_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let made = rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
        fs::write(path("client.pem"), made.cert.pem()).unwrap();
        fs::write(path("client.key"), made.signing_key.serialize_pem()).unwrap();
        fs::write(path("empty"), "").unwrap();
        let named = |name: &str| NamedFile {
            variable: name.to_owned(),
            path: path(name),
        };
        let read = |authority: &str, certificate: &str, key: &str| {
            let files = ClientTls {
                authority: Some(named(authority)),
                identity: Some(Identity {
                    certificate: named(certificate),
                    key: named(key),
                }),
                ..ClientTls::default()
            };
            assert_eq!(files.files(), [path(authority), path(certificate), path(key)]);
            files.read(true).map(drop).map_err(|error| error.described())
        };
        assert_eq!(read("client.pem", "client.pem", "client.key"), Ok(()));
        for (authority, certificate, key, file, content) in [
            (
                "empty",
                "client.pem",
                "client.key",
                "empty",
                "with certificates of authorities",
            ),
            ("client.pem", "gone", "client.key", "gone", "with certificates"),
            (
                "client.pem",
                "client.pem",
                "client.pem",
                "client.pem",
                "one private key",
            ),
        ] {
            let error = read(authority, certificate, key).unwrap_err();
            assert!(error.contains(file) && error.contains(content), "{error}");
        }
    }
}
