//! TLS of a server: its certificate and key, and the authority of its clients, from PEM files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    RootCertStore, ServerConfig, crypto::ring, pki_types::CertificateDer, server::WebPkiClientVerifier,
};

use crate::{
    NetError,
    pem::{self, private_key},
};

/// The files of a TLS server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The server's certificate chain, its own certificate first.
    pub certificate: PathBuf,
    /// The private key of the certificate, not encrypted.
    pub key: PathBuf,
    /// The authorities of client certificates. With it, a client without such a certificate cannot connect (mTLS).
    pub client_ca: Option<PathBuf>,
}

impl ServerTls {
    /// Returns the paths of all files.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = [&self.certificate, &self.key].into_iter();
        files.chain(&self.client_ca).cloned().collect()
    }

    /// Reads the files.
    ///
    /// # Errors
    /// A file that is missing, is not PEM, or does not belong to the others.
    pub(crate) fn read(&self, protocols: &[&[u8]]) -> Result<ServerConfig, NetError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| self.unusable(error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    roots
                        .add(certificate)
                        .map_err(|error| unusable(file, AUTHORITIES, error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier
                    .build()
                    .map_err(|error| unusable(file, AUTHORITIES, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = private_key(&self.key)
            .map_err(|error| unusable(&self.key, "one private key, not encrypted", error))?;
        let mut config = builder
            .with_single_cert(certificates(&self.certificate)?, key)
            .map_err(|error| self.unusable(error))?;
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }

    fn unusable(&self, error: rustls::Error) -> NetError {
        NetError::Tls {
            certificate: self.certificate.clone(),
            source: error.into(),
        }
    }
}

const AUTHORITIES: &str = "the certificates of authorities";

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, NetError> {
    pem::certificates(file).map_err(|error| unusable(file, "certificates", error))
}

fn unusable(
    path: &Path,
    content: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> NetError {
    NetError::Pem {
        path: path.to_owned(),
        content,
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn unusable_server_tls_files_are_reported_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let made = |name: &str| {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
            fs::write(path(&format!("{name}.pem")), made.cert.pem()).unwrap();
            fs::write(path(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
        };
        made("a");
        made("b");
        fs::write(path("text"), "text").unwrap();
        let read = |certificate: &str, key: &str, client_ca: Option<&str>| {
            let files = ServerTls {
                certificate: path(certificate),
                key: path(key),
                client_ca: client_ca.map(path),
            };
            files
                .read(&[b"h2"])
                .map(|config| config.alpn_protocols)
                .map_err(|error| format!("{error}; {}", error.remedy()))
        };
        assert_eq!(read("a.pem", "a.key", Some("b.pem")), Ok(vec![b"h2".to_vec()]));
        for (certificate, key, client_ca, file, why) in [
            ("gone.pem", "a.key", None, "gone.pem", "with certificates"),
            ("text", "a.key", None, "text", "with certificates"),
            ("a.pem", "a.pem", None, "a.pem", "one private key"),
            (
                "a.pem",
                "b.key",
                None,
                "a.pem",
                "the private key of its first certificate",
            ),
            ("a.pem", "a.key", Some("text"), "text", "with certificates"),
        ] {
            let error = read(certificate, key, client_ca).unwrap_err();
            assert!(error.contains(file) && error.contains(why), "{error}");
        }
    }
}
