//! A report before it has a format: sections of paragraphs, tables and figures.

/// A whole report.
pub(super) struct Document {
    pub(super) title: String,
    /// What a reader must know before any number, each a sentence or two.
    pub(super) warnings: Vec<Warning>,
    /// The answer: decision, verdict, hash.
    pub(super) answer: Vec<(String, Cell)>,
    pub(super) sections: Vec<Section>,
    /// What made it of what.
    pub(super) footer: String,
}

/// Something that limits what may be concluded.
pub(super) struct Warning {
    pub(super) label: &'static str,
    pub(super) text: String,
}

pub(super) struct Section {
    /// Anchor, kebab-case.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
}

pub(super) enum Block {
    Paragraph(String),
    /// A heading below the section's.
    Heading(String),
    List(Vec<String>),
    /// Labels with their values.
    Facts(Vec<(String, String)>),
    Table(Table),
    /// A line to type.
    Command(String),
    /// Drawn in HTML only; a table beside it says the same.
    Figure(Figure),
}

/// Which plot. Comparisons go by their place in the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    Flow,
    Exposure,
    Operating,
    Forest(usize),
    Levels(usize),
    Order,
    Dose,
}

pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Column {
    pub(super) heading: String,
    /// Numbers stand on the right.
    pub(super) numeric: bool,
    /// Never wrapped: a number that is broken over two lines is misread.
    pub(super) whole: bool,
}

pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    /// The row that matters, such as the one that the data landed in.
    pub(super) marked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// How a cell is coloured where there is colour; the text says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
    Caution,
    /// Hashes and expressions.
    Code,
}

impl Cell {
    pub(super) fn with(text: impl Into<String>, tone: Tone) -> Cell {
        Cell {
            text: text.into(),
            tone,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::with(text, Tone::Plain)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::with(text, Tone::Plain)
    }
}

impl Table {
    /// `columns` are headings; a leading `>` puts the column on the right, a leading `<` keeps it whole on the left.
    pub(super) fn new(caption: impl Into<String>, columns: &[&str]) -> Table {
        let column = |heading: &&str| {
            let name = heading.trim_start_matches(['>', '<']);
            Column {
                heading: name.to_owned(),
                numeric: heading.starts_with('>'),
                whole: heading.starts_with(['>', '<']),
            }
        };
        Table {
            caption: caption.into(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row {
            cells,
            marked: false,
        });
    }
}
