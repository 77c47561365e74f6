//! A report as one HTML file: style and plots inside, nothing from outside, no scripts.

use crate::report::document::{Block, Cell, Document, Figure, Section, Table, Tone};
use crate::report::markup::{Node, el};

/// Light, dark and print.
const STYLE: &str = include_str!("style.css");

/// A browser that holds to it loads and runs nothing, whatever text came in.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Draws a plot, or nothing where there is nothing to draw.
pub(super) type Draw<'a> = &'a dyn Fn(Figure) -> Option<Node>;

/// `kicker` stands above the title and says what kind of report it is.
pub(super) fn write(document: &Document, kicker: &str, draw: Draw<'_>) -> String {
    let head = el("head").children([
        el("meta").attr("charset", "utf-8"),
        el("meta")
            .attr("http-equiv", "Content-Security-Policy")
            .attr("content", POLICY),
        el("meta")
            .attr("name", "viewport")
            .attr("content", "width=device-width, initial-scale=1"),
        el("meta")
            .attr("name", "color-scheme")
            .attr("content", "light dark"),
        el("title").text(format!("{} - breakage", document.title)),
        el("style").raw(STYLE),
    ]);
    let main = el("main")
        .child(header(document, kicker))
        .child(contents(document))
        .children(
            document
                .sections
                .iter()
                .map(|section| write_section(section, draw)),
        )
        .child(el("footer").child(el("p").text(&document.footer)));
    let mut out = "<!DOCTYPE html>\n".to_owned();
    el("html")
        .attr("lang", "en")
        .child(head)
        .child(el("body").child(main))
        .write(&mut out);
    out.push('\n');
    out
}

fn header(document: &Document, kicker: &str) -> Node {
    let warnings = document.warnings.iter().map(|warning| {
        el("p")
            .class("warning")
            .child(el("strong").text(warning.label))
            .text(" ")
            .text(&warning.text)
    });
    let answer = el("dl")
        .class("answer")
        .children(document.answer.iter().flat_map(|(label, cell)| {
            [
                el("dt").text(label),
                el("dd")
                    .class(tone(cell.tone))
                    .text(typographic(&cell.text)),
            ]
        }));
    el("header")
        .child(el("p").class("kicker").text(kicker))
        .child(el("h1").text(&document.title))
        .children(warnings)
        .child(answer)
}

fn contents(document: &Document) -> Node {
    el("nav")
        .attr("aria-label", "Sections")
        .child(el("ol").children(document.sections.iter().map(|section| {
            el("li").child(
                el("a")
                    .attr("href", format!("#{}", section.id))
                    .text(&section.title),
            )
        })))
}

fn write_section(section: &Section, draw: Draw<'_>) -> Node {
    let heading = format!("{}-title", section.id);
    el("section")
        .attr("id", &section.id)
        .attr("aria-labelledby", &heading)
        .child(el("h2").attr("id", &heading).text(&section.title))
        .children(
            section
                .blocks
                .iter()
                .filter_map(|block| write_block(block, draw)),
        )
}

fn write_block(block: &Block, draw: Draw<'_>) -> Option<Node> {
    Some(match block {
        Block::Paragraph(text) => el("p").text(text),
        Block::Heading(text) => el("h3").text(text),
        Block::List(items) => el("ul").children(items.iter().map(|item| el("li").text(item))),
        Block::Facts(rows) => {
            el("dl")
                .class("facts")
                .children(rows.iter().flat_map(|(label, value)| {
                    [el("dt").text(label), el("dd").text(typographic(value))]
                }))
        }
        Block::Table(table) => write_table(table),
        Block::Command(line) => el("pre").child(el("code").text(line)),
        Block::Figure(figure) => return draw(*figure),
    })
}

/// Wider than a phone it scrolls by itself and not the page.
fn write_table(table: &Table) -> Node {
    let class = |at: usize| match table.columns.get(at) {
        Some(column) if column.numeric => "number",
        Some(column) if column.whole => "whole",
        _ => "words",
    };
    let head = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| heading(&column.heading, class(at)));
    let rows = table.rows.iter().map(|row| {
        let cells = row
            .cells
            .iter()
            .enumerate()
            .map(|(at, cell)| write_cell(cell, class(at)));
        let line = el("tr");
        let line = if row.marked {
            line.class("marked")
        } else {
            line
        };
        line.children(cells)
    });
    let empty = table.rows.is_empty().then(|| {
        el("tr").child(
            el("td")
                .attr("colspan", table.columns.len())
                .class("quiet")
                .text("none"),
        )
    });
    el("div")
        .class("scroll")
        .attr("tabindex", 0)
        .attr("role", "region")
        .attr("aria-label", &table.caption)
        .child(
            el("table")
                .child(el("caption").text(&table.caption))
                .child(el("thead").child(el("tr").children(head)))
                .child(el("tbody").children(rows).children(empty)),
        )
}

fn heading(text: &str, class: &str) -> Node {
    if text.is_empty() {
        // An empty heading cell says nothing to a screen reader.
        return el("td").class(class);
    }
    el("th").attr("scope", "col").class(class).text(text)
}

fn write_cell(cell: &Cell, class: &str) -> Node {
    let node = el("td").class(format!("{class} {}", tone(cell.tone)));
    match cell.tone {
        Tone::Code => node.child(el("code").text(&cell.text)),
        _ if cell.text == ">" => node.child(el("span").class("landed").text("landed")),
        _ => node.text(typographic(&cell.text)),
    }
}

/// A real minus before a number.
fn typographic(text: &str) -> String {
    let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let text = match text.strip_prefix('-') {
        Some(rest) if is_number(rest) => format!("\u{2212}{rest}"),
        _ => text.to_owned(),
    };
    if !text.contains("[-") && !text.contains(", -") {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let digit = chars.peek().is_some_and(char::is_ascii_digit);
        shown.push(if c == '-' && digit && (before == '[' || before == ' ') {
            '\u{2212}'
        } else {
            c
        });
        before = c;
    }
    shown
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Caution => "caution",
        Tone::Code => "code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sign_of_a_number_becomes_a_minus() {
        for (text, expected) in [
            ("-0.012", "\u{2212}0.012"),
            ("[-0.1, +0.2]", "[\u{2212}0.1, +0.2]"),
            ("[-0.3, -0.2]", "[\u{2212}0.3, \u{2212}0.2]"),
            ("secret-missing-key", "secret-missing-key"),
            ("-", "-"),
            ("1.1e-32", "1.1e-32"),
        ] {
            assert_eq!(typographic(text), expected);
        }
    }
}
