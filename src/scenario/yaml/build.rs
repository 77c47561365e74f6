//! Builds the tree from the parser's events.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::scenario::problem::{Notes, Position};
use crate::scenario::yaml::{Body, Entry, MAX_ALIAS_NODES, MAX_DEPTH, Node, Scalar, Shape};

/// Reads events into a tree.
pub(super) fn build(text: &str, notes: &mut Notes) -> Option<Node> {
    let mut builder = Builder {
        lines: text.split('\n').collect(),
        notes,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        alias_nodes: 0,
        scalars: Vec::new(),
        root: None,
        documents: 0,
    };
    let complete = builder.read(text);
    let tabs_found = builder.report_tabs(complete.as_ref().err());
    if let Err(Stop::Scan(error)) = &complete
        && !tabs_found
    {
        let message = format!("not valid YAML: {}", error.info());
        builder.notes.problem(position(error.marker()), "", message);
    }
    let root = builder.root.take();
    if complete.is_err() {
        return None;
    }
    if root.is_none() {
        notes.problem(Position::START, "", "the file is empty, expected a mapping");
    }
    root
}

enum Stop {
    Scan(ScanError),
    /// A limit was passed; the problem has been noted.
    Limit,
}

struct Builder<'a> {
    lines: Vec<&'a str>,
    notes: &'a mut Notes,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    alias_nodes: usize,
    /// First and last line of scalars over several lines: tabs may stand there.
    scalars: Vec<(usize, usize)>,
    root: Option<Node>,
    documents: usize,
}

/// A list or mapping that is not closed yet.
struct Open {
    at: Position,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        seen: BTreeMap<String, Position>,
        key: Option<Key>,
    },
}

/// A key waiting for its value; a key that cannot be used swallows its value.
enum Key {
    Use(String, Position),
    Drop,
}

