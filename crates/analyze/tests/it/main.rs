//! Analysis of records, published studies, generated scans and tables of others.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod audit {
    mod cases;
    mod properties;
}
mod bound;
mod common;
mod forecast;
mod sawtooth;
mod sweeps;
