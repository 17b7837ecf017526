//! Unary gRPC calls with encoded messages. tonic frames a message on the connections of a [`Client`]; messages are compressed at a
//! chosen level, on the blocking pool. tonic has one level and compresses on the network threads.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, uri::PathAndQuery};
use http_body_util::{BodyExt, Either, Empty, Full};
use tonic::{
    Extensions, Status, body::Body, client::Grpc, client::GrpcService, codec::CompressionEncoding,
    metadata::MetadataMap,
};

use super::{Client, Compression, RequestError, ResponseBody};
use crate::grpc::{FRAME_HEADER_BYTES, RawCodec, is_message_limit};

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const IS_COMPRESSED: u8 = 1;

/// Calls the unary methods of one host.
#[derive(Clone)]
pub struct GrpcClient {
    grpc: Grpc<Channel>,
    client: Client,
    /// The headers of every call.
    metadata: MetadataMap,
}

/// The service through which tonic sends requests.
#[derive(Clone)]
struct Channel {
    client: Client,
    compression: Compression,
}

impl GrpcClient {
    /// Returns a client of `origin`, which sends `headers` and the timeout with every call.
    pub fn new(client: Client, origin: Uri, headers: HeaderMap, compression: Compression) -> Self {
        let config = &client.shared.config;
        let (timeout, limit) = (config.timeout, config.max_response_bytes);
        let mut request =
            tonic::Request::from_parts(MetadataMap::from_headers(headers), Extensions::new(), ());
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        let channel = Channel {
            client: client.clone(),
            compression,
        };
        let grpc = Grpc::with_origin(channel, origin).max_decoding_message_size(limit);
        Self {
            grpc: match compression {
                Compression::None => grpc,
                // A server on grpc-go compresses its response like the request.
                Compression::Gzip(_) => grpc.accept_compressed(CompressionEncoding::Gzip),
                Compression::Zstd(_) => grpc.accept_compressed(CompressionEncoding::Zstd),
            },
            client,
            metadata: request.metadata().clone(),
        }
    }

    /// Sends a message and returns the message of the response.
    ///
    /// # Errors
    /// A status other than OK. Its cause is a [`RequestError`] if there is no complete response.
    pub async fn unary(&mut self, method: PathAndQuery, message: Bytes) -> Result<Bytes, Status> {
        let client = self.client.clone();
        let length = message.len();
        let request = tonic::Request::from_parts(self.metadata.clone(), Extensions::new(), message);
        let call = self.grpc.unary(request, method, RawCodec::for_message(length));
        let answer = client.within_timeout(async { Ok(call.await) }).await;
        let status = match answer {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(status)) => status,
            Err(error) => return Err(Status::from_error(error.into())),
        };
        // A receiver on tonic rejects a request with the same words. Their first number is the size or the limit.
        let is_response = || first_number(status.message()).is_none_or(|size| size > length);
        if is_message_limit(&status) && is_response() {
            let limit = client.shared.config.max_response_bytes;
            return Err(Status::from_error(RequestError::TooLarge { limit }.into()));
        }
        Err(status)
    }
}

fn first_number(text: &str) -> Option<usize> {
    let mut digits = text.split(|c: char| !c.is_ascii_digit());
    digits.find(|digits| !digits.is_empty())?.parse().ok()
}

impl Channel {
    async fn send(
        self,
        request: Request<Body>,
    ) -> Result<Response<Either<ResponseBody, Empty<Bytes>>>, RequestError> {
        let (mut head, body) = request.into_parts();
        let unsent = |status: Status| RequestError::Compress(std::io::Error::other(status));
        let mut frame = body.collect().await.map_err(unsent)?.to_bytes();
        if let Some(coding) = self.compression.coding() {
            head.headers.insert(ENCODING, HeaderValue::from_static(coding));
            frame = compressed(&frame, self.compression).await?;
        }
        let request = Request::from_parts(head, Full::new(frame));
        let answer = self.client.send(request).await?;
        // A response other than `200 OK` comes from a proxy. Its body is not gRPC and would hide the status from tonic.
        Ok(match answer.status() {
            StatusCode::OK => answer.map(Either::Left),
            _ => answer.map(|_| Either::Right(Empty::new())),
        })
    }
}

impl GrpcService<Body> for Channel {
    type ResponseBody = Either<ResponseBody, Empty<Bytes>>;
    type Error = RequestError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Self::ResponseBody>, RequestError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RequestError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

/// Compresses the message in a frame.
async fn compressed(plain: &Bytes, compression: Compression) -> Result<Bytes, RequestError> {
    let message = plain.slice(FRAME_HEADER_BYTES.min(plain.len())..);
    let message = compression.compress(message).await?;
    let mut frame = BytesMut::with_capacity(FRAME_HEADER_BYTES + message.len());
    frame.put_u8(IS_COMPRESSED);
    // The length of a frame has 32 bits, and so had that of the plain message.
    frame.put_u32(message.len() as u32);
    frame.put(message);
    Ok(frame.freeze())
}
