//! Forms of YAML text that load alike, and those that are refused with their place.

use proptest::prelude::*;

use super::*;
use crate::scenario::problem::Problems;

fn tree(text: &str) -> Node {
    let mut notes = Notes::default();
    let node = parse(text, &mut notes);
    notes
        .finish("f", node)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .0
}

fn wrong(text: &str) -> Problems {
    let mut notes = Notes::default();
    let node = parse(text, &mut notes);
    notes.finish("f", node).expect_err(text)
}

fn first(text: &str) -> String {
    wrong(text).lines()[0].clone()
}

fn text_of(node: &Node) -> &str {
    match &node.body {
        Body::Plain(scalar) | Body::Text(scalar) => &scalar.text,
        _ => panic!("not a scalar"),
    }
}

#[test]
fn plain_scalars_keep_their_text() {
    let node = tree("a: 0340914\nb: on\nc: 10%\nd: 1e3\ne: 'x'\n");
    for (key, text) in [
        ("a", "0340914"),
        ("b", "on"),
        ("c", "10%"),
        ("d", "1e3"),
        ("e", "x"),
    ] {
        assert_eq!(text_of(node.get(key).unwrap()), text);
    }
}

#[test]
fn the_core_schema_is_that_of_yaml_1_2() {
    for (text, plain) in [
        ("0340914", Plain::Integer),
        ("0x1F", Plain::Integer),
        ("1_000", Plain::Text),
        ("12e3", Plain::Float),
        (".5", Plain::Float),
        (".", Plain::Text),
        ("1.", Plain::Float),
        ("-.inf", Plain::Float),
        ("on", Plain::Text),
        ("yes", Plain::Text),
        ("True", Plain::Bool(true)),
        ("~", Plain::Null),
        ("2024-01-01", Plain::Text),
        ("e3", Plain::Text),
        ("-", Plain::Text),
    ] {
        assert_eq!(core_schema(text), plain, "{text}");
    }
}

#[test]
fn forms_that_load_alike() {
    let crlf = tree("a: |\r\n  one\r\n  two\r\nb: 1\r\n");
    assert_eq!(text_of(crlf.get("a").unwrap()), "one\ntwo\n");
    assert_eq!(text_of(tree("\u{feff}a: b\n").get("a").unwrap()), "b");
    assert_eq!(text_of(tree("---\na: b\n...\n").get("a").unwrap()), "b");
    assert_eq!(text_of(tree("x: &n 5\na: *n\n").get("a").unwrap()), "5");
    assert_eq!(
        text_of(tree("a: |\n  \tcode\n").get("a").unwrap()),
        "\tcode\n"
    );
}

#[test]
fn forms_that_are_refused_name_their_place() {
    assert_eq!(first(""), "f:1:1: the file is empty, expected a mapping");
    assert_eq!(
        first("# only a comment\n"),
        "f:1:1: the file is empty, expected a mapping"
    );
    assert!(
        first("a: 1\nb: 2\na: 3\n").starts_with("f:3:1: the key `a` stands twice, first in line 1")
    );
    assert!(first("d: &d {x: 1}\ne:\n  <<: *d\n").starts_with("f:3:3: merge keys"));
    assert!(first("a:\n\tb: 1\n").starts_with("f:2:1: a tab in the indentation"));
    assert!(first("a: 1\n---\nb: 1\n").contains("a second document"));
    assert!(first("---\n\u{feff}a: 1\n").starts_with("f:2:1: a byte-order mark inside"));
    assert!(first("a: \u{0}\n").starts_with("f:1:4: a control character"));
    assert!(first("a: !!int 5\n").contains("tag"));
    assert!(first("? [a]\n: b\n").contains("not a scalar"));
    assert!(first("a: &x [*x]\n").contains("alias"));
    assert!(first("a: *nobody\n").contains("not valid YAML"));
    assert!(first("a: [1, 2\n").contains("not valid YAML"));
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert!(first(&deep).contains("levels deep"));
}

#[test]
fn an_alias_bomb_stops_at_the_limit() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let refs = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{refs}]\n"));
    }
    assert!(first(&text).contains("aliases add more than"));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    assert!(
        from_bytes(&[0xFF, 0xFE, 0x61, 0x00], "f")
            .unwrap_err()
            .to_string()
            .contains("UTF-16")
    );
    let broken = from_bytes(b"a: 1\nb: \xC3\x28\n", "f").unwrap_err();
    assert!(
        broken
            .to_string()
            .starts_with("f:2:4: a byte that is not UTF-8")
    );
}

#[test]
fn positions_inside_scalars_are_those_of_the_file() {
    let node = tree("a: one two\nb: \"one two\"\nc: |\n  first\n  second\n");
    let at = |key: &str, offset: usize| {
        let position = node.get(key).unwrap().position_of(offset);
        (position.line, position.column)
    };
    assert_eq!(at("a", 4), (1, 8));
    assert_eq!(at("b", 4), (2, 9));
    assert_eq!(at("c", 6), (5, 3));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ a-c:\\-\\[\\]{},#&*!|>'\"%@`\\n\\t?<~0-9é\u{feff}]{0,120}") {
        let mut notes = Notes::default();
        let node = parse(&text, &mut notes);
        let _ = notes.finish("f", node);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = from_bytes(&bytes, "f") {
            let mut notes = Notes::default();
            let node = parse(&text, &mut notes);
            let _ = notes.finish("f", node);
        }
    }
}
