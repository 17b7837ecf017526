//! `convert --open`: serves the trace to the Perfetto UI in the user's browser only.
//!
//! The page at ui.perfetto.dev fetches the file itself, because its address contains the URL of the file. Its content
//! security policy allows it to fetch from port 9001 of 127.0.0.1
//! (<https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui>).

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    time::Duration,
};

use percent_encoding::NON_ALPHANUMERIC;
use pulsetrain_semconv::metric;
use serde_json::json;

use crate::failure::Failure;

/// The origin that may read the file.
const UI: &str = "https://ui.perfetto.dev";

/// The limit on the size of a request head in bytes.
const HEAD_BYTES: u64 = 16 << 10;

/// The minimum margin that is shown before and after a span.
const MIN_MARGIN_NANOS: u64 = 1_000;

/// The idle timeout of a client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves one file on a port of this machine.
pub(super) struct TraceServer {
    listener: TcpListener,
    port: u16,
}

/// The kind of a request.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    File,
    /// The head of the answer only.
    Head,
    /// A CORS preflight request.
    Preflight,
    NotFound,
}

impl TraceServer {
    /// Binds the port early, so that a conversion is not done in vain.
    ///
    /// # Errors
    /// Returns an error if the port is in use.
    pub(super) fn bind(port: u16) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            Failure::failed(format!(
                "cannot serve the trace on 127.0.0.1:{port}: {error}; end the program that has the port (often another \
                 `convert --open`, or trace_processor), or leave --open out and open the file at {UI}"
            ))
        })?;
        Ok(Self { listener, port })
    }

    /// Prints the address at which the UI shows the trace, and serves the trace until it was fetched once.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(super) fn serve(&self, file: &Path, focus: Option<(u64, u64)>, as_json: bool) -> Result<(), Failure> {
        let path = path_of(file);
        let address = format!(
            "{UI}/#!/?url=http://127.0.0.1:{}{path}{}{}",
            self.port,
            pinned(),
            visible(focus)
        );
        let line = match as_json {
            true => json!({ "open": address }).to_string(),
            false => format!("open {address} (ends when the page has read the trace, or with Ctrl-C)"),
        };
        writeln!(io::stderr().lock(), "{line}").ok();
        for client in self.listener.incoming() {
            // An error of one client must not affect the next one.
            if let Ok(client) = client
                && let Ok(request) = read(&client, &path)
            {
                let mut trace = File::open(file)
                    .map_err(|error| Failure::failed(format!("cannot read {}: {error}", file.display())))?;
                if answer(client, &request, &mut trace).is_ok() && request == Request::File {
                    return Ok(());
                }
            }
        }
        Ok(())
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

/// Reads the head of a request.
fn read(client: &TcpStream, path: &str) -> io::Result<Request> {
    client.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut lines = BufReader::new(client.take(HEAD_BYTES));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    let mut words = first.split(' ');
    Ok(match (words.next(), words.next()) {
        (_, Some(asked)) if asked != path => Request::NotFound,
        (Some("GET"), Some(_)) => Request::File,
        (Some("HEAD"), Some(_)) => Request::Head,
        (Some("OPTIONS"), Some(_)) => Request::Preflight,
        _ => Request::NotFound,
    })
}

/// Answers a request.
fn answer(mut client: TcpStream, request: &Request, trace: &mut File) -> io::Result<()> {
    let (status, length) = match request {
        Request::File | Request::Head => ("200 OK", trace.metadata()?.len()),
        Request::Preflight => ("204 No Content", 0),
        Request::NotFound => ("404 Not Found", 0),
    };
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Type: application/octet-stream\r\n\
         Access-Control-Allow-Origin: {UI}\r\nAccess-Control-Allow-Private-Network: true\r\nVary: Origin\r\n\
         Cache-Control: no-cache\r\nConnection: close\r\n\r\n"
    )?;
    if *request == Request::File {
        io::copy(trace, &mut client)?;
    }
    client.flush()
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
