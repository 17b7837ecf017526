//! `GET /trace?last=5m`: the contents of a flight recorder, as a Perfetto trace.

use std::time::Duration;

use hyper::{Response, StatusCode, header};
use pulsetrain_net::server::ResponseBody;
use pulsetrain_pipeline::Problem;

use super::{Answer, plain};
use crate::{agent::recorders::Recorders, config::parsed_time};

/// The path of the endpoint.
pub(super) const PATH: &str = "/trace";

/// The parameters of the request.
#[derive(Debug, Default, PartialEq, Eq)]
struct TraceQuery<'a> {
    last: Option<Duration>,
    sink: Option<&'a str>,
}

/// Answers a request, and blocks this thread meanwhile.
pub(super) fn answer(query: Option<&str>, recorders: &Recorders) -> Answer {
    let question = match TraceQuery::parse(query.unwrap_or_default()) {
        Ok(question) => question,
        Err(problem) => return plain(StatusCode::BAD_REQUEST, format!("{problem}\n")),
    };
    let Some(recorder) = recorders.get(question.sink) else {
        return plain(
            StatusCode::NOT_FOUND,
            "there is no such sink of the kind flight_recorder: pulsetrain agent --print-config shows one\n",
        );
    };
    match recorder.record(question.last) {
        Ok(recording) => download(recording.trace),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

impl<'a> TraceQuery<'a> {
    fn parse(query: &'a str) -> Result<Self, Problem> {
        let mut question = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("last", time)) => question.last = Some(parsed_time(time)?),
                Some(("sink", name)) => question.sink = Some(name),
                _ => {
                    return Err(Problem::new(format!(
                        "{pair:?} is not a valid parameter: use /trace?last=5m, or /trace for everything"
                    )));
                }
            }
        }
        Ok(question)
    }
}

fn download(trace: Vec<u8>) -> Answer {
    let mut response = Response::new(ResponseBody::complete(trace.into()));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(
        header::CONTENT_DISPOSITION,
        header::HeaderValue::from_static("attachment; filename=\"recorded.pftrace\""),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_request_without_a_recorder_gets_404() {
        let none = Recorders::default();
        assert_eq!(answer(None, &none).status(), 404);
        assert_eq!(answer(Some("last=soon"), &none).status(), 400);
    }

    #[test]
    fn a_trace_query_has_an_optional_time_and_sink() {
        let parse = TraceQuery::parse;
        assert_eq!(parse(""), Ok(TraceQuery::default()));
        let asked = parse("last=90s&sink=recorder").unwrap();
        assert_eq!(
            (asked.last, asked.sink),
            (Some(Duration::from_secs(90)), Some("recorder"))
        );
        assert!(parse("last=soon").unwrap_err().to_string().contains("5s"));
        assert!(
            parse("first=5m")
                .unwrap_err()
                .to_string()
                .contains("/trace?last=5m")
        );
    }
}
