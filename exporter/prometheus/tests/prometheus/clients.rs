//! Many clients, slow clients, and clients that are connected when the server stops.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::site::Site;

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn thousand_concurrent_scrapes_are_answered_while_points_arrive() {
    let mut site = Site::open(Vec::new()).await;
    site.fill("g", 500, 1.0).await;
    let address = site.address;
    let scrapes: Vec<_> = (0..1000)
        .map(|_| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await?;
                stream.write_all(REQUEST).await?;
                let mut page = String::new();
                stream.read_to_string(&mut page).await?;
                Ok::<_, std::io::Error>(page.lines().filter(|line| line.starts_with("g{")).count())
            })
        })
        .collect();
    for round in 0..50 {
        site.fill("g", 500, f64::from(round)).await;
    }
    for scrape in scrapes {
        assert_eq!(scrape.await.expect("no panic").expect("an answer"), 500);
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_clients_block_neither_points_nor_other_clients_nor_shutdown() {
    let mut site = Site::open(Vec::new()).await;
    // More than the buffers of the sockets.
    site.fill("g", 150_000, 0.123_456_789).await;
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(site.address)
            .await
            .expect("the server listens");
        stream.write_all(REQUEST).await.expect("the server reads");
        stuck.push(stream);
    }
    site.fill("g", 150_000, 2.0).await;
    let page = site.get("/metrics", "").await;
    assert_eq!(
        page.text().lines().filter(|line| line.ends_with("} 2")).count(),
        150_000
    );
    timeout(Duration::from_secs(30), site.stop())
        .await
        .expect("the server ends within its grace");
    drop(stuck);
}

#[tokio::test(flavor = "multi_thread")]
async fn response_in_progress_is_completed_when_the_server_stops() {
    let mut site = Site::open(Vec::new()).await;
    site.fill("g", 100_000, 1.0).await;
    let mut stream = TcpStream::connect(site.address)
        .await
        .expect("the server listens");
    stream.write_all(REQUEST).await.expect("the server reads");
    let mut page = vec![0; 1000];
    stream.read_exact(&mut page).await.expect("the page begins");
    let address = site.address;
    let (_, rest) = tokio::join!(site.stop(), async {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("the page continues");
        rest
    });
    page.extend(rest);
    let page = String::from_utf8_lossy(&page);
    assert_eq!(
        page.lines().filter(|line| line.starts_with("g{")).count(),
        100_000
    );
    assert!(
        TcpStream::connect(address).await.is_err(),
        "nobody listens any more"
    );
}
