//! The page over HTTP: the responses to clients of every kind, and hostile clients.

mod bridge;
mod clients;
mod http;
mod site;
