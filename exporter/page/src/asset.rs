//! The page: one HTML file with its style and scripts inside.

use std::{io::Write, sync::LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

const HTML: &str = include_str!("asset/page.html");
const STYLE: &str = include_str!("asset/page.css");

/// The scripts, in the order of their execution.
const SCRIPTS: [&str; 6] = [
    include_str!("asset/format.js"),
    include_str!("asset/store.js"),
    include_str!("asset/chart.js"),
    include_str!("asset/views.js"),
    include_str!("asset/panels.js"),
    include_str!("asset/main.js"),
];

/// The page of a server, plain and compressed.
pub(super) static PAGE: LazyLock<(Bytes, Bytes)> = LazyLock::new(|| {
    let page = page("");
    (
        page.clone().into(),
        gzip(page.as_bytes(), Compression::new(6)).into(),
    )
});

/// Returns the page as a standalone file with this data inside.
pub(super) fn standalone(data: &str) -> String {
    page(&STANDARD.encode(gzip(data.as_bytes(), Compression::new(6))))
}

fn page(data: &str) -> String {
    // The base64 alphabet contains nothing that ends a script element.
    HTML.replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", &SCRIPTS.concat())
        .replace("<!--DATA-->", data)
}

/// Compresses a response at the fastest level.
pub(super) fn gzip_fast(bytes: &[u8]) -> Vec<u8> {
    gzip(bytes, Compression::fast())
}

/// Compresses bytes. Writing to memory cannot fail.
fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
