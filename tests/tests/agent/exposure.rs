//! What the agent exposes to a network: foreign clients authenticate, and those that cannot are refused with a reason.

pub(crate) mod agent;
mod attacks;
mod clients;
mod pages;
mod rust_sdk;
