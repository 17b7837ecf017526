//! `POST /gpu/release?for=10m` and `POST /gpu/resume`: releases the GPU driver for a reset, and reopens it.

use std::time::Duration;

use hyper::{HeaderMap, Request, StatusCode, header};
use pulsetrain_gpu::{DriverRelease, DriverUse};
use pulsetrain_pipeline::Problem;

use super::{Answer, plain};
use crate::config::parsed_time;

/// The path of the endpoint.
const RELEASE: &str = "/gpu/release";
const RESUME: &str = "/gpu/resume";

/// The deadline of a release. NVML cannot be shut down during a call that hangs.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);

/// Releases the driver on request.
#[derive(Clone, Debug)]
pub(crate) struct GpuControl {
    pub(crate) release: DriverRelease,
    /// The duration of a release if the request has none.
    pub(crate) time: Duration,
}

/// Returns whether a path is one of the GPU endpoints.
pub(super) fn is_path(path: &str) -> bool {
    matches!(path, RELEASE | RESUME)
}

/// Answers a POST request.
pub(super) async fn answer(request: Request<()>, gpus: GpuControl) -> Answer {
    if is_from_browser(request.headers()) {
        return plain(
            StatusCode::FORBIDDEN,
            "web pages cannot control the driver: use curl\n",
        );
    }
    if request.uri().path() == RESUME {
        gpus.release.resume();
        return plain(StatusCode::OK, "the GPU driver is read again\n");
    }
    match time(request.uri().query().unwrap_or_default()) {
        Ok(time) => release(&gpus, time.unwrap_or(gpus.time)).await,
        Err(problem) => plain(StatusCode::BAD_REQUEST, format!("{problem}\n")),
    }
}

async fn release(gpus: &GpuControl, time: Duration) -> Answer {
    if gpus.release.driver_use() == DriverUse::NotWatched {
        return plain(StatusCode::OK, "this agent does not use the GPU driver\n");
    }
    gpus.release.request(time, "POST /gpu/release");
    match tokio::time::timeout(RELEASE_TIMEOUT, gpus.release.released()).await {
        Ok(_) => plain(
            StatusCode::OK,
            format!(
                "the GPU driver is released for {} s; POST {RESUME} ends that\n",
                time.as_secs()
            ),
        ),
        Err(_) => plain(
            StatusCode::GATEWAY_TIMEOUT,
            "the GPU driver is not released: a call of the driver hangs; see /status and the kernel log, or end the agent\n",
        ),
    }
}

/// Returns whether a browser sends the request on behalf of a web page.
fn is_from_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site")
}

fn time(query: &str) -> Result<Option<Duration>, Problem> {
    match query.split_once('=') {
        None if query.is_empty() => Ok(None),
        Some(("for", time)) => Ok(Some(parsed_time(time)?)),
        _ => Err(Problem::new(format!(
            "{query:?} is unknown: write {RELEASE}?for=10m, or {RELEASE}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn status(target: &str, origin: Option<&str>) -> u16 {
        let control = GpuControl {
            release: DriverRelease::default(),
            time: Duration::from_secs(1),
        };
        let mut request = Request::builder().uri(target);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        let request = request.body(()).unwrap();
        answer(request, control).await.status().as_u16()
    }

    #[tokio::test]
    async fn driver_release_is_refused_to_web_pages() {
        assert_eq!(status("/gpu/release", Some("http://elsewhere")).await, 403);
        assert_eq!(status("/gpu/release?for=soon", None).await, 400);
        assert_eq!(status("/gpu/release?for=10s", None).await, 200);
        assert_eq!(status("/gpu/resume", None).await, 200);
    }
}
