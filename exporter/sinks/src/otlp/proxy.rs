//! The way to an endpoint: straight, or through an HTTP proxy.

use std::{
    error::Error,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderMap, HeaderName, Uri, header::USER_AGENT};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower_service::Service;

use super::config::Proxy;

/// Connects to an endpoint, through its proxy where it has one.
#[derive(Clone)]
pub(super) struct Connector {
    http: HttpConnector,
    proxy: Option<Proxy>,
}

/// A connection to the endpoint, a tunnel to it, or a connection to a proxy that forwards requests.
pub(super) struct ProxiedStream {
    stream: TokioIo<TcpStream>,
    is_forwarding: bool,
}

/// Why a proxy could not be used.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy {proxy}")]
struct ProxyError {
    proxy: Uri,
    source: Box<dyn Error + Send + Sync>,
}

impl Connector {
    pub(super) fn new(proxy: Option<Proxy>) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        Self { http, proxy }
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
            return Box::pin(async move { Ok(ProxiedStream::of(connecting.await?, false)) });
        };
        let through = {
            let proxy = proxy.uri.clone();
            move |source| ProxyError { proxy, source }
        };
        if proxy.tunnel {
            let mut tunnel = Tunnel::new(proxy.uri, self.http.clone());
            let agent = (USER_AGENT, http::HeaderValue::from_static(super::USER_AGENT));
            tunnel = tunnel.with_headers(HeaderMap::from_iter([agent] as [(HeaderName, _); 1]));
            if let Some(authorization) = proxy.authorization {
                tunnel = tunnel.with_auth(authorization);
            }
            let connecting = tunnel.call(to);
            return Box::pin(async move {
                let stream = connecting.await.map_err(|error| through(error.into()))?;
                Ok(ProxiedStream::of(stream, false))
            });
        }
        let connecting = self.http.call(proxy.uri);
        Box::pin(async move {
            let stream = connecting.await.map_err(|error| through(error.into()))?;
            Ok(ProxiedStream::of(stream, true))
        })
    }
}

impl ProxiedStream {
    fn of(stream: TokioIo<TcpStream>, is_forwarding: bool) -> Self {
        Self {
            stream,
            is_forwarding,
        }
    }
}

impl Connection for ProxiedStream {
    /// A proxy that forwards needs the whole URL in the request line.
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
