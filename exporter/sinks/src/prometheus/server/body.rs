//! The body of a response. A page is written at the speed of its reader.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::{
    super::{PrometheusStore, render::Page},
    compress::Compressor,
    progress::Progress,
};

/// The maximum size of a frame.
const FRAME_BYTES: usize = 64 << 10;

/// The body of a response.
pub(super) enum ScrapeBody {
    /// A complete text, or nothing.
    Complete(Bytes),
    /// A page.
    Page(Box<PageInProgress>),
    /// Updates of the live page.
    Updates(Receiver<Bytes>, Progress),
}

/// A page in progress.
pub(super) struct PageInProgress {
    page: Page,
    /// The store of the page, which counts its scrapes.
    store: PrometheusStore,
    compressor: Compressor,
    piece: Vec<u8>,
    ended: bool,
    progress: Progress,
}

impl ScrapeBody {
    pub(super) fn page(
        page: Page,
        store: PrometheusStore,
        compressor: Compressor,
        progress: Progress,
    ) -> Self {
        Self::Page(Box::new(PageInProgress {
            page,
            store,
            compressor,
            piece: Vec::new(),
            ended: false,
            progress,
        }))
    }
}

impl PageInProgress {
    /// Returns the next bytes of the page, or `None` at its end.
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.ended && self.compressor.ready() < FRAME_BYTES {
            self.piece.clear();
            let goes_on = self.page.push_piece(&mut self.piece);
            self.compressor.write(&self.piece)?;
            if !goes_on {
                self.ended = true;
                self.compressor.finish()?;
                self.store.count_scrape();
            }
        }
        self.progress.note();
        let bytes = self.compressor.take();
        Ok((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl Body for ScrapeBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let next = match self.get_mut() {
            Self::Complete(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
            Self::Page(writing) => writing.next(),
            Self::Updates(updates, progress) => {
                let update = ready!(updates.poll_recv(context));
                progress.note();
                Ok(update)
            }
        };
        Poll::Ready(next.map(|bytes| bytes.map(Frame::data)).transpose())
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Complete(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Page(_) | Self::Updates(..) => SizeHint::default(),
        }
    }
}
