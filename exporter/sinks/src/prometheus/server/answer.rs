//! Builds the response to a request.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    },
};
use hyper::body::Incoming;
use pulsetrain_net::Guard;
use pulsetrain_page::{PageAnswer, PageBody, PageStore};

use super::{
    super::{
        ExtraFamilies, ExtraFamily, PrometheusStore,
        accept::{Coding, ResponseFormat},
        render::Page,
    },
    body::ScrapeBody,
    compress::Compressor,
    progress::Progress,
};

/// The header with Prometheus' scrape timeout.
const SCRAPE_TIMEOUT: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

/// The resources that are served.
pub(super) struct Site {
    pub(super) path: String,
    pub(super) store: PrometheusStore,
    pub(super) extra: Vec<Box<dyn ExtraFamilies>>,
    /// The live page, if it is served.
    pub(super) page: Option<PageStore>,
    pub(super) guard: Guard,
}

impl Site {
    pub(super) fn answer(&self, request: &Request<Incoming>, progress: &Progress) -> Response<ScrapeBody> {
        if let Err(why) = self.guard.authorize(request.headers()) {
            let mut answer = plain(StatusCode::UNAUTHORIZED, format!("{why}\n"));
            answer.headers_mut().insert(WWW_AUTHENTICATE, why.challenge());
            return answer;
        }
        if let Err(why) = self.guard.check_host(request) {
            return plain(StatusCode::FORBIDDEN, format!("{why}\n"));
        }
        let is_metrics = request.uri().path() == self.path;
        let page = (!is_metrics)
            .then(|| self.page.as_ref()?.answer(request))
            .flatten();
        if page.is_none() && !is_metrics {
            let body = format!("nothing here; the metrics are at {}\n", self.path);
            return plain(StatusCode::NOT_FOUND, body);
        }
        match (request.method(), page) {
            (&Method::GET | &Method::HEAD, Some(page)) => of_page(page, request.method(), progress),
            (&Method::GET | &Method::HEAD, None) => self.scrape(request, progress),
            _ => {
                let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned());
                answer
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                answer
            }
        }
    }

    fn scrape(&self, request: &Request<Incoming>, progress: &Progress) -> Response<ScrapeBody> {
        if request.headers().contains_key(SCRAPE_TIMEOUT) {
            self.store.note_scraper();
        }
        let served = ResponseFormat::to(request.headers());
        let coding = Coding::to(request.headers());
        let Ok(compressor) = Compressor::new(coding) else {
            return plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "cannot compress; ask without gzip and zstd\n".to_owned(),
            );
        };
        let body = if request.method() == Method::HEAD {
            ScrapeBody::Complete(Bytes::new())
        } else {
            let page = Page::new(&self.store, self.extra(), served.format, served.escaping);
            ScrapeBody::page(page, self.store.clone(), compressor, progress.clone())
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

fn of_page(page: PageAnswer, method: &Method, progress: &Progress) -> Response<ScrapeBody> {
    let body = match page.body {
        _ if method == Method::HEAD => ScrapeBody::Complete(Bytes::new()),
        PageBody::Complete(bytes) => ScrapeBody::Complete(bytes),
        PageBody::Updates(updates) => ScrapeBody::Updates(updates, progress.clone()),
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = page.status;
    *answer.headers_mut() = page.headers;
    answer
}

/// Returns the response after an internal error.
pub(super) fn failed() -> Response<ScrapeBody> {
    plain(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the answer could not be written; try again\n".to_owned(),
    )
}

/// Returns the response at the limit of connections.
pub(super) fn connection_limit_response() -> Response<ScrapeBody> {
    let mut answer = plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many connections are open; close some, or try again\n".to_owned(),
    );
    set(&mut answer, RETRY_AFTER, "1");
    set(&mut answer, CONNECTION, "close");
    answer
}

fn plain(status: StatusCode, text: String) -> Response<ScrapeBody> {
    let mut answer = Response::new(ScrapeBody::Complete(text.into()));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, "text/plain; charset=utf-8");
    answer
}

fn set(answer: &mut Response<ScrapeBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
