//! Elements of HTML and SVG. Everything that becomes text or an attribute goes through here and is escaped, so that no
//! text of an agent ever comes alive.

use std::fmt::Display;

use crate::report::printable;

/// Elements that have no end tag. Written `<br/>`, which both HTML and XML take.
const VOID: &[&str] = &["br", "hr", "meta"];

#[derive(Clone, Debug)]
pub(super) struct Node {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Child>,
}

#[derive(Clone, Debug)]
enum Child {
    Node(Node),
    Text(String),
    /// Of ours, compiled in.
    Raw(&'static str),
}

/// An element.
pub(super) fn el(name: &'static str) -> Node {
    Node {
        name,
        attributes: Vec::new(),
        children: Vec::new(),
    }
}

impl Node {
    pub(super) fn attr(mut self, name: &'static str, value: impl Display) -> Node {
        self.attributes.push((name, value.to_string()));
        self
    }

    pub(super) fn class(self, class: impl Display) -> Node {
        self.attr("class", class)
    }

    /// A coordinate, to a hundredth of a pixel.
    pub(super) fn at(self, name: &'static str, value: f64) -> Node {
        let text = coordinate(value);
        self.attr(name, text)
    }

    pub(super) fn text(mut self, text: impl AsRef<str>) -> Node {
        self.children
            .push(Child::Text(printable::line(text.as_ref())));
        self
    }

    pub(super) fn raw(mut self, text: &'static str) -> Node {
        self.children.push(Child::Raw(text));
        self
    }

    pub(super) fn child(mut self, node: Node) -> Node {
        self.children.push(Child::Node(node));
        self
    }

    pub(super) fn children(mut self, nodes: impl IntoIterator<Item = Node>) -> Node {
        self.children.extend(nodes.into_iter().map(Child::Node));
        self
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape(out, &printable::line(value));
            out.push('"');
        }
        if self.children.is_empty() && VOID.contains(&self.name) {
            out.push_str("/>");
            return;
        }
        out.push('>');
        for child in &self.children {
            match child {
                Child::Node(node) => node.write(out),
                Child::Text(text) => escape(out, text),
                Child::Raw(text) => out.push_str(text),
            }
        }
        out.push_str("</");
        out.push_str(self.name);
        out.push('>');
    }
}

/// At most two decimals, without zeros at the end.
pub(super) fn coordinate(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_stay_text() {
        let mut out = String::new();
        el("td")
            .attr("title", "\" onload='x'")
            .text("<script>&\u{202e}\u{1b}")
            .write(&mut out);
        assert_eq!(
            out,
            "<td title=\"&quot; onload=&#39;x&#39;\">&lt;script&gt;&amp;\\u{202e}\\u{1b}</td>"
        );
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        for (value, text) in [
            (1.0, "1"),
            (0.126, "0.13"),
            (-0.001, "0"),
            (10.5, "10.5"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(coordinate(value), text);
        }
    }
}
