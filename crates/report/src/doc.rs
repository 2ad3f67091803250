//! A report as a document, from which HTML, Markdown and text are written. All text is plain; the writers escape it.

use crate::words::without_numbers;

/// A whole report.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Platform names, joined.
    pub(crate) title: String,
    /// Database, time and version of loadline.
    pub(crate) subtitle: String,
    /// `14 tests: 13 valid, 1 invalid.`
    pub(crate) verdict: String,
    /// Whether every test is valid without an option and all runs are complete.
    pub(crate) all_well: bool,
    /// Qualifications of the verdict: incomplete runs, damaged files.
    pub(crate) remarks: Vec<String>,
    /// Customer for whom it was made; may be empty.
    pub(crate) customer: String,
    /// Machine and storage, a line for each platform.
    pub(crate) platforms: Vec<String>,
    /// The sections.
    pub(crate) sections: Vec<Section>,
}

/// A part of a report with a heading.
#[derive(Debug)]
pub(crate) struct Section {
    /// Anchor.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: String,
    /// Whether the plain-text report, which has figures but no evidence, includes it.
    pub(crate) in_text: bool,
    /// Whether it is about one group of workloads; starts a new page in print.
    pub(crate) group: bool,
    /// Contents.
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    /// One that the plain-text report includes, of no group.
    pub(crate) fn of(id: &'static str, title: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { id, title: title.into(), in_text: true, group: false, blocks }
    }
}

/// A piece of a section.
#[derive(Debug)]
pub(crate) enum Block {
    /// A heading inside the section; `page` starts a new page in print.
    Heading { text: String, page: bool },
    /// A paragraph.
    Para { text: String },
    /// A paragraph about charts; left out in formats without charts.
    Legend { text: String },
    /// A table.
    Table(Table),
    /// Charts, `per_row` side by side.
    Charts { charts: Vec<Chart>, per_row: u8 },
    /// Preformatted text: a command.
    Code { text: String },
    /// Notes of the user's in Markdown.
    Notes { markdown: String },
    /// Bullet points.
    List { items: Vec<String> },
    /// Links: text and address.
    Links { items: Vec<(String, String)> },
    /// Folded contents.
    Details { summary: String, blocks: Vec<Block> },
}

/// A finished chart.
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
    /// Shown after the caption in lighter type; may be empty.
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

impl Table {
    /// Without caption and footnotes.
    pub(crate) fn of(
        class: &'static str,
        head: impl IntoIterator<Item = Head>,
        rows: impl IntoIterator<Item = Row>,
    ) -> Table {
        Table { class, head: head.into_iter().collect(), rows: rows.into_iter().collect(), ..Table::default() }
    }
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
    /// Cells, one per heading.
    pub(crate) cells: Vec<Cell>,
    /// Whether its test is invalid.
    pub(crate) invalid: bool,
    /// Whether it is the first of a group of rows.
    pub(crate) first: bool,
    /// Text below the row, across all columns; may be empty.
    pub(crate) remark: String,
    /// If not empty, the row has no cells and is the heading of the rows that follow.
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
    /// A heading of a text column.
    pub(crate) fn text(title: &str) -> Head {
        Head { title: title.to_owned(), unit: String::new(), numeric: false, tip: String::new() }
    }

    /// A heading of a number column.
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

/// Collects footnotes: each text once, numbered in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    seen: Vec<(String, Vec<String>)>,
}

impl Table {
    /// Makes one note of those that differ only in figures, and in what is in brackets.
    pub(crate) fn merge_notes(&mut self) {
        let alike = |text: &str| -> String {
            let outside = text.split('(').map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
            without_numbers(&outside.collect::<String>())
        };
        let mut kept: Vec<(Note, usize)> = Vec::new();
        let mut marks: Vec<(String, String)> = Vec::new();
        for note in std::mem::take(&mut self.notes) {
            let at = kept.iter().position(|(known, _)| alike(&known.text) == alike(&note.text));
            let at = at.unwrap_or(kept.len());
            marks.push((note.mark.clone(), (at + 1).to_string()));
            match kept.get_mut(at) {
                Some((_, more)) => *more += 1,
                None => kept.push((Note { mark: (at + 1).to_string(), ..note }, 0)),
            }
        }
        let said = |(note, more): (Note, usize)| match more {
            0 => note,
            _ => Note { text: format!("{} (the first of these; the others are similar)", note.text), ..note },
        };
        self.notes = kept.into_iter().map(said).collect();
        for cell in self.rows.iter_mut().flat_map(|row| &mut row.cells).filter(|cell| !cell.mark.is_empty()) {
            let new =
                |mark: &str| marks.iter().find(|(old, _)| old == mark).map_or(mark.to_owned(), |(_, new)| new.clone());
            let mut all: Vec<String> = cell.mark.split(' ').map(new).collect();
            all.dedup();
            cell.mark = all.join(" ");
        }
    }
}

impl Notes {
    /// Adds the note `reason` for `subject` and returns its mark.
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

    /// The notes whose marks are in cells of `rows`, renumbered in order of appearance.
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

    /// All notes.
    pub(crate) fn finish(self) -> Vec<Note> {
        let text = |(reason, subjects): (String, Vec<String>)| {
            if subjects.iter().all(String::is_empty) { reason } else { format!("{}: {reason}", subjects.join(", ")) }
        };
        self.seen.into_iter().enumerate().map(|(i, n)| Note { mark: (i + 1).to_string(), text: text(n) }).collect()
    }
}
