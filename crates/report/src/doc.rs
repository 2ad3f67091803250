//! A report as a document: what HTML, Markdown and text are written from. All text in here is
//! plain and unescaped; the writers escape it.

/// A whole report.
#[derive(Debug)]
pub(crate) struct Document {
    /// Platform names, joined.
    pub(crate) title: String,
    /// When and with what it was measured.
    pub(crate) subtitle: String,
    /// «14 tests: 13 valid, 1 invalid».
    pub(crate) verdict: String,
    /// Whether every test holds by itself and the run is complete.
    pub(crate) all_well: bool,
    /// What qualifies the verdict: run cut off, workloads skipped, damaged files.
    pub(crate) remarks: Vec<String>,
    /// The rest.
    pub(crate) sections: Vec<Section>,
}

/// A part of a report with a heading.
#[derive(Debug)]
pub(crate) struct Section {
    /// Anchor.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: String,
    /// Whether the plain-text report has it: a terminal is for figures, not for evidence.
    pub(crate) in_text: bool,
    /// Whether it is about one group of workloads, and begins a page on paper.
    pub(crate) group: bool,
    /// Contents.
    pub(crate) blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug)]
pub(crate) enum Block {
    /// A heading inside the section; `page` asks for a new page on paper.
    Heading { text: String, page: bool },
    /// A paragraph.
    Para { text: String },
    /// A paragraph about charts, which formats without charts leave out.
    Legend { text: String },
    /// A table.
    Table(Table),
    /// Charts side by side; `per_row` of them fit.
    Charts { charts: Vec<Chart>, per_row: u8 },
    /// Text as it is: a command.
    Code { text: String },
    /// Points.
    List { items: Vec<String> },
    /// Contents that are folded away until asked for.
    Details { summary: String, blocks: Vec<Block> },
}

/// A chart, ready to stand in a page.
#[derive(Debug)]
pub(crate) struct Chart {
    /// Escaped SVG.
    pub(crate) svg: String,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// Shown above it; may be empty.
    pub(crate) caption: String,
    /// What follows the caption in lighter type; may be empty.
    pub(crate) sub: String,
    /// `figures` for narrow columns of numbers, `facts` for texts.
    pub(crate) class: &'static str,
    /// Headings.
    pub(crate) head: Vec<Head>,
    /// Rows.
    pub(crate) rows: Vec<Row>,
    /// Footnotes: mark and text.
    pub(crate) notes: Vec<Note>,
}

/// A heading of a table.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// Heading.
    pub(crate) title: String,
    /// Unit; may be empty.
    pub(crate) unit: String,
    /// Whether its cells are numbers.
    pub(crate) numeric: bool,
    /// What it means.
    pub(crate) tip: String,
}

/// A row of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// Cells, one a heading.
    pub(crate) cells: Vec<Cell>,
    /// Its figures do not hold.
    pub(crate) invalid: bool,
    /// First row of a group of rows that belong together.
    pub(crate) first: bool,
    /// What stands under the row, over all its columns; may be empty.
    pub(crate) remark: String,
    /// Not empty: the row has no cells and is the heading of those that follow.
    pub(crate) title: String,
}

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    /// Text.
    pub(crate) text: String,
    /// Mark of the footnote that explains it; may be empty.
    pub(crate) mark: String,
}

/// A footnote.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    /// Its mark.
    pub(crate) mark: String,
    /// Its text.
    pub(crate) text: String,
}

impl Head {
    /// A heading of texts.
    pub(crate) fn text(title: &str) -> Head {
        Head { title: title.to_owned(), unit: String::new(), numeric: false, tip: String::new() }
    }

    /// A heading of numbers.
    pub(crate) fn number(title: &str, unit: &str) -> Head {
        Head { title: title.to_owned(), unit: unit.to_owned(), numeric: true, tip: String::new() }
    }

    /// The heading of a model column.
    pub(crate) fn of(column: &loadline_model::Column) -> Head {
        Head {
            title: column.title.to_owned(),
            unit: column.unit.to_owned(),
            numeric: crate::columns::is_numeric(column),
            tip: column.meaning.to_owned(),
        }
    }

    /// With an explanation.
    pub(crate) fn tip(mut self, tip: &str) -> Head {
        tip.clone_into(&mut self.tip);
        self
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, mark: String::new() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_owned())
    }
}

impl Row {
    /// The heading of the rows that follow.
    pub(crate) fn title(text: &str) -> Row {
        Row { title: text.to_owned(), ..Row::default() }
    }

    /// A plain row.
    pub(crate) fn of(cells: impl IntoIterator<Item = impl Into<Cell>>) -> Row {
        Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() }
    }
}

impl Block {
    /// A heading.
    pub(crate) fn heading(text: impl Into<String>) -> Block {
        Block::Heading { text: text.into(), page: false }
    }

    /// A paragraph.
    pub(crate) fn para(text: impl Into<String>) -> Block {
        Block::Para { text: text.into() }
    }
}

/// Footnotes under construction: each text once, numbered as they come.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    seen: Vec<(String, Vec<String>)>,
}

impl Notes {
    /// Mark of the note that says why `subject` has no figure.
    pub(crate) fn mark(&mut self, reason: &str, subject: &str) -> String {
        let index = self.seen.iter().position(|(text, _)| text == reason).unwrap_or_else(|| {
            self.seen.push((reason.to_owned(), Vec::new()));
            self.seen.len() - 1
        });
        if let Some((_, subjects)) = self.seen.get_mut(index)
            && !subjects.iter().any(|s| s == subject)
        {
            subjects.push(subject.to_owned());
        }
        (index + 1).to_string()
    }

    /// The finished notes that cells of `rows` bear a mark of, numbered anew as they come.
    pub(crate) fn finish_used(self, rows: &mut [Row]) -> Vec<Note> {
        let mut all = self.finish();
        let mut used: Vec<String> = Vec::new();
        for cell in rows.iter_mut().flat_map(|r| &mut r.cells).filter(|c| !c.mark.is_empty()) {
            let renumbered = cell.mark.split(' ').map(|mark| {
                let at = used.iter().position(|u| u == mark).unwrap_or_else(|| {
                    used.push(mark.to_owned());
                    used.len() - 1
                });
                (at + 1).to_string()
            });
            cell.mark = renumbered.collect::<Vec<_>>().join(" ");
        }
        all.retain(|n| used.contains(&n.mark));
        all.sort_by_key(|n| used.iter().position(|u| *u == n.mark));
        all.into_iter().zip(1..).map(|(n, i): (Note, usize)| Note { mark: i.to_string(), ..n }).collect()
    }

    /// The finished notes.
    pub(crate) fn finish(self) -> Vec<Note> {
        let text = |(reason, subjects): (String, Vec<String>)| {
            if subjects.iter().all(String::is_empty) { reason } else { format!("{}: {reason}", subjects.join(", ")) }
        };
        self.seen.into_iter().enumerate().map(|(i, n)| Note { mark: (i + 1).to_string(), text: text(n) }).collect()
    }
}
