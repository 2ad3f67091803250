//! A table as columns: the heading of each beside what it holds of a row. Every format follows from that.

use loadline_model::format::ABSENT;
use minijinja::Value;

use crate::doc::{Cell, Head, Row, Table};
use crate::templates::{asked, lacking, parts};
use crate::words::without_numbers;

/// Stands behind the first of texts that differ only in numbers.
pub(crate) const SIMILAR: &str = " (the first of these; the others are similar)";

/// A table that is being made: of its rows, with the columns so far.
pub(crate) struct TableSpec<R> {
    rows: Vec<R>,
    table: Table,
    /// Leading columns that are shown in the first of several rows with the same texts in them.
    keys: usize,
    /// The heading above each row; a row has it if it differs from that of the row before.
    titles: Vec<String>,
    /// Whether footnotes that differ only in figures, and in what is in brackets, are one.
    is_brief: bool,
}

impl<R: Copy> TableSpec<R> {
    pub(crate) fn new(class: &'static str, rows: impl IntoIterator<Item = R>) -> TableSpec<R> {
        let rows: Vec<R> = rows.into_iter().collect();
        let table = Table { class, rows: vec![Row::default(); rows.len()], ..Table::default() };
        TableSpec { rows, table, keys: 0, titles: Vec::new(), is_brief: false }
    }

    pub(crate) fn column<C: Into<Cell>>(mut self, head: Head, cell: impl Fn(R) -> C) -> Self {
        self.table.head.push(head);
        self.rows.iter().zip(&mut self.table.rows).for_each(|(of, row)| row.cells.push(cell(*of).into()));
        self
    }

    pub(crate) fn text<C: Into<Cell>>(self, title: &str, cell: impl Fn(R) -> C) -> Self {
        self.column(Head::text(title), cell)
    }

    pub(crate) fn number<C: Into<Cell>>(self, title: &str, unit: &str, cell: impl Fn(R) -> C) -> Self {
        self.column(Head::number(title, unit), cell)
    }

    /// The columns of the template `name`, which makes the cells of a row: see `tables.txt`.
    pub(crate) fn columns(mut self, name: &str, context: impl Fn(R) -> Value) -> Self {
        let contexts: Vec<Value> = self.rows.iter().map(|of| context(*of)).collect();
        debug_assert_eq!(lacking(asked(name), &contexts), None, "'{name}' asks for what a row lacks");
        let made: Vec<Vec<[String; 5]>> = contexts.into_iter().map(|of| parts(name, of)).collect();
        // Of a row for which the template failed there is the error alone, which stands in the first cell.
        let whole = made.iter().rev().max_by_key(|row| row.len());
        for (at, [heading, _, tip, ..]) in whole.into_iter().flatten().enumerate() {
            let title = heading.trim_start_matches(['=', '#', '?', '~']);
            let has = |mark: char| heading[..heading.len() - title.len()].contains(mark);
            let (title, unit) = title.strip_suffix(']').and_then(|title| title.rsplit_once('[')).unwrap_or((title, ""));
            let head =
                Head { numeric: has('#'), dispensable: has('~'), ..Head::number(title.trim_end(), unit).tip(tip) };
            self.table.head.push(head);
            for (row, made) in self.table.rows.iter_mut().zip(&made) {
                let [_, text, _, note, subject] = made.get(at).cloned().unwrap_or_default();
                row.cells.push(Cell::from(text).noted((!note.is_empty()).then_some(note), &subject));
            }
            if has('=') {
                self = self.once();
            }
            if has('?') {
                self = self.if_known();
            }
        }
        self
    }

    /// Leaves the last column out if no cell of it says anything.
    pub(crate) fn if_known(self) -> Self {
        let is_silent = |row: &Row| row.cells.last().is_none_or(|cell| cell.text.is_empty() || cell.text == ABSENT);
        let is_known = !self.table.rows.iter().all(is_silent);
        self.when(is_known)
    }

    /// Leaves the last column out unless `is_shown`.
    pub(crate) fn when(mut self, is_shown: bool) -> Self {
        if !is_shown {
            self.table.remove(self.table.head.len() - 1);
            self.keys = self.keys.min(self.table.head.len());
        }
        self
    }

    /// Shows the columns so far in the first of the rows that have the same texts in all of them.
    pub(crate) fn once(mut self) -> Self {
        self.keys = self.table.head.len();
        self
    }

    /// Lets a narrow terminal do without the columns of these titles.
    pub(crate) fn dispensable(mut self, titles: &[&str]) -> Self {
        self.table.head.iter_mut().for_each(|head| head.dispensable |= titles.contains(&head.title.as_str()));
        self
    }

