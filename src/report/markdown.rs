//! A report as Markdown, with GitHub's tables. Text of people and agents keeps its characters and loses its powers.

use crate::report::document::{Block, Document, Section, Table, Tone};
use crate::report::printable;

pub(super) fn write(document: &Document) -> String {
    let mut out = format!("# {}\n", escape(&document.title));
    for warning in &document.warnings {
        out.push_str(&format!(
            "\n> **{}.** {}\n",
            warning.label,
            escape(&warning.text)
        ));
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (label, cell) in &document.answer {
        out.push_str(&format!(
            "| **{}** | {} |\n",
            escape(label),
            escape(&cell.text)
        ));
    }
    for section in &document.sections {
        write_section(&mut out, section);
    }
    out
}

fn write_section(out: &mut String, section: &Section) {
    out.push_str(&format!("\n## {}\n", section.title));
    for block in &section.blocks {
        match block {
            Block::Paragraph(text) => out.push_str(&format!("\n{}\n", escape(text))),
            Block::Heading(text) => out.push_str(&format!("\n### {}\n", escape(text))),
            Block::List(items) => {
                out.push('\n');
                for item in items {
                    out.push_str(&format!("- {}\n", escape(item)));
                }
            }
            Block::Facts(rows) => {
                out.push('\n');
                for (label, value) in rows {
                    out.push_str(&format!("- **{}:** {}\n", escape(label), escape(value)));
                }
            }
            Block::Table(table) => write_table(out, table),
            Block::Command(line) => out.push_str(&format!("\n{}\n", code_block(line))),
            Block::Figure(_) => {}
        }
    }
}

fn write_table(out: &mut String, table: &Table) {
    out.push_str(&format!("\n**{}**\n", escape(&table.caption)));
    if table.rows.is_empty() {
        out.push_str("\nnone\n");
        return;
    }
    out.push_str("\n|");
    for column in &table.columns {
        out.push_str(&format!(" {} |", escape(&column.heading)));
    }
    out.push_str("\n|");
    for column in &table.columns {
        out.push_str(if column.numeric { "---:|" } else { "---|" });
    }
    out.push('\n');
    for row in &table.rows {
        out.push('|');
        for cell in &row.cells {
            let text = escape(&cell.text);
            // A bold verdict or row is what the eye looks for.
            let bold = (row.marked || cell.tone == Tone::Bad) && !text.is_empty();
            out.push_str(&match bold {
                true => format!(" **{text}** |"),
                false => format!(" {text} |"),
            });
        }
        out.push('\n');
    }
}

/// An indented block: nothing in the text can end it.
fn code_block(text: &str) -> String {
    format!("    {}", printable::line(text))
}

/// On one line, with everything that Markdown or HTML would act on made literal.
pub(super) fn escape(text: &str) -> String {
    let line = printable::line(text);
    let chars: Vec<char> = line.chars().collect();
    let mut safe = String::with_capacity(line.len());
    for (at, c) in chars.iter().enumerate() {
        match c {
            '\\' | '|' | '`' | '*' | '[' | ']' | '~' => {
                safe.push('\\');
                safe.push(*c);
            }
            // Inside a word an underscore is one; escaped it would only be ugly in the source.
            '_' if !inside_word(&chars, at) => safe.push_str("\\_"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            _ => safe.push(*c),
        }
    }
    literal_start(safe)
}

fn inside_word(chars: &[char], at: usize) -> bool {
    let word = |index: Option<usize>| {
        index
            .and_then(|index| chars.get(index))
            .is_some_and(|c| c.is_alphanumeric())
    };
    word(at.checked_sub(1)) && word(Some(at + 1))
}

/// A line that begins like a heading or a list is neither.
fn literal_start(text: String) -> String {
    let special =
        text.starts_with('#') || ["- ", "+ ", "= "].iter().any(|mark| text.starts_with(mark));
    if special { format!("\\{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_keeps_its_column_and_its_text() {
        for (text, expected) in [
            ("a|b", "a\\|b"),
            ("a\\|b", "a\\\\\\|b"),
            ("one\r\ntwo", "one\\\\r\\\\ntwo"),
            ("```", "\\`\\`\\`"),
            ("<script>", "&lt;script&gt;"),
            ("[x](javascript:x)", "\\[x\\](javascript:x)"),
            ("secret_missing _x_", "secret_missing \\_x\\_"),
            ("# no heading", "\\# no heading"),
            ("- no list", "\\- no list"),
            ("-0.012", "-0.012"),
        ] {
            assert_eq!(escape(text), expected, "{text:?}");
        }
    }
}
