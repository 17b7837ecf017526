//! `convert --open`: serves the trace to the Perfetto UI in the user's browser only.
//!
//! The page at ui.perfetto.dev fetches the file itself, because its address contains the URL of the file. Its content
//! security policy allows it to fetch from port 9001 of 127.0.0.1
//! (<https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui>).

use std::{
    fs::File,
    io::{self, Read, Take, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use hyper::{
    Method, Request, Response, StatusCode,
    body::Bytes,
    header::{CONTENT_LENGTH, HeaderValue},
};
use percent_encoding::NON_ALPHANUMERIC;
use pulsetrain_net::{
    Exposure,
    server::{HttpServer, ResponseBody, Routes, plain},
};
use pulsetrain_pipeline::CancellationToken;
use pulsetrain_semconv::metric;
use serde_json::json;

use crate::{failure::Failure, runtime, terminal};

/// The origin that may read the file.
const UI: &str = "https://ui.perfetto.dev";

/// The minimum margin that is shown before and after a span.
const MIN_MARGIN_NANOS: u64 = 1_000;

/// The idle timeout of a client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The size of a piece of the file in a response.
const PIECE_BYTES: u64 = 64 << 10;

/// Serves one file on a port of this machine.
pub(super) struct TraceServer {
    server: HttpServer,
    port: u16,
}

/// The path of the trace.
struct TraceRoutes {
    path: String,
    file: PathBuf,
    fetched: CancellationToken,
}

/// The rest of the trace in a response.
struct TracePieces {
    rest: Take<File>,
    fetched: CancellationToken,
}

impl TraceServer {
    /// Binds the port early, so that a conversion is not done in vain.
    ///
    /// # Errors
    /// Returns an error if the port is in use.
    pub(super) fn bind(port: u16) -> Result<Self, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = HttpServer::bind(&address.into(), 0, &Exposure::default(), CLIENT_TIMEOUT).map_err(|error| {
            Failure::failed(format!(
                "cannot serve the trace: {error}; end the program that has the port (often another `convert --open`, or \
                 trace_processor), or leave --open out and open the file at {UI}"
            ))
        })?;
        Ok(Self { server, port })
    }

    /// Prints the address at which the UI shows the trace, and serves the trace until it was fetched once.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(super) fn serve(self, file: &Path, focus: Option<(u64, u64)>, as_json: bool) -> Result<(), Failure> {
        let path = path_of(file);
        let address = format!(
            "{UI}/#!/?url=http://127.0.0.1:{}{path}{}{}",
            self.port,
            pinned(),
            visible(focus)
        );
        let line = match as_json {
            true => terminal::json_line(&json!({ "open": address })),
            false => format!("open {address} (ends when the page has read the trace, or with Ctrl-C)\n"),
        };
        terminal::stderr().write_all(line.as_bytes()).ok();
        let fetched = CancellationToken::new();
        let server = self.server.with_routes(TraceRoutes {
            path,
            file: file.to_owned(),
            fetched: fetched.clone(),
        });
        runtime::run_on(1, |runtime| {
            runtime.block_on(server.run(fetched));
            Ok(())
        })
    }
}

impl Routes for TraceRoutes {
    fn has(&self, path: &str) -> bool {
        path == self.path
    }

    /// A browser asks by OPTIONS whether a page of another origin may read an address of this machine.
    fn methods(&self, _path: &str) -> &'static str {
        "GET, HEAD, OPTIONS"
    }

    fn answer(&self, request: &Request<()>) -> Response<ResponseBody> {
        let opened = File::open(&self.file).and_then(|file| Ok((file.metadata()?.len(), file)));
        let mut answer = match opened {
            _ if *request.method() == Method::OPTIONS => plain(StatusCode::NO_CONTENT, ""),
            Ok((length, file)) => {
                let mut answer = Response::new(ResponseBody::pieces(TracePieces {
                    rest: file.take(length),
                    fetched: self.fetched.clone(),
                }));
                answer.headers_mut().insert(CONTENT_LENGTH, length.into());
                answer
            }
            Err(error) => {
                let text = format!("cannot read {}: {error}\n", self.file.display());
                plain(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        };
        for (name, value) in [
            ("access-control-allow-origin", UI),
            ("access-control-allow-private-network", "true"),
            ("content-type", "application/octet-stream"),
            ("vary", "Origin"),
            ("cache-control", "no-cache"),
        ] {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    }
}

impl Iterator for TracePieces {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        let mut piece = Vec::new();
        let read = self.rest.by_ref().take(PIECE_BYTES).read_to_end(&mut piece);
        // The server stops after the responses in progress.
        if self.rest.limit() == 0 {
            self.fetched.cancel();
        }
        match read {
            Ok(0) => None,
            Ok(_) => Some(Ok(piece.into())),
            Err(error) => Some(Err(error)),
        }
    }
}

/// Returns the parameter that pins the most important rows: the state of the training, its loss, steps and errors.
///
/// `startupCommands` is a list of commands that the UI keeps stable for automation.
fn pinned() -> String {
    let names = [
        metric::TRAIN_PHASE.name,
        metric::TRAIN_LOSS.name,
        "steps",
        "errors",
    ];
    let names: Vec<String> = names.iter().map(|name| name.replace('.', "\\.")).collect();
    let commands = json!([{
        "id": "dev.perfetto.PinTracksByRegex",
        "args": [format!("^({})$", names.join("|"))],
    }]);
    let commands = commands.to_string();
    format!(
        "&startupCommands={}",
        percent_encoding::utf8_percent_encode(&commands, NON_ALPHANUMERIC)
    )
}

/// Returns the parameters of the initial time range of the UI: a span, with half of its duration on both sides.
fn visible(focus: Option<(u64, u64)>) -> String {
    focus.map_or_else(String::new, |(begin, end)| {
        let margin = ((end - begin) / 2).max(MIN_MARGIN_NANOS);
        let (start, end) = (begin.saturating_sub(margin), end.saturating_add(margin));
        format!("&visStart={start}&visEnd={end}")
    })
}

/// Returns the path of the URL: the name of the file if it needs no escaping in a URL.
fn path_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.bytes().all(is_plain) {
        format!("/{name}")
    } else {
        "/trace.pftrace".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewer_url_pins_tracks_and_zooms_to_a_span() {
        assert_eq!(
            visible(Some((1_000_000, 3_000_000))),
            "&visStart=0&visEnd=4000000"
        );
        assert_eq!(visible(Some((5_000, 5_000))), "&visStart=4000&visEnd=6000");
        assert_eq!(visible(None), "");
        let commands = pinned();
        let commands = commands
            .strip_prefix("&startupCommands=")
            .expect("it is a parameter");
        let commands = percent_encoding::percent_decode_str(commands).decode_utf8_lossy();
        let commands: serde_json::Value = serde_json::from_str(&commands).expect("it is JSON");
        assert_eq!(
            commands,
            json!([{"id": "dev.perfetto.PinTracksByRegex", "args": [r"^(train\.phase|train\.loss|steps|errors)$"]}])
        );
    }

    #[test]
    fn url_path_contains_only_file_names_without_escapes() {
        assert_eq!(path_of(Path::new("/tmp/run-1.pftrace.gz")), "/run-1.pftrace.gz");
        assert_eq!(path_of(Path::new("my run.pftrace")), "/trace.pftrace");
    }
}
