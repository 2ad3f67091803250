//! Terminal output of `loadline run`: the line of each test, and the page of key figures.

mod line;
mod page;

pub use line::{done_line, test_line};
pub use page::end_page;
