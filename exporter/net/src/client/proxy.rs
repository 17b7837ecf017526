//! The proxy of an endpoint, HTTP or SOCKS5. `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, also in lower case,
//! are read as by Go's `net/http` and the Collector.

use http::{HeaderValue, Uri, uri::Scheme};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::Password;
use crate::host::is_loopback;

/// A proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Proxy {
    /// Its address.
    pub uri: Uri,
    /// The route of requests through it.
    pub route: ProxyRoute,
}

/// The route of requests through a proxy.
#[derive(Clone, Debug, PartialEq)]
pub enum ProxyRoute {
    /// An HTTP proxy forwards plain HTTP/1.1. Holds the value of `proxy-authorization`, marked as sensitive.
    Forward(Option<HeaderValue>),
    /// A tunnel of an HTTP proxy (`CONNECT`). Holds the value of `proxy-authorization`, marked as sensitive.
    Tunnel(Option<HeaderValue>),
    /// A tunnel of a SOCKS5 proxy, which resolves the host of the endpoint. Holds user and password.
    Socks5(Option<(String, Password)>),
}

/// A variable that is not the URL of a proxy. The value may hold a password, so it is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is not the URL of an HTTP or SOCKS5 proxy")]
pub struct ProxyVariableError {
    /// The variable.
    pub variable: &'static str,
}

impl ProxyVariableError {
    /// The remedy; the message itself is the cause only.
    pub const REMEDY: &str = "set it to a URL such as http://proxy:3128 or socks5://proxy:1080";
}

impl Proxy {
    /// Returns the proxy for `to`, from variables. gRPC uses that of `https`, as grpc-go does. Loopback addresses have
    /// none.
    ///
    /// # Errors
    /// A variable that names a proxy of an unknown kind.
    pub fn from_variables(
        lookup: &dyn Fn(&str) -> Option<String>,
        to: &Uri,
        is_grpc: bool,
    ) -> Result<Option<Self>, ProxyVariableError> {
        if is_loopback(to.host().unwrap_or_default()) {
            return Ok(None);
        }
        let tunnel = is_grpc || to.scheme() == Some(&Scheme::HTTPS);
        let name = if tunnel { "HTTPS_PROXY" } else { "HTTP_PROXY" };
        let read = |name: &str| {
            let set = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
            set(name).or_else(|| set(&name.to_ascii_lowercase()))
        };
        let Some(value) = read(name) else {
            return Ok(None);
        };
        let matcher = Matcher::builder()
            .all(value.trim())
            .no(without_wildcards(&read("NO_PROXY").unwrap_or_default()))
            .build();
        let Some(proxy) = matcher.intercept(to) else {
            let is_proxy = Matcher::builder()
                .all(value.trim())
                .build()
                .intercept(to)
                .is_some();
            return if is_proxy {
                Ok(None)
            } else {
                Err(ProxyVariableError { variable: name })
            };
        };
        let route = route(&proxy, tunnel).ok_or(ProxyVariableError { variable: name })?;
        Ok(Some(Self {
            uri: proxy.uri().clone(),
            route,
        }))
    }

    /// Returns the value of `proxy-authorization` that every forwarded request carries.
    pub(super) fn forwarded_authorization(&self) -> Option<&HeaderValue> {
        match &self.route {
            ProxyRoute::Forward(authorization) => authorization.as_ref(),
            ProxyRoute::Tunnel(_) | ProxyRoute::Socks5(_) => None,
        }
    }
}

/// Returns the route, or `None` for an unknown kind of proxy.
fn route(proxy: &Intercept, tunnel: bool) -> Option<ProxyRoute> {
    let basic = proxy.basic_auth().cloned();
    let user = proxy.raw_auth();
    match proxy.uri().scheme_str() {
        Some("http") if tunnel => Some(ProxyRoute::Tunnel(basic)),
        Some("http") => Some(ProxyRoute::Forward(basic)),
        Some("socks5" | "socks5h") => {
            Some(ProxyRoute::Socks5(user.map(|(user, password)| {
                (user.to_owned(), Password::Text(password.to_owned()))
            })))
        }
        _ => None,
    }
}

/// Returns a list of hosts in which `*.suffix`, the form of Go and curl, is `.suffix`.
fn without_wildcards(hosts: &str) -> String {
    let hosts = hosts.split(',').map(str::trim);
    let suffixes = hosts.map(|host| match host.strip_prefix('*') {
        Some(suffix) if suffix.starts_with('.') => suffix,
        _ => host,
    });
    suffixes.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(
        variables: &[(&str, &str)],
        to: &str,
        is_grpc: bool,
    ) -> Result<Option<String>, ProxyVariableError> {
        let lookup = |name: &str| {
            let known = variables.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).to_owned())
        };
        let found = Proxy::from_variables(&lookup, &to.parse().unwrap(), is_grpc)?;
        Ok(found.map(|proxy| {
            let route = match proxy.route {
                ProxyRoute::Forward(_) => "",
                ProxyRoute::Tunnel(_) => " tunnel",
                ProxyRoute::Socks5(_) => " socks",
            };
            format!("{}{route}", proxy.uri)
        }))
    }

    #[test]
    fn endpoint_scheme_selects_the_proxy_variable_and_the_tunnel() {
        let both = [("HTTP_PROXY", "http://plain:1"), ("https_proxy", "secure:2")];
        for (to, is_grpc, expected) in [
            ("http://h:4318", false, "http://plain:1/"),
            ("https://h", false, "http://secure:2/ tunnel"),
            ("http://h:4317", true, "http://secure:2/ tunnel"),
        ] {
            assert_eq!(proxy(&both, to, is_grpc), Ok(Some(expected.to_owned())), "{to}");
        }
        let socks = [("HTTP_PROXY", "socks5://user:s3cret@p:1")];
        assert_eq!(
            proxy(&socks, "http://h", false),
            Ok(Some("socks5://p:1/ socks".to_owned()))
        );
        assert_eq!(proxy(&both[..1], "https://h", false), Ok(None));
    }

    #[test]
    fn no_proxy_and_loopback_hosts_bypass_the_proxy() {
        let variables = [
            ("HTTP_PROXY", "http://p:1"),
            ("NO_PROXY", "corp.test, *.wild.test,.dot.test , 10.0.0.0/8"),
        ];
        for to in [
            "http://a.corp.test",
            "http://a.b.wild.test:4318",
            "http://a.dot.test",
            "http://10.1.2.3:4318",
            "http://localhost",
            "http://127.0.0.2",
            "http://[::1]:1",
        ] {
            assert_eq!(proxy(&variables, to, false), Ok(None), "{to}");
        }
        for to in [
            "http://corp.example",
            "http://notwild.test",
            "http://wild.test.example",
        ] {
            assert!(proxy(&variables, to, false).unwrap().is_some(), "{to}");
        }
        let all = [("HTTP_PROXY", "http://p:1"), ("NO_PROXY", "*")];
        assert_eq!(proxy(&all, "http://corp.example", false), Ok(None));
    }

    #[test]
    fn unsupported_proxy_scheme_is_reported_without_the_password() {
        for value in [
            "socks4://user:s3cret@p:1",
            "https://user:s3cret@p:1",
            "s3cret ://",
        ] {
            let notice = proxy(&[("HTTP_PROXY", value)], "http://h", false).unwrap_err();
            let notice = notice.to_string();
            assert!(
                notice.contains("HTTP_PROXY") && !notice.contains("s3cret"),
                "{notice}"
            );
        }
    }
}
