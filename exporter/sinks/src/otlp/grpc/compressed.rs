//! Compresses gRPC messages at a chosen level, on the blocking pool. tonic has one level and compresses on
//! the network threads.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use tonic::{body::Body, client::GrpcService};

use crate::otlp::{
    body::{self, BodyError},
    config::Compression,
    transport::{Transport, TransportError},
};

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// The size of the frame header: a flag, and the length in four bytes (gRPC over HTTP/2,
/// "Length-Prefixed-Message").
const FRAME_HEADER_BYTES: usize = 5;
const IS_COMPRESSED: u8 = 1;

/// A transport that compresses the message of each request.
#[derive(Clone)]
pub(super) struct CompressedTransport {
    transport: Transport,
    compression: Compression,
}

impl CompressedTransport {
    pub(super) fn new(transport: Transport, compression: Compression) -> Self {
        Self {
            transport,
            compression,
        }
    }
}

impl GrpcService<Body> for CompressedTransport {
    type ResponseBody = <Transport as GrpcService<Body>>::ResponseBody;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Self::ResponseBody>, TransportError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.transport.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(coding) = self.compression.coding() else {
            return self.transport.call(request);
        };
        let Self {
            mut transport,
            compression,
        } = self.clone();
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            head.headers.insert(ENCODING, HeaderValue::from_static(coding));
            let frame = match body.collect().await {
                Ok(body) => frame(body.to_bytes(), compression).await?,
                Err(status) => return Err(BodyError::Gather(Box::new(status)).into()),
            };
            transport
                .call(Request::from_parts(head, Body::new(Full::new(frame))))
                .await
        })
    }
}

/// Compresses the message in a frame.
async fn frame(plain: Bytes, compression: Compression) -> Result<Bytes, BodyError> {
    let message = plain.slice(FRAME_HEADER_BYTES.min(plain.len())..);
    let message = body::compress(message, compression).await?;
    let mut frame = BytesMut::with_capacity(FRAME_HEADER_BYTES + message.len());
    frame.put_u8(IS_COMPRESSED);
    // A request has at most 64 MiB.
    frame.put_u32(message.len() as u32);
    frame.put(message);
    Ok(frame.freeze())
}
