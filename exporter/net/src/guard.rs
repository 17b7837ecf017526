//! The checks of a server: the TLS handshake of a connection, the credentials and the host of a request.

use std::{error::Error, fmt::Display, io, iter, net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderMap, Request};
use rustls::{AlertDescription, CertificateError, ServerConfig};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::sleep};
use tokio_rustls::TlsAcceptor;

use crate::{
    Exposure, ForeignHost, NetError, ServerStream, Unauthenticated, auth::Credentials, host,
    watched_files::WatchedFiles,
};

/// The interval at which the files are checked for changes.
const LOOK: Duration = Duration::from_secs(1);

/// The answer to a client that speaks HTTP where TLS is expected.
const NEEDS_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    Content-Length: 47\r\n\r\nthis address speaks TLS only: connect by https\n";

/// Receives messages for the operator. The first argument is the kind of the message, for rate limits.
pub type Report = Arc<dyn Fn(&str, &dyn Display) + Send + Sync>;

/// The protocols that a TLS server offers (ALPN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 and HTTP/1.1.
    Http2,
}

/// The checks of one server; clones share them.
#[derive(Clone)]
pub struct Guard {
    tls: Option<Arc<WatchedFiles<ServerConfig>>>,
    credentials: Option<Arc<WatchedFiles<Credentials>>>,
    authenticates: bool,
    checks_host: bool,
    report: Report,
}

impl Guard {
    /// Reads the files of an exposure.
    ///
    /// # Errors
    /// Returns the error of the first file that cannot be used.
    pub fn open(exposure: &Exposure, alpn: Alpn, report: Report) -> Result<Self, NetError> {
        let tls = exposure.tls.clone().map(|files| {
            let read = {
                let files = files.clone();
                move || files.read(alpn.names())
            };
            WatchedFiles::open(files.files(), read).map(Arc::new)
        });
        let credentials = exposure.auth.clone().map(|auth| {
            let file = auth.file().to_owned();
            WatchedFiles::open(vec![file], move || auth.read()).map(Arc::new)
        });
        Ok(Self {
            tls: tls.transpose()?,
            credentials: credentials.transpose()?,
            authenticates: exposure.authenticates(),
            checks_host: false,
            report,
        })
    }

    /// Checks the host of requests if only this machine can reach the server. Authenticated requests do not need this
    /// check: a browser does not send the credentials of one site to another.
    #[must_use]
    pub fn checking_host(mut self, is_loopback: bool) -> Self {
        self.checks_host = is_loopback && !self.authenticates;
        self
    }

    /// Passes messages for the operator to `report`.
    #[must_use]
    pub fn reporting(mut self, report: Report) -> Self {
        self.report = report;
        self
    }

    /// Returns whether clients authenticate.
    pub fn authenticates(&self) -> bool {
        self.authenticates
    }

    /// Checks the credentials of a request.
    ///
    /// # Errors
    /// Credentials that are missing or wrong.
    pub fn authorize(&self, headers: &HeaderMap) -> Result<(), Unauthenticated> {
        match &self.credentials {
            None => Ok(()),
            Some(credentials) => credentials.current().check(headers),
        }
    }

    /// Checks the host of a request if [`checking_host`](Self::checking_host) enabled that.
    ///
    /// # Errors
    /// Returns an error if the host is not this machine.
    pub fn check_host<B>(&self, request: &Request<B>) -> Result<(), ForeignHost> {
        if self.checks_host {
            host::check(request)
        } else {
            Ok(())
        }
    }

    /// Reloads the files when they change, until the future is dropped. The files are read on a blocking thread, not on
    /// the threads of the network.
    pub async fn watch(self) {
        if self.tls.is_none() && self.credentials.is_none() {
            return std::future::pending().await;
        }
        loop {
            sleep(LOOK).await;
            let guard = self.clone();
            let refreshed = tokio::task::spawn_blocking(move || guard.refresh());
            for message in refreshed.await.unwrap_or_default() {
                // Each message is its own kind: the report of a rotation must not suppress the report of a broken file.
                (self.report)(&message, &message);
            }
        }
    }

    fn refresh(&self) -> Vec<String> {
        let tls = self.tls.as_ref().and_then(|files| files.refresh());
        let credentials = self.credentials.as_ref().and_then(|files| files.refresh());
        tls.into_iter().chain(credentials).collect()
    }

    /// Performs the TLS handshake of a connection. Returns `None` if the handshake failed, which is reported.
    pub(crate) async fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> Option<ServerStream> {
        let Some(tls) = &self.tls else {
            return Some(ServerStream::Tcp(stream));
        };
        match handshake(tls.current(), stream).await {
            Ok(stream) => Some(stream),
            // The connection of a load balancer that checks whether the port is open.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => None,
            Err(error) => {
                let why = reason(&error);
                let message = format_args!("the TLS handshake with {peer} failed: {why}");
                (self.report)(&why, &message);
                None
            }
        }
    }
}

impl Alpn {
    fn names(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http1 => &[b"http/1.1"],
            Self::Http2 => &[b"h2", b"http/1.1"],
        }
    }
}

async fn handshake(config: Arc<ServerConfig>, mut stream: TcpStream) -> io::Result<ServerStream> {
    // Methods of HTTP are letters; the first byte of TLS is 0x16.
    let mut first = [0];
    let peeked = stream.peek(&mut first).await?;
    if peeked == 0 {
        return Err(io::ErrorKind::NotConnected.into());
    }
    if first[0].is_ascii_uppercase() {
        let _ = stream.write_all(NEEDS_TLS).await;
        let _ = stream.shutdown().await;
        return Err(io::Error::other("the client speaks plain HTTP"));
    }
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    Ok(ServerStream::Tls(Box::new(stream)))
}

/// Returns the reason of a failed handshake, with the remedy if it is known.
fn reason(error: &io::Error) -> String {
    let first = error.get_ref().map(|error| error as &(dyn Error + 'static));
    let mut causes = iter::successors(first, |&error| error.source());
    let tls = causes.find_map(|error| error.downcast_ref::<rustls::Error>());
    let known = match tls {
        Some(rustls::Error::NoCertificatesPresented) => {
            "the client has no certificate; it needs one of an authority in client_ca"
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "the certificate of the client has expired; renew it",
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => "the certificate of the client is not of an authority in client_ca",
        Some(rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::DecryptError
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        )) => "the client does not trust the certificate of this server; give it the authority's certificate",
        Some(rustls::Error::AlertReceived(AlertDescription::CertificateExpired)) => {
            "the certificate of this server has expired; renew the file of tls.certificate"
        }
        Some(rustls::Error::InvalidMessage(_)) => "the client does not speak TLS",
        _ => return error.to_string(),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_response_has_a_correct_content_length() {
        let text = std::str::from_utf8(NEEDS_TLS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.ends_with(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
    }
}
