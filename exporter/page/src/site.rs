//! The routes of the page: the page, its data as JSON, and the update stream.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use percent_encoding::percent_decode_str;
use pulsetrain_net::server::{ResponseBody, Routes};
use pulsetrain_pipeline::{BoxFuture, CancellationToken, clock};

use super::{PageStore, asset, feed::MAX_WATCHED, snapshot};

/// The page loads nothing, sends nothing to other hosts, and cannot be embedded.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl Routes for PageStore {
    fn has(&self, path: &str) -> bool {
        matches!(path, "/" | "/api/overview" | "/api/run" | "/events")
    }

    fn is_slow(&self, path: &str) -> bool {
        matches!(path, "/api/overview" | "/api/run")
    }

    fn answer(&self, request: &Request<()>) -> Response<ResponseBody> {
        let takes_gzip = takes_gzip(request.headers());
        let query = Query::parse(request.uri().query());
        match request.uri().path() {
            "/" => html(takes_gzip),
            "/api/overview" => json(self.overview(self.is_live()), takes_gzip),
            "/api/run" => self.run_answer(&query, takes_gzip),
            _ => self.events_answer(&query),
        }
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.clone().stream(stop))
    }
}

impl PageStore {
    /// Returns the list of runs, GPUs and sinks as JSON.
    fn overview(&self, is_live: bool) -> String {
        let sinks = self.sinks();
        let now_millis = clock::unix_now().as_millis() as i64;
        snapshot::overview(&self.history(), &sinks, now_millis, is_live)
    }

    /// Returns the page as one HTML file with its data.
    pub fn standalone(&self) -> String {
        let overview = self.overview(false);
        let history = self.history();
        let runs = history.runs.values();
        let runs: Vec<String> = runs.map(|run| snapshot::run(run, &history.catalogue)).collect();
        asset::standalone(&format!(
            "{{\"overview\":{overview},\"runs\":[{}]}}",
            runs.join(",")
        ))
    }

    fn run_answer(&self, query: &Query, takes_gzip: bool) -> Response<ResponseBody> {
        let history = self.history();
        let wanted = query.first("id").unwrap_or_default();
        match history.runs.get(wanted) {
            Some(run) => {
                let text = snapshot::run(run, &history.catalogue);
                drop(history);
                json(text, takes_gzip)
            }
            None => plain(StatusCode::NOT_FOUND, "there is no such run; see /api/overview\n"),
        }
    }

    fn events_answer(&self, query: &Query) -> Response<ResponseBody> {
        let runs: BTreeSet<&str> = query.all("run").collect();
        let watched = runs.into_iter().take(MAX_WATCHED).map(str::to_owned);
        match self.subscribe(watched.collect()) {
            Some(updates) => answer(
                StatusCode::OK,
                "text/event-stream",
                ResponseBody::updates(updates),
            ),
            None => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many browsers watch already; close one and reload\n",
            ),
        }
    }
}

fn html(takes_gzip: bool) -> Response<ResponseBody> {
    let (plain, gzip) = &*asset::PAGE;
    let body = if takes_gzip { gzip } else { plain };
    let body = ResponseBody::complete(body.clone());
    let mut answer = answer(StatusCode::OK, "text/html; charset=utf-8", body);
    set(&mut answer, header::CONTENT_SECURITY_POLICY, POLICY);
    set(&mut answer, header::REFERRER_POLICY, "no-referrer");
    compressed(answer, takes_gzip)
}

fn json(text: String, takes_gzip: bool) -> Response<ResponseBody> {
    let body = if takes_gzip {
        asset::gzip_fast(text.as_bytes()).into()
    } else {
        text.into()
    };
    let body = ResponseBody::complete(body);
    compressed(answer(StatusCode::OK, "application/json", body), takes_gzip)
}

fn plain(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let body = ResponseBody::complete(Bytes::from_static(text.as_bytes()));
    answer(status, "text/plain; charset=utf-8", body)
}

fn answer(status: StatusCode, content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    set(&mut answer, header::CONTENT_TYPE, content_type);
    set(&mut answer, header::CACHE_CONTROL, "no-store");
    set(&mut answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    answer
}

fn compressed(mut answer: Response<ResponseBody>, is_gzip: bool) -> Response<ResponseBody> {
    set(&mut answer, header::VARY, "accept-encoding");
    if is_gzip {
        set(&mut answer, header::CONTENT_ENCODING, "gzip");
    }
    answer
}

fn set(answer: &mut Response<ResponseBody>, name: header::HeaderName, value: &'static str) {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// The parameters of a request.
struct Query(Vec<(String, String)>);

impl Query {
    fn parse(query: Option<&str>) -> Self {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Self(pairs.map(|(key, value)| (decoded(key), decoded(value))).collect())
    }

    fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        let wanted = self.0.iter().filter(move |(name, _)| name == key);
        wanted.map(|(_, value)| value.as_str())
    }

    fn first(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_if_accepted() {
        let headers = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            headers
        };
        assert!(takes_gzip(&headers("br, gzip;q=0.5")));
        assert!(!takes_gzip(&headers("br, gzip;q=0")));
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
