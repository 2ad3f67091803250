//! A table as columns: the heading of each beside what it holds of a row. Every format follows from that.

use std::rc::Rc;

use loadline_model::format::ABSENT;

use crate::doc::{Cell, Head, Notes, Row, Table};
use crate::templates::facts;

/// Value made of the row of this number.
type Of<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Always,
    /// If a cell of it says anything.
    IfAny,
    /// In the first of several rows with the same text.
    Once,
}

struct Column<'a> {
    head: Head,
    cell: Of<'a, Cell>,
    shown: Shown,
}

/// Columns and rows of a table that is to be made. What does not depend on the type of the rows is [`Made`]: it is compiled once, not for
/// each of two dozen types.
pub(crate) struct TableSpec<'a, R> {
    rows: Rc<[R]>,
    made: Made<'a>,
}

struct Made<'a> {
    table: Table,
    rows: usize,
    columns: Vec<Column<'a>>,
    /// The row without its cells.
    line: Of<'a, Row>,
    /// The heading above rows; a row has it if it differs from that of the row before.
    title: Of<'a, String>,
    notes: Option<&'a Notes>,
}

impl<'a, R: Copy + 'a> TableSpec<'a, R> {
    /// A table of `rows` without columns.
    pub(crate) fn new(class: &'static str, rows: impl IntoIterator<Item = R>) -> TableSpec<'a, R> {
        let rows: Rc<[R]> = rows.into_iter().collect();
        let made = Made {
            table: Table { class, ..Table::default() },
            rows: rows.len(),
            columns: Vec::new(),
            line: Box::new(|_| Row::default()),
            title: Box::new(|_| String::new()),
            notes: None,
        };
        TableSpec { rows, made }
    }

    /// `of` by the number of the row.
    fn numbered<T>(&self, of: impl Fn(R) -> T + 'a) -> Of<'a, T> {
        let rows = Rc::clone(&self.rows);
        Box::new(move |row| of(rows[row]))
    }

    pub(crate) fn column<C: Into<Cell>>(mut self, head: Head, cell: impl Fn(R) -> C + 'a) -> Self {
        let cell: Of<'a, Cell> = self.numbered(move |row| cell(row).into());
        self.made.columns.push(Column { head, cell, shown: Shown::Always });
        self
    }

    pub(crate) fn text<C: Into<Cell>>(self, title: &str, cell: impl Fn(R) -> C + 'a) -> Self {
        self.column(Head::text(title), cell)
    }

    pub(crate) fn number<C: Into<Cell>>(self, title: &str, unit: &str, cell: impl Fn(R) -> C + 'a) -> Self {
        self.column(Head::number(title, unit), cell)
    }

    fn change(mut self, change: impl FnOnce(&mut Column<'a>)) -> Self {
        self.made.columns.last_mut().map(change);
        self
    }

    /// Lets a narrow terminal do without the last column.
    pub(crate) fn dispensable(self) -> Self {
        self.change(|column| column.head.dispensable = true)
    }

    /// Leaves the last column out unless `is_shown`.
    pub(crate) fn when(mut self, is_shown: bool) -> Self {
        self.made.columns.truncate(self.made.columns.len() - usize::from(!is_shown));
        self
    }

    /// Leaves the last column out if no cell of it says anything.
    pub(crate) fn if_any(self) -> Self {
        self.change(|column| column.shown = Shown::IfAny)
    }

    /// Shows the last column in the first of the rows that have the same text in all such columns.
    pub(crate) fn once(self) -> Self {
        self.change(|column| column.shown = Shown::Once)
    }

    /// Parts of a row besides its cells.
    pub(crate) fn lines(mut self, line: impl Fn(R) -> Row + 'a) -> Self {
        self.made.line = self.numbered(line);
        self
    }

    pub(crate) fn titles(mut self, title: impl Fn(R) -> String + 'a) -> Self {
        self.made.title = self.numbered(title);
        self
    }

    /// Explains columns that were added: the template `name` has a line for each, `- Latency [ms] := …`.
    pub(crate) fn tips(mut self, name: &str) -> Self {
        self.made.explain(facts(name, ()));
        self
    }

    /// The footnotes that cells mark.
    pub(crate) fn notes(mut self, notes: &'a Notes) -> Self {
        self.made.notes = Some(notes);
        self
    }

    pub(crate) fn caption(mut self, caption: impl Into<String>) -> Self {
        self.made.table.caption = caption.into();
        self
    }

    pub(crate) fn sub(mut self, sub: impl Into<String>) -> Self {
        self.made.table.sub = sub.into();
        self
    }

    pub(crate) fn build(self) -> Table {
        self.made.build()
    }

    /// The table; `None` without rows.
    pub(crate) fn if_rows(self) -> Option<Table> {
        (!self.rows.is_empty()).then(|| self.build())
    }
}

impl Made<'_> {
    fn explain(&mut self, tips: Vec<(String, String)>) {
        for (heading, tip) in tips {
            let heads = self.columns.iter_mut().map(|column| &mut column.head);
            heads.filter(|head| head.heading() == heading).for_each(|head| head.tip.clone_from(&tip));
        }
    }

    fn build(self) -> Table {
        let Made { mut table, rows, columns, line, title, notes } = self;
        let once = || columns.iter().enumerate().filter(|(_, c)| c.shown == Shown::Once).map(|(i, _)| i);
        let (mut above, mut before) = (String::new(), Vec::new());
        for row in 0..rows {
            let heading = title(row);
            if heading != above {
                table.rows.push(Row::title(&heading));
                above = heading;
            }
            let mut made = Row { cells: columns.iter().map(|column| (column.cell)(row)).collect(), ..line(row) };
            let here: Vec<String> = once().map(|i| made.cells[i].text.clone()).collect();
            if here == before {
                once().for_each(|i| made.cells[i].text.clear());
            } else {
                made.first = true;
                before = here;
            }
            table.rows.push(made);
        }
        let optional: Vec<bool> = columns.iter().map(|column| column.shown == Shown::IfAny).collect();
        table.head = columns.into_iter().map(|column| column.head).collect();
        let silent = |text: &str| text.is_empty() || text == ABSENT;
        for index in (0..table.head.len()).rev().filter(|i| optional[*i]) {
            if table.rows.iter().all(|r| r.cells.get(index).is_none_or(|cell| silent(&cell.text))) {
                table.remove(index);
            }
        }
        table.notes = notes.map(|notes| notes.finish(&mut table.rows)).unwrap_or_default();
        table
    }
}
