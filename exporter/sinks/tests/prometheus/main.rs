//! The page over HTTP: what clients of every kind get, and what none of them can do to the server.

mod bridge;
mod clients;
mod http;
mod site;