    /// Parts of a row besides its cells.
    pub(crate) fn lines(mut self, line: impl Fn(R) -> Row) -> Self {
        for (of, row) in self.rows.iter().zip(&mut self.table.rows) {
            *row = Row { cells: std::mem::take(&mut row.cells), ..line(*of) };
        }
        self
    }

    pub(crate) fn titles(mut self, title: impl Fn(R) -> String) -> Self {
        self.titles = self.rows.iter().map(|of| title(*of)).collect();
        self
    }

    /// Explains columns that were added: the template `name` has a line for each, `- Latency [ms] := …`.
    pub(crate) fn tips(mut self, name: &str) -> Self {
        for [heading, tip] in parts(name, ()) {
            let heads = self.table.head.iter_mut().filter(|head| head.heading() == heading);
            heads.for_each(|head| head.tip.clone_from(&tip));
        }
        self
    }

    pub(crate) fn brief(self, is_brief: bool) -> Self {
        TableSpec { is_brief, ..self }
    }

    pub(crate) fn caption(mut self, caption: impl Into<String>) -> Self {
        self.table.caption = caption.into();
        self
    }

    pub(crate) fn sub(mut self, sub: impl Into<String>) -> Self {
        self.table.sub = sub.into();
        self
    }

    pub(crate) fn build(self) -> Table {
        let TableSpec { mut table, keys, titles, is_brief, .. } = self;
        table.notes = footnotes(&mut table.rows, is_brief);
        let (mut above, mut before) = (String::new(), Vec::new());
        for (at, mut row) in std::mem::take(&mut table.rows).into_iter().enumerate() {
            if let Some(title) = titles.get(at).filter(|title| **title != above) {
                table.rows.push(Row::title(title));
                above.clone_from(title);
            }
            let key: Vec<String> = row.cells.iter().take(keys).map(|cell| cell.text.clone()).collect();
            if key == before {
                row.cells.iter_mut().take(keys).for_each(|cell| cell.text.clear());
            } else {
                row.first = true;
                before = key;
            }
            table.rows.push(row);
        }
        table
    }

    pub(crate) fn if_rows(self) -> Option<Table> {
        (!self.rows.is_empty()).then(|| self.build())
    }
}

/// A footnote: a text with the subjects that it is about.
struct Footnote {
    text: String,
    subjects: Vec<String>,
    /// Whether it stands for others.
    has_others: bool,
}

/// Numbers what is noted of the cells of `rows` in order of appearance: each text once.
fn footnotes(rows: &mut [Row], is_brief: bool) -> Vec<String> {
    let mut all: Vec<Footnote> = Vec::new();
    for cell in rows.iter_mut().flat_map(|row| &mut row.cells) {
        for (text, subject) in std::mem::take(&mut cell.notes) {
            let is_same = |of: &Footnote| of.text == text || is_brief && in_brief(&of.text) == in_brief(&text);
            let at = all.iter().position(is_same).unwrap_or(all.len());
            if at == all.len() {
                all.push(Footnote { text: text.clone(), subjects: Vec::new(), has_others: false });
            }
            let note = &mut all[at];
            note.has_others |= note.text != text;
            if !subject.is_empty() && !note.subjects.contains(&subject) {
                note.subjects.push(subject);
            }
            if !cell.marks.contains(&(at + 1)) {
                cell.marks.push(at + 1);
            }
        }
    }
    let said = |Footnote { text, subjects, has_others }: Footnote| {
        let subjects = if subjects.is_empty() { String::new() } else { subjects.join(", ") + ": " };
        let others = if has_others { SIMILAR } else { "" };
        format!("{subjects}{text}{others}")
    };
    all.into_iter().map(said).collect()
}

/// `text` without its figures, and without what is in brackets.
fn in_brief(text: &str) -> String {
    let outside = text.split('(').map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    without_numbers(&outside.collect::<String>())
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    #[test]
    fn an_item_without_a_heading_is_the_first_cell_of_its_row() {
        // No template of a table fails in tests: this one has items that are one text, as an error is.
        let row = |caveats: usize| context! { caveats, single => 0, refused => 0 };
        let table = TableSpec::new("", [0, 2]).columns("answer-factors", row).build();
        let texts: Vec<&str> = table.rows.iter().map(|row| row.cells[0].text.as_str()).collect();
        assert!(table.head[0].title.is_empty() && texts[0].is_empty(), "{table:?}");
        assert!(texts[1].starts_with("2 factors"), "{table:?}");
    }
}
