//! Analysis of records, published studies and generated scans.

#![allow(clippy::unwrap_used, clippy::panic)]

mod bound;
mod common;
mod equal_work;
mod forecast;
mod history;
mod sawtooth;
mod study_1;
mod sweep_and_compare;
mod swept;
