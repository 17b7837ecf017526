//! A TLS proxy for a server without TLS: accepts TLS connections and forwards their bytes.

use std::{fs, net::SocketAddr, path::Path, sync::Arc};

use tokio::{io::copy_bidirectional, net::TcpStream, runtime::Runtime};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};

use crate::{Certificates, loopback};

/// A running proxy on loopback, which stops when it is dropped.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    _runtime: Runtime,
}

impl TlsFront {
    /// Starts a proxy of the server at `backend`, such as `127.0.0.1:3200`, which may require a client certificate.
    pub fn start(certificates: &Certificates, asks_for_client: bool, backend: &str) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config(certificates, asks_for_client)));
        let backend: SocketAddr = backend.parse().expect("a server has an address");
        let (runtime, listener, address) = loopback::listen(0);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // TLS reports a rejected handshake to the client; a client that closes early is ignored.
                    if let (Ok(mut front), Ok(mut back)) =
                        (acceptor.accept(stream).await, TcpStream::connect(backend).await)
                    {
                        let _ = copy_bidirectional(&mut front, &mut back).await;
                    }
                });
            }
        });
        Self {
            address,
            _runtime: runtime,
        }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

fn config(certificates: &Certificates, asks_for_client: bool) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the default versions exist");
    let builder = if asks_for_client {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates_in(&certificates.authority()));
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().expect("the authority was just made"))
    } else {
        builder.with_no_client_auth()
    };
    let (certificate, key) = certificates.server();
    let key = fs::read(key).expect("the key was just made");
    let key = PrivateKeyDer::from_pem_slice(&key).expect("the key is PEM");
    builder
        .with_single_cert(certificates_in(&certificate), key)
        .expect("the certificate and its key belong together")
}

fn certificates_in(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .expect("the certificates were just made")
}
