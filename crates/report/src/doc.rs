//! A report as a document, from which HTML, Markdown and text are written. All text is plain; the writers escape it.

use loadline_model::format::ABSENT;
use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub(crate) struct Document {
    pub(crate) title: String,
    /// Database, time and version of loadline.
    pub(crate) subtitle: String,
    /// `14 tests: 13 valid, 1 refused.`
    pub(crate) verdict: String,
    pub(crate) standing: Standing,
    /// Qualifications of the verdict: incomplete runs, damaged files, second tries, what the machine can show.
    pub(crate) remarks: Vec<String>,
    pub(crate) customer: String,
    /// Machine and storage, a line for each platform.
    pub(crate) platforms: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

/// Colour of a verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// Every test is valid without an option, and all runs are complete.
    Well,
    /// Nothing is wrong, and something is to be minded, such as disturbed tests.
    Marked,
    #[default]
    Unwell,
}

impl Standing {
    pub(crate) fn new(is_wrong: bool, is_marked: bool) -> Standing {
        match (is_wrong, is_marked) {
            (true, _) => Standing::Unwell,
            (false, true) => Standing::Marked,
            (false, false) => Standing::Well,
        }
    }
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// Whether the plain-text report, which has figures but no evidence, includes it.
    pub(crate) in_text: bool,
    /// Whether it is about one group of workloads; starts a new page in print.
    pub(crate) group: bool,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    /// One that the plain-text report includes, of no group.
    pub(crate) fn new(id: &'static str, title: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { id, title: title.into(), in_text: true, group: false, blocks }
    }

    /// One that the plain-text report leaves out.
    pub(crate) fn evidence(id: &'static str, title: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { in_text: false, ..Section::new(id, title, blocks) }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Block {
    /// A heading inside the section; `page` starts a new page in print.
    Heading {
        text: String,
        page: bool,
    },
    Para {
        text: String,
    },
    /// A paragraph about charts; left out in formats without charts.
    Legend {
        text: String,
    },
    Table(Table),
    /// Charts, `per_row` side by side.
    Charts {
        charts: Vec<Chart>,
        per_row: u8,
    },
    Code {
        text: String,
    },
    /// Notes of the user's in Markdown.
    Notes {
        markdown: String,
    },
    List {
        items: Vec<String>,
    },
    Details {
        summary: String,
        blocks: Vec<Block>,
    },
    /// Blocks side by side, if there is space.
    Beside {
        blocks: Vec<Block>,
    },
    /// Answer for a platform, as large figures, which templates write, and as a sentence.
    Answer {
        label: String,
        figures: Vec<minijinja::Value>,
        sentence: String,
    },
}

/// SVG.
pub(crate) type Chart = String;

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) caption: String,
    /// Shown after the caption in lighter type; may be empty.
    pub(crate) sub: String,
    /// `figures` for narrow columns of numbers, `facts` for texts.
    pub(crate) class: &'static str,
    pub(crate) head: Vec<Head>,
    pub(crate) rows: Vec<Row>,
    /// Footnotes; the mark of each is its number, from 1.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Head {
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) numeric: bool,
    pub(crate) tip: String,
    /// Whether a narrow terminal does without it.
    pub(crate) dispensable: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Whether its test is refused, or it tells of something as bad.
    pub(crate) invalid: bool,
    /// Whether it is the first of a group of rows.
    pub(crate) first: bool,
    /// Text below the row, across all columns; may be empty.
    pub(crate) remark: String,
    /// Address of the page of what the row is about; may be empty.
    pub(crate) link: String,
    /// If not empty, the row has no cells and is the heading of the rows that follow.
    pub(crate) title: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Texts of its footnotes, each with its subject, which may be empty; the finished table has their numbers in `marks`.
    #[serde(skip)]
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) marks: Vec<usize>,
    /// A drawing of it, which only pages have.
    pub(crate) drawn: Option<Chart>,
}

impl Table {
    pub(crate) fn remove(&mut self, index: usize) -> Head {
        self.rows.iter_mut().filter(|r| r.cells.len() > index).for_each(|r| drop(r.cells.remove(index)));
        self.head.remove(index)
    }
}

impl Head {
    pub(crate) fn text(title: &str) -> Head {
        Head { title: title.to_owned(), ..Head::default() }
    }

    pub(crate) fn number(title: &str, unit: &str) -> Head {
        Head { unit: unit.to_owned(), numeric: true, ..Head::text(title) }
    }

    pub(crate) fn for_column(column: &loadline_model::Column) -> Head {
        Head {
            numeric: crate::words::is_numeric(column),
            ..Head::number(column.title, column.unit).tip(column.meaning)
        }
    }

    /// `Latency [ms]`.
    pub(crate) fn heading(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{} [{}]", self.title, self.unit) }
    }

    pub(crate) fn tip(mut self, tip: &str) -> Head {
        tip.clone_into(&mut self.tip);
        self
    }
}

impl Cell {
    pub(crate) fn absent(why: &str, subject: &str) -> Cell {
        Cell::from(ABSENT).noted([why], subject)
    }

    pub(crate) fn noted(mut self, notes: impl IntoIterator<Item = impl Into<String>>, subject: &str) -> Cell {
        self.notes.extend(notes.into_iter().map(|text| (text.into(), subject.to_owned())));
        self
    }
}

macro_rules! cells {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Cell {
            fn from(text: $kind) -> Cell {
                Cell { text: text.to_string(), ..Cell::default() }
            }
        })*
    };
}

cells!(String, &str, &String, u32, usize);

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Cell {
        Cell::from(text.unwrap_or_else(|| ABSENT.to_owned()))
    }
}

impl Row {
    pub(crate) fn title(text: &str) -> Row {
        Row { title: text.to_owned(), ..Row::default() }
    }
}

impl Block {
    pub(crate) fn heading(text: impl Into<String>) -> Block {
        Block::Heading { text: text.into(), page: false }
    }

    pub(crate) fn para(text: impl Into<String>) -> Block {
        Block::Para { text: text.into() }
    }

    pub(crate) fn details(summary: impl Into<String>, blocks: Vec<Block>) -> Block {
        Block::Details { summary: summary.into(), blocks }
    }

    pub(crate) fn table(table: Table) -> Option<Block> {
        (!table.rows.is_empty()).then_some(Block::Table(table))
    }

    pub(crate) fn list(items: impl IntoIterator<Item = String>) -> Option<Block> {
        let items: Vec<String> = items.into_iter().collect();
        (!items.is_empty()).then_some(Block::List { items })
    }

    pub(crate) fn charts(per_row: u8, charts: impl IntoIterator<Item = Chart>) -> Option<Block> {
        let charts: Vec<Chart> = charts.into_iter().collect();
        (!charts.is_empty()).then_some(Block::Charts { charts, per_row })
    }

    /// A chart beside its table, if there are any.
    pub(crate) fn beside(chart: Option<Chart>, tables: impl IntoIterator<Item = Block>) -> Option<Block> {
        let blocks: Vec<Block> = Block::charts(1, chart).into_iter().chain(tables).collect();
        (!blocks.is_empty()).then_some(Block::Beside { blocks })
    }

    /// `block` under a heading; nothing without it.
    pub(crate) fn under(title: &str, block: Option<Block>) -> Vec<Block> {
        block.map_or_else(Vec::new, |block| vec![Block::heading(title), block])
    }

    /// `blocks` with an explanation after them; nothing without any.
    pub(crate) fn explained(mut blocks: Vec<Block>, text: &str) -> Vec<Block> {
        if !blocks.is_empty() {
            blocks.push(Block::para(text));
        }
        blocks
    }
}
