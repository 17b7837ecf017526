//! Exchanges with a server that sends fixed bytes.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// Sends a request to a server that reads its head, answers with `response`, and closes the connection or keeps it open.
async fn exchange(
    response: &'static str,
    is_closed: bool,
    limit: usize,
) -> Result<Response<Bytes>, RequestError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let config = ClientConfig {
        version: HttpVersion::Http1,
        tls: ClientTls::default(),
        credentials: None,
        proxy: None,
        timeout: Some(Duration::from_millis(200)),
        max_response_bytes: limit,
        user_agent: "test/1",
    };
    let client = Client::new(&uri, config).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(response.as_bytes()).await.unwrap();
        let head = String::from_utf8(head).unwrap();
        assert!(head.contains("user-agent: test/1\r\n"), "{head}");
        (!is_closed).then_some(stream)
    });
    let mut request = Request::new(Full::default());
    *request.uri_mut() = uri;
    let outcome = client.exchange(request).await;
    drop(server.await.unwrap());
    outcome
}

#[tokio::test]
async fn response_over_the_limit_is_rejected() {
    let nine = "HTTP/1.1 503 Busy\r\ncontent-length: 9\r\n\r\n123456789";
    let answer = exchange(nine, false, 9).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.body()[..]),
        (503, &b"123456789"[..])
    );
    let error = exchange(nine, false, 8).await.unwrap_err();
    assert!(matches!(error, RequestError::TooLarge { limit: 8 }), "{error:?}");
    assert_eq!(error.to_string(), "the answer is longer than 8 bytes");
}

#[tokio::test]
async fn missing_late_and_truncated_responses_are_distinguished() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234";
    let late = exchange(half, false, 9).await.unwrap_err();
    assert!(matches!(late, RequestError::Timeout { .. }), "{late:?}");
    let truncated = exchange(half, true, 9).await.unwrap_err();
    assert!(matches!(truncated, RequestError::Truncated(_)), "{truncated:?}");
    let none = exchange("", true, 9).await.unwrap_err();
    assert!(matches!(none, RequestError::Unreachable(_)), "{none:?}");
}
