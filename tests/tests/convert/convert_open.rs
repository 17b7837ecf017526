//! `convert --open`: the trace, and nothing else, is served to the Perfetto UI once.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use pulsetrain_tests::{Finished, Folder, Process, command, corpus, free_port, wait_until};

/// Sends a request, and returns the head, in lower case, and the body of the response.
fn ask(port: u16, request: &str) -> Option<(String, Vec<u8>)> {
    ask_host(port, request, "127.0.0.1")
}

/// Sends a request with this host.
fn ask_host(port: u16, request: &str, host: &str) -> Option<(String, Vec<u8>)> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(
        server,
        "{request} HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: https://ui.perfetto.dev\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let body = answer.split_off(head + 4);
    let head = String::from_utf8(answer).expect("a head is text");
    Some((head.to_ascii_lowercase(), body))
}

#[test]
fn open_serves_the_trace_to_the_viewer_and_exits() {
    let folder = Folder::new();
    let (trace, port) = (folder.path("run.pftrace"), free_port());
    let mut convert = command(["convert", "--open", "--open-port", &port.to_string(), "-o"]);
    let convert = Process::start("convert", convert.args([&trace, &corpus("perfetto/rich.json")]));
    wait_until("the trace is served", || {
        ask(port, "HEAD /run.pftrace")
            .is_some_and(|(head, body)| head.starts_with("http/1.1 200") && body.is_empty())
    });
    let expected = fs::read(&trace).expect("the trace is written");
    // A client that asks nothing does not delay the others.
    let _silent = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    for (other, host, status) in [
        ("GET /", "127.0.0.1", 404),
        ("GET /etc/passwd", "127.0.0.1", 404),
        ("POST /run.pftrace", "127.0.0.1", 405),
        ("GET /run.pftrace", "evil.example", 403),
        ("GET /run.pftrace", "127.0.0.1.evil.example", 403),
    ] {
        let (head, body) = ask_host(port, other, host).expect("there is an answer");
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{other}: {head}");
        assert!(body.len() < 200, "{other}: {} bytes", body.len());
    }
    let (head, _) = ask(port, "OPTIONS /run.pftrace").expect("there is an answer");
    assert!(
        head.contains("access-control-allow-private-network: true\r\n"),
        "{head}"
    );
    let (head, body) = ask(port, "GET /run.pftrace").expect("there is an answer");
    for line in [
        "http/1.1 200 ok\r\n",
        "access-control-allow-origin: https://ui.perfetto.dev\r\n",
        &format!("content-length: {}\r\n", expected.len()),
    ] {
        assert!(head.contains(line), "{head}");
    }
    assert!(body == expected, "{} bytes of {}", body.len(), expected.len());
    let stderr = convert.end_well();
    let address =
        format!("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/run.pftrace&startupCommands=");
    assert!(stderr.contains(&address), "{stderr}");
    // The failed step, from 1700000000000000001 to 1700000000000000101, with a margin of a microsecond.
    let visible = "&visStart=1699999999999999001&visEnd=1700000000000001101 ";
    assert!(stderr.contains(visible), "{stderr}");
}

#[test]
fn open_with_a_used_port_or_a_non_trace_output_fails_before_converting() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = taken.local_addr().expect("it has an address").port().to_string();
    for (name, code, words) in [
        ("run.pftrace", 1, "end the program that has the port"),
        ("run.jsonl", 2, "--open is for Perfetto traces only"),
    ] {
        let out = folder.path(name);
        let mut convert = command(["convert", "--open", "--open-port", &port, "-o"]);
        convert.args([&out, &corpus("perfetto/rich.json")]);
        Finished::run(&mut convert)
            .expect_code(code)
            .expect_words(&[words]);
        assert!(!out.exists());
    }
}
