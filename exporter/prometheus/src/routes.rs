//! The routes of the page: a response to a scrape is written from the store as its reader consumes it.
//!
//! Additional families (`ExtraFamilies`) are collected at each scrape.

use std::io;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY},
};
use pulsetrain_net::server::{HttpServer, ResponseBody, Routes};

use super::{
    ExtraFamilies, ExtraFamily, PrometheusConfig, PrometheusError, PrometheusStore,
    accept::{Coding, ResponseFormat},
    compress::Compressor,
    escape::Escaping,
    render::{Format, Page},
};

/// The header with Prometheus' scrape timeout.
const SCRAPE_TIMEOUT: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

/// The maximum size of a piece of a page.
const PIECE_BYTES: usize = 64 << 10;

/// The page at its path.
struct PrometheusRoutes {
    path: String,
    store: PrometheusStore,
    extra: Vec<Box<dyn ExtraFamilies>>,
}

/// A page in progress.
struct PageInProgress {
    page: Page,
    /// The store of the page, which counts its scrapes.
    store: PrometheusStore,
    compressor: Compressor,
    piece: Vec<u8>,
    ended: bool,
}

impl PrometheusConfig {
    /// Opens the port for a server of the page, to which other routes can be added.
    ///
    /// # Errors
    /// An invalid configuration, a file that cannot be used, or an address in use.
    pub fn bind(
        &self,
        store: PrometheusStore,
        extra: Vec<Box<dyn ExtraFamilies>>,
    ) -> Result<HttpServer, PrometheusError> {
        self.check()?;
        let path = self.path.clone();
        let server = HttpServer::bind(&self.listen, self.socket_mode, &self.exposure, self.idle_timeout)?;
        Ok(server
            .with_not_found(format!("nothing here; the metrics are at {path}\n"))
            .with_routes(PrometheusRoutes { path, store, extra }))
    }
}

impl PrometheusStore {
    /// Writes the page for a client without `Accept`: text 0.0.4.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let mut page = Page::new(self, Vec::new(), Format::Text, Escaping::Underscores);
        while page.push_piece(out) {}
    }

    /// Writes the page for a client with this `Accept` header. Returns its content type.
    pub fn write_page(&self, accept: &str, out: &mut Vec<u8>) -> String {
        let mut headers = HeaderMap::new();
        if let Ok(accept) = accept.parse() {
            headers.insert(ACCEPT, accept);
        }
        let served = ResponseFormat::to(&headers);
        let mut page = Page::new(self, Vec::new(), served.format, served.escaping);
        while page.push_piece(out) {}
        served.content_type()
    }
}

impl Routes for PrometheusRoutes {
    fn has(&self, path: &str) -> bool {
        path == self.path
    }

    fn answer(&self, request: &Request<()>) -> Response<ResponseBody> {
        if request.headers().contains_key(SCRAPE_TIMEOUT) {
            self.store.observe_scraper();
        }
        let served = ResponseFormat::to(request.headers());
        let coding = Coding::to(request.headers());
        let Ok(compressor) = Compressor::new(coding) else {
            let text = Bytes::from_static(b"cannot compress; ask without gzip and zstd\n");
            let mut answer = Response::new(ResponseBody::complete(text));
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            set(&mut answer, CONTENT_TYPE, "text/plain; charset=utf-8");
            return answer;
        };
        let families = self.extra.iter().flat_map(|extra| extra.families());
        let extra = families.filter_map(ExtraFamily::ready).collect();
        let mut answer = Response::new(ResponseBody::pieces(PageInProgress {
            page: Page::new(&self.store, extra, served.format, served.escaping),
            store: self.store.clone(),
            compressor,
            piece: Vec::new(),
            ended: false,
        }));
        set(&mut answer, CONTENT_TYPE, &served.content_type());
        if let Some(word) = coding.word() {
            set(&mut answer, CONTENT_ENCODING, word);
        }
        set(&mut answer, VARY, "accept, accept-encoding");
        set(&mut answer, CACHE_CONTROL, "no-store");
        answer
    }
}

impl Iterator for PageInProgress {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.fill() {
            Ok(()) => {
                let bytes = self.compressor.take();
                (!bytes.is_empty()).then(|| Ok(bytes.into()))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl PageInProgress {
    /// Writes until a piece is full, or to the end of the page.
    fn fill(&mut self) -> io::Result<()> {
        while !self.ended && self.compressor.ready() < PIECE_BYTES {
            self.piece.clear();
            let goes_on = self.page.push_piece(&mut self.piece);
            self.compressor.write(&self.piece)?;
            if !goes_on {
                self.ended = true;
                self.compressor.finish()?;
                self.store.count_scrape();
            }
        }
        Ok(())
    }
}

fn set(answer: &mut Response<ResponseBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