impl Builder<'_> {
    fn read(&mut self, text: &str) -> Result<(), Stop> {
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(Stop::Scan)?;
            if matches!(event, Event::StreamEnd) {
                break;
            }
            self.event(event, span)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let at = position(&span.start);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "a second document, expected one scenario, vocabulary, rubric or plan a file";
                    self.notes.problem(at, "", message);
                    return Err(Stop::Limit);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let forced = self.tag(tag.as_deref(), at);
                let scalar = Scalar {
                    shape: self.shape(&text, style, span),
                    text: text.into_owned(),
                };
                self.protect_lines(style, span);
                let body = if style == ScalarStyle::Plain && !forced {
                    Body::Plain(scalar)
                } else {
                    Body::Text(scalar)
                };
                self.place(Node { at, body }, anchor);
            }
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.as_deref(), at);
                self.push(at, anchor, Items::List(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.as_deref(), at);
                let items = Items::Map {
                    entries: Vec::new(),
                    seen: BTreeMap::new(),
                    key: None,
                };
                self.push(at, anchor, items)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor, at)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    /// Remembers the lines of a scalar over several lines: tabs belong to its text.
    fn protect_lines(&mut self, style: ScalarStyle, span: Span) {
        let (first, last) = (span.start.line(), span.end.line());
        // A block's span begins with its text, a quoted scalar's with a line that has an indentation.
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if block || last > first {
            self.scalars.push((first + usize::from(!block), last));
        }
    }

    fn push(&mut self, at: Position, anchor: usize, items: Items) -> Result<(), Stop> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            self.notes.problem(at, "", message);
            return Err(Stop::Limit);
        }
        self.open.push(Open { at, anchor, items });
        Ok(())
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let body = match open.items {
            Items::List(items) => Body::List(items),
            Items::Map { entries, .. } => Body::Map(entries),
        };
        self.place(Node { at: open.at, body }, open.anchor);
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor) else {
            // The parser knows the name, so the anchor is one that is still open: it would hold itself.
            self.notes
                .problem(at, "", "an alias inside the value that it stands for");
            return Err(Stop::Limit);
        };
        self.alias_nodes = self.alias_nodes.saturating_add(size(node));
        let depth = self.open.len() + depth(node);
        if self.alias_nodes > MAX_ALIAS_NODES || depth > MAX_DEPTH {
            let message =
                format!("aliases add more than {MAX_ALIAS_NODES} values or {MAX_DEPTH} levels");
            self.notes.problem(at, "", message);
            return Err(Stop::Limit);
        }
        let node = node.clone();
        self.place(node, 0);
        Ok(())
    }

    /// Puts a finished node where it belongs: as key, value, item or root.
    fn place(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return;
        };
        match &mut open.items {
            Items::List(items) => items.push(node),
            Items::Map { entries, seen, key } => match key.take() {
                None => *key = Some(usable_key(node, seen, self.notes)),
                Some(Key::Drop) => {}
                Some(Key::Use(key, key_at)) => entries.push(Entry {
                    key,
                    key_at,
                    value: node,
                }),
            },
        }
    }

    /// Whether the tag makes the scalar a text.
    fn tag(&mut self, tag: Option<&Tag>, at: Position) -> bool {
        let Some(tag) = tag else { return false };
        let core = tag.handle == "tag:yaml.org,2002:" || tag.handle == "!!";
        let is_text = (core && tag.suffix == "str") || (tag.handle == "!" && tag.suffix.is_empty());
        if !is_text {
            let message = format!("the tag {tag} is not applied here; write the value without it");
            self.notes.problem(at, "", message);
        }
        is_text
    }

    fn shape(&self, text: &str, style: ScalarStyle, span: Span) -> Shape {
        let source = self
            .lines
            .get(span.start.line().saturating_sub(1))
            .copied()
            .unwrap_or("");
        match style {
            ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                let skip = usize::from(style != ScalarStyle::Plain);
                let mut rest = source.chars().skip(span.start.col() + skip);
                let same = text.chars().all(|c| rest.next() == Some(c));
                if same {
                    Shape::Flat { skip }
                } else {
                    Shape::Opaque
                }
            }
            ScalarStyle::Literal => self.block(text, span).unwrap_or(Shape::Opaque),
            ScalarStyle::Folded => Shape::Opaque,
        }
    }

    /// The first line of a block's content and the indentation that was taken off.
    fn block(&self, text: &str, span: Span) -> Option<Shape> {
        let first = text.lines().next()?;
        let from = span.start.line().saturating_sub(1);
        let candidates = self.lines.iter().enumerate().skip(from).take(3);
        candidates
            .filter(|_| !first.trim().is_empty())
            .find_map(|(index, line)| {
                let indent = line.strip_suffix(first)?;
                indent.chars().all(|c| c == ' ').then_some(Shape::Block {
                    first_line: index + 1,
                    indent: indent.len(),
                })
            })
    }

    /// Notes tabs in the indentation outside of scalars, up to where parsing stopped.
    fn report_tabs(&mut self, stopped: Option<&Stop>) -> bool {
        let last = match stopped {
            Some(Stop::Scan(error)) => error.marker().line(),
            _ => self.lines.len(),
        };
        let mut found = false;
        for (index, line) in self.lines.iter().enumerate().take(last) {
            let number = index + 1;
            let indent: String = line
                .chars()
                .take_while(|c| matches!(c, ' ' | '\t'))
                .collect();
            let Some(tab) = indent.find('\t') else {
                continue;
            };
            let inside = self
                .scalars
                .iter()
                .any(|(first, last)| *first <= number && number <= *last);
            if inside || line.trim().is_empty() {
                continue;
            }
            found = true;
            let at = Position {
                line: number,
                column: tab + 1,
            };
            self.notes
                .problem(at, "", "a tab in the indentation, expected spaces");
        }
        found
    }
}

fn usable_key(node: Node, seen: &mut BTreeMap<String, Position>, notes: &mut Notes) -> Key {
    let at = node.at;
    let text = match node.body {
        Body::Plain(scalar) if scalar.text == "<<" => {
            notes.problem(
                at,
                "",
                "merge keys (`<<`) are not applied; write the keys out",
            );
            return Key::Drop;
        }
        Body::Plain(scalar) | Body::Text(scalar) => scalar.text,
        Body::List(_) | Body::Map(_) => {
            notes.problem(at, "", "a key that is not a scalar, expected a word");
            return Key::Drop;
        }
    };
    if let Some(first) = seen.get(&text) {
        let message = format!(
            "the key `{text}` stands twice, first in line {}",
            first.line
        );
        notes.problem(at, "", message);
        return Key::Drop;
    }
    seen.insert(text.clone(), at);
    Key::Use(text, at)
}

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}

fn size(node: &Node) -> usize {
    1 + match &node.body {
        Body::Plain(_) | Body::Text(_) => 0,
        Body::List(items) => items.iter().map(size).sum(),
        Body::Map(entries) => entries.iter().map(|entry| size(&entry.value)).sum(),
    }
}

fn depth(node: &Node) -> usize {
    1 + match &node.body {
        Body::Plain(_) | Body::Text(_) => 0,
        Body::List(items) => items.iter().map(depth).max().unwrap_or(0),
        Body::Map(entries) => entries
            .iter()
            .map(|entry| depth(&entry.value))
            .max()
            .unwrap_or(0),
    }
}
