//! Checks the `Host` header of requests to a loopback address. A web site can resolve its own name to 127.0.0.1 (DNS
//! rebinding). The scripts of the site can then read the answers of a server on this machine, but the browser still sends
//! the site's name as the host.

use std::net::IpAddr;

use http::{Request, header::HOST};

/// A request whose host is not this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this address answers requests for localhost, 127.0.0.1 or [::1] only: use one of these names, or set auth to allow any name"
)]
pub struct ForeignHost;

/// Checks that a request names this machine. The port may be any port, because a tunnel has its own. A request without a
/// host does not come from a browser.
pub(crate) fn check<B>(request: &Request<B>) -> Result<(), ForeignHost> {
    let header = request.headers().get(HOST);
    let host = match header {
        Some(header) => Some(header.to_str().map_err(|_| ForeignHost)?),
        None => request.uri().authority().map(|authority| authority.as_str()),
    };
    match host {
        None => Ok(()),
        Some(host) if is_loopback(host) => Ok(()),
        Some(_) => Err(ForeignHost),
    }
}

/// Returns whether a host, with or without a port, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback_address = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let lower = name.to_ascii_lowercase();
    is_loopback_address || lower == "localhost" || lower.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_answered(host: &str) -> bool {
        let request = Request::builder().uri("/").header("host", host).body(()).unwrap();
        check(&request).is_ok()
    }

    #[test]
    fn only_loopback_host_headers_are_accepted() {
        for host in [
            "localhost",
            "127.0.0.1:9464",
            "[::1]:80",
            "[::1]",
            "LOCALHOST:1",
            "127.9.9.9",
        ] {
            assert!(is_answered(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1:9464",
            "",
            "127.0.0.1.evil:80",
        ] {
            assert!(!is_answered(host), "{host}");
        }
        assert!(check(&Request::builder().uri("/").body(()).unwrap()).is_ok());
    }
}
