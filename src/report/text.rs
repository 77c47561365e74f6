//! A report for a terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use crate::report::document::{Block, Document, Section, Table};
use crate::report::printable;

/// Fits a terminal, an issue and a mail.
pub(super) const MAX_WIDTH: usize = 100;

/// Words of prose up to here are not broken; longer ones are no words of people.
const LONGEST_WORD: usize = 18;

/// What stands before the row that matters.
const MARK: &str = "> ";

pub(super) fn write(document: &Document) -> String {
    let mut out = String::new();
    paragraph(&mut out, &document.title);
    out.push('\n');
    for warning in &document.warnings {
        let text = format!("{}: {}", warning.label.to_uppercase(), warning.text);
        paragraph(&mut out, &text);
    }
    if !document.warnings.is_empty() {
        out.push('\n');
    }
    let answer: Vec<(String, String)> = document
        .answer
        .iter()
        .map(|(label, cell)| (label.clone(), cell.text.clone()))
        .collect();
    facts(&mut out, &answer);
    for section in &document.sections {
        write_section(&mut out, section);
    }
    // Tables pad their last column; nobody needs blanks at the end of a line.
    let mut text = out
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n");
    text.push('\n');
    text
}

fn write_section(out: &mut String, section: &Section) {
    let title = printable::line(&section.title);
    out.push_str(&format!(
        "\n{title}\n{}\n",
        "-".repeat(title.chars().count())
    ));
    for (at, block) in section.blocks.iter().enumerate() {
        let after_table = at > 0 && matches!(section.blocks[at - 1], Block::Table(_));
        match block {
            Block::Paragraph(text) => {
                out.push_str(if after_table { "\n" } else { "" });
                paragraph(out, text);
            }
            Block::Heading(text) => {
                out.push('\n');
                paragraph(out, &format!("== {text}"));
            }
            Block::List(items) => {
                for item in items {
                    paragraph(out, &format!("- {item}"));
                }
            }
            Block::Facts(rows) => facts(out, rows),
            Block::Table(table) => write_table(out, table),
            Block::Command(line) => out.push_str(&format!("    {}\n", printable::line(line))),
            Block::Figure(_) => {}
        }
    }
}

fn plain() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    // A constant below 100 fits the type.
    table.set_width(MAX_WIDTH as u16);
    table
}

/// Wrapped by the same rules as tables.
fn paragraph(out: &mut String, text: &str) {
    let mut table = plain();
    table.add_row([printable::line(text)]);
    no_padding(&mut table);
    out.push_str(&table.to_string());
    out.push('\n');
}

fn no_padding(table: &mut comfy_table::Table) {
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 0));
    }
}

fn facts(out: &mut String, rows: &[(String, String)]) {
    let mut table = plain();
    for (label, value) in rows {
        table.add_row([printable::line(label), printable::line(value)]);
    }
    no_padding(&mut table);
    if let Some(column) = table.column_mut(0) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    out.push_str(&table.to_string());
    out.push('\n');
}

fn write_table(out: &mut String, table: &Table) {
    out.push('\n');
    paragraph(out, &format!("{}:", table.caption));
    if table.rows.is_empty() {
        out.push_str("  none\n");
        return;
    }
    let text = arranged(table, true);
    let fits = text
        .lines()
        .all(|line| line.trim_end().chars().count() <= MAX_WIDTH);
    // Columns that may not be wrapped can be too wide together; then a broken number is the lesser evil.
    let text = if fits { text } else { arranged(table, false) };
    out.push_str(&text);
    out.push('\n');
}

fn arranged(table: &Table, keep_whole: bool) -> String {
    let marked = table.rows.iter().any(|row| row.marked);
    // A first column without a heading carries the mark itself.
    let mark = marked && !table.columns[0].heading.is_empty();
    let mut shown = plain();
    shown.set_header(
        table
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| prefixed(&column.heading.to_uppercase(), mark && at == 0, false)),
    );
    for row in &table.rows {
        shown.add_row(
            row.cells.iter().enumerate().map(|(at, cell)| {
                prefixed(&printable::line(&cell.text), mark && at == 0, row.marked)
            }),
        );
    }
    for (at, column) in table.columns.iter().enumerate() {
        let Some(place) = shown.column_mut(at) else {
            continue;
        };
        if column.numeric {
            place.set_cell_alignment(CellAlignment::Right);
        }
        if keep_whole {
            let width = least_width(table, at) + if mark && at == 0 { MARK.len() } else { 0 };
            // Both ends are padded by a blank.
            let width = Width::Fixed(u16::try_from(width + 2).unwrap_or(u16::MAX));
            place.set_constraint(ColumnConstraint::LowerBoundary(width));
        }
    }
    shown.to_string()
}

/// What a column needs: its longest word, and all of its longest cell where that may not be wrapped.
fn least_width(table: &Table, at: usize) -> usize {
    let column = &table.columns[at];
    let word = |text: &str| {
        text.split_whitespace()
            .map(|word| word.chars().count())
            .max()
            .unwrap_or(0)
    };
    let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
    let widest = cells
        .map(|cell| match column.whole {
            true => cell.text.chars().count(),
            false => word(&cell.text).min(LONGEST_WORD),
        })
        .max();
    widest.unwrap_or(0).max(word(&column.heading))
}

fn prefixed(text: &str, has_marks: bool, marked: bool) -> String {
    match (has_marks, marked) {
        (false, _) => text.to_owned(),
        (true, true) => format!("{MARK}{text}"),
        (true, false) => format!("  {text}"),
    }
}
