//! Whole reports: their text, properties of all reports, and the published studies.

#![allow(clippy::unwrap_used, clippy::panic)]

mod arms;
mod clusters;
mod common;
mod kept;
mod page;
mod pages;
mod properties;
mod redact;
mod tables;
