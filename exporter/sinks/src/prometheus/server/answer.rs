//! The answer to a request.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY},
};
use hyper::body::Incoming;

use super::{
    super::{
        ExtraFamilies, ExtraFamily, PrometheusStore,
        accept::{Coding, Served},
        render::Page,
    },
    body::ScrapeBody,
    compress::Compressor,
    progress::Progress,
};

/// What is served.
pub(super) struct Site {
    pub(super) path: String,
    pub(super) store: PrometheusStore,
    pub(super) extra: Vec<Box<dyn ExtraFamilies>>,
}

impl Site {
    pub(super) fn answer(&self, request: &Request<Incoming>, progress: &Progress) -> Response<ScrapeBody> {
        if request.uri().path() != self.path {
            let body = format!("nothing here; the metrics are at {}\n", self.path);
            return plain(StatusCode::NOT_FOUND, body);
        }
        match *request.method() {
            Method::GET | Method::HEAD => self.page(request, progress),
            _ => {
                let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned());
                answer
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                answer
            }
        }
    }

    fn page(&self, request: &Request<Incoming>, progress: &Progress) -> Response<ScrapeBody> {
        let served = Served::to(request.headers());
        let coding = Coding::to(request.headers());
        let Ok(compressor) = Compressor::new(coding) else {
            return plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "cannot compress; ask without gzip and zstd\n".to_owned(),
            );
        };
        let body = if request.method() == Method::HEAD {
            ScrapeBody::Whole(Bytes::new())
        } else {
            let page = Page::new(&self.store, self.extra(), served.format, served.escaping);
            ScrapeBody::page(page, compressor, progress.clone())
        };
        let mut answer = Response::new(body);
        set(&mut answer, CONTENT_TYPE, &served.content_type());
        if let Some(word) = coding.word() {
            set(&mut answer, CONTENT_ENCODING, word);
        }
        set(&mut answer, VARY, "accept, accept-encoding");
        set(&mut answer, CACHE_CONTROL, "no-store");
        answer
    }

    fn extra(&self) -> Vec<super::super::extra::ReadyFamily> {
        let families = self.extra.iter().flat_map(|extra| extra.families());
        families.filter_map(ExtraFamily::ready).collect()
    }
}

fn plain(status: StatusCode, text: String) -> Response<ScrapeBody> {
    let mut answer = Response::new(ScrapeBody::Whole(text.into()));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, "text/plain; charset=utf-8");
    answer
}

fn set(answer: &mut Response<ScrapeBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
