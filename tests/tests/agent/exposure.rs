//! The network interfaces of the agent: clients with credentials are accepted, and others are rejected with a reason.

pub(crate) mod agent;
mod attacks;
mod clients;
mod pages;
mod rust_sdk;
