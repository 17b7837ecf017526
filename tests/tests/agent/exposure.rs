//! What the agent exposes to a network: clients that nobody here wrote prove who they are, and those that cannot are told so.

mod agent;
mod attacks;
mod clients;
mod pages;
mod rust_sdk;
