//! The body of a response, which is written at the speed of its reader.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::progress::RequestProgress;

/// The body of a response.
pub struct ResponseBody(Content);

enum Content {
    Complete(Bytes),
    Pieces(Box<dyn Iterator<Item = io::Result<Bytes>> + Send>),
    Updates(Receiver<Bytes>),
}

/// A body that records the progress of its reader.
pub(super) struct TrackedBody {
    content: Content,
    progress: RequestProgress,
}

impl ResponseBody {
    /// Returns a complete body.
    pub fn complete(bytes: Bytes) -> Self {
        Self(Content::Complete(bytes))
    }

    /// Returns a body whose next piece is made when the reader has consumed the last one.
    pub fn pieces(pieces: impl Iterator<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(Content::Pieces(Box::new(pieces)))
    }

    /// Returns a stream that ends with its channel.
    pub fn updates(updates: Receiver<Bytes>) -> Self {
        Self(Content::Updates(updates))
    }
}

impl TrackedBody {
    pub(super) fn new(body: ResponseBody, progress: RequestProgress) -> Self {
        Self {
            content: body.0,
            progress,
        }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Self { content, progress } = self.get_mut();
        let next = match content {
            Content::Complete(bytes) if bytes.is_empty() => None,
            Content::Complete(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Pieces(pieces) => pieces.next(),
            Content::Updates(updates) => std::task::ready!(updates.poll_recv(context)).map(Ok),
        };
        progress.record();
        Poll::Ready(next.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Complete(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Pieces(_) | Content::Updates(_) => SizeHint::default(),
        }
    }
}
