//! The connection to an endpoint: direct, or through a proxy.

use std::{
    error::Error,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header::USER_AGENT};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{
        Connected, Connection, HttpConnector,
        proxy::{SocksV5, Tunnel},
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower_service::Service;

use super::{Password, Proxy, ProxyRoute};

/// The default port of a SOCKS proxy.
const SOCKS_PORT: u16 = 1080;

/// A connection in progress.
type Connecting =
    Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, Box<dyn Error + Send + Sync>>> + Send>>;

/// Connects to an endpoint, through its proxy if it has one.
#[derive(Clone)]
pub(super) struct Connector {
    http: HttpConnector,
    proxy: Option<Proxy>,
    user_agent: &'static str,
}

/// A connection to the endpoint, a tunnel to it, or a connection to a forwarding proxy.
pub(super) struct ProxiedStream {
    stream: TokioIo<TcpStream>,
    is_forwarding: bool,
}

/// Why a host cannot be reached through a proxy.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy {proxy}")]
pub struct ThroughProxyError {
    proxy: Uri,
    source: Box<dyn Error + Send + Sync>,
}

impl Connector {
    pub(super) fn new(proxy: Option<Proxy>, user_agent: &'static str) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        Self {
            http,
            proxy,
            user_agent,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = ProxiedStream;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<ProxiedStream, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxy.clone() else {
            let connecting = self.http.call(to);
            return Box::pin(async move { Ok(ProxiedStream::new(connecting.await?, false)) });
        };
        let Proxy { uri, route } = proxy;
        let named = uri.clone();
        let through = move |source| ThroughProxyError { proxy: named, source };
        let is_forwarding = matches!(route, ProxyRoute::Forward(_));
        let connecting = self.connect(uri, route, to);
        Box::pin(async move {
            let stream = connecting.await.map_err(through)?;
            Ok(ProxiedStream::new(stream, is_forwarding))
        })
    }
}

impl Connector {
    /// Connects to a proxy, and through it if it is a tunnel.
    fn connect(&mut self, proxy: Uri, route: ProxyRoute, to: Uri) -> Connecting {
        match route {
            ProxyRoute::Forward(_) => {
                let connecting = self.http.call(proxy);
                Box::pin(async move { Ok(connecting.await?) })
            }
            ProxyRoute::Tunnel(authorization) => {
                let agent = (USER_AGENT, HeaderValue::from_static(self.user_agent));
                let headers = HeaderMap::from_iter([agent] as [(HeaderName, _); 1]);
                let mut tunnel = Tunnel::new(proxy, self.http.clone()).with_headers(headers);
                if let Some(authorization) = authorization {
                    tunnel = tunnel.with_auth(authorization);
                }
                let connecting = tunnel.call(to);
                Box::pin(async move { Ok(connecting.await?) })
            }
            ProxyRoute::Socks5(user) => {
                let mut socks = SocksV5::new(with_port(proxy, SOCKS_PORT), self.http.clone());
                if let Some((user, Password::Text(password))) = user {
                    socks = socks.with_auth(user, password);
                }
                // The tunnel connector assumes https for a URL without a port.
                let is_plain = to.scheme_str() == Some("http");
                let connecting = socks.call(if is_plain { with_port(to, 80) } else { to });
                Box::pin(async move { Ok(connecting.await?) })
            }
        }
    }
}

/// Adds a port to a URL that has none.
fn with_port(uri: Uri, port: u16) -> Uri {
    let (Some(host), None) = (uri.host(), uri.port()) else {
        return uri;
    };
    let Ok(authority) = format!("{host}:{port}").parse() else {
        return uri;
    };
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).unwrap_or(uri)
}

impl ProxiedStream {
    fn new(stream: TokioIo<TcpStream>, is_forwarding: bool) -> Self {
        Self {
            stream,
            is_forwarding,
        }
    }
}

impl Connection for ProxiedStream {
    /// A forwarding proxy needs the complete URL in the request line.
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_forwarding)
    }
}

impl Read for ProxiedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for ProxiedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}
