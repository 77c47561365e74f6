//! A small POSIX shell grammar: text to a tree. What the tree does is `process`'s business.
//!
//! Covers what stands in real pod specs: words with quotes and expansions, redirections, lists, pipes,
//! background jobs, subshells, groups, `if`, `while`, `until`, `for`, `case`-free. Anything else is a syntax
//! error, which a shell reports with exit code 2.

mod word;

use std::sync::Arc;

/// A command list.
pub type Script = Arc<Vec<Node>>;

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Simple(Simple),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    /// Commands whose output feeds the next.
    Pipe(Vec<Node>),
    Background(Box<Node>),
    Subshell(Script, Vec<Redirect>),
    Group(Script, Vec<Redirect>),
    If {
        condition: Script,
        then: Script,
        otherwise: Script,
    },
    Loop {
        until: bool,
        condition: Script,
        body: Script,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: Script,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simple {
    pub assignments: Vec<(String, Word)>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Redirect {
    pub fd: u32,
    pub to: Target,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Write(Word),
    Append(Word),
    Read(Word),
    Duplicate(u32),
}

/// A word: parts that are joined after expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word(pub Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text taken as it is; quoted text is not split.
    Text { text: String, quoted: bool },
    /// `$NAME`, `${NAME}`, `${NAME:-default}`; quoted ones are not split.
    Variable {
        name: String,
        default: Option<String>,
        alternative: Option<String>,
        quoted: bool,
    },
    /// `$(...)` or backquotes.
    Command { script: Script, quoted: bool },
    /// `$((...))`.
    Arithmetic(String),
}

/// How deep commands may stand in each other; more is a syntax error, so that no text can exhaust the stack.
const DEPTH_MAX: usize = 40;

/// Longest script read, in characters.
const LENGTH_MAX: usize = 64 * 1024;

/// Parses a script; the error is what is unexpected, as shells name it.
pub fn parse(text: &str) -> Result<Script, String> {
    parse_at(text, 0)
}

fn parse_at(text: &str, depth: usize) -> Result<Script, String> {
    let mut parser = Parser {
        chars: text.chars().take(LENGTH_MAX).collect(),
        at: 0,
        depth,
    };
    let script = parser.list(&[])?;
    parser.blanks(true);
    match parser.peek() {
        None => Ok(script),
        Some(c) => Err(format!("unexpected \"{c}\"")),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

const KEYWORDS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "}"];

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn looking_at(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn take(&mut self, text: &str) -> bool {
        let there = self.looking_at(text);
        if there {
            self.at += text.chars().count();
        }
        there
    }

    fn blanks(&mut self, newlines: bool) {
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\r' => self.at += 1,
                '\n' if newlines => self.at += 1,
                '\\' if self.looking_at("\\\n") => self.at += 2,
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
    }

    /// The next word when it stands alone and unquoted, for keywords.
    fn keyword(&self) -> String {
        self.chars[self.at..]
            .iter()
            .take_while(|c| {
                c.is_ascii_alphanumeric() || **c == '_' || **c == '{' || **c == '}' || **c == '!'
            })
            .collect()
    }

    fn expect_keyword(&mut self, word: &str) -> Result<(), String> {
        self.blanks(true);
        if self.keyword() == word {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.unexpected(word))
        }
    }

    fn unexpected(&self, expected: &str) -> String {
        match self.peek() {
            None => format!("unexpected end of file (expecting \"{expected}\")"),
            Some(_) => format!("word unexpected (expecting \"{expected}\")"),
        }
    }

    /// Commands up to one of the closing keywords (or `)`), or the end.
    fn list(&mut self, stop: &[&str]) -> Result<Script, String> {
        let mut nodes = Vec::new();
        loop {
            self.blanks(true);
            while self.looking_at(";") && !self.looking_at(";;") {
                self.at += 1;
                self.blanks(true);
            }
            let Some(next) = self.peek() else { break };
            if next == ')' {
                break;
            }
            let keyword = self.keyword();
            if stop.contains(&keyword.as_str()) {
                break;
            }
            if KEYWORDS.contains(&keyword.as_str()) {
                return Err(format!("\"{keyword}\" unexpected"));
            }
            let mut node = self.and_or()?;
            self.blanks(false);
            if self.looking_at("&") && !self.looking_at("&&") {
                self.at += 1;
                node = Node::Background(Box::new(node));
            }
            nodes.push(node);
        }
        Ok(Arc::new(nodes))
    }

    fn and_or(&mut self) -> Result<Node, String> {
        let mut left = self.pipeline()?;
        loop {
            self.blanks(false);
            if self.take("&&") {
                self.blanks(true);
                left = Node::And(Box::new(left), Box::new(self.pipeline()?));
            } else if self.take("||") {
                self.blanks(true);
                left = Node::Or(Box::new(left), Box::new(self.pipeline()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn pipeline(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("nesting too deep".to_owned());
        }
        let node = self.piped();
        self.depth -= 1;
        node
    }

    fn piped(&mut self) -> Result<Node, String> {
        self.blanks(false);
        if self.keyword() == "!" {
            self.at += 1;
            return Ok(Node::Not(Box::new(self.pipeline()?)));
        }
        let mut parts = vec![self.command()?];
        loop {
            self.blanks(false);
            if self.looking_at("||") || !self.take("|") {
                break;
            }
            self.blanks(true);
            parts.push(self.command()?);
        }
        Ok(match (parts.pop(), parts.is_empty()) {
            (Some(only), true) => only,
            (last, _) => Node::Pipe(parts.into_iter().chain(last).collect()),
        })
    }

    fn command(&mut self) -> Result<Node, String> {
        self.blanks(false);
        if self.take("(") {
            let script = self.list(&[])?;
            if !self.take(")") {
                return Err(self.unexpected(")"));
            }
            return Ok(Node::Subshell(script, self.redirects()?));
        }
        match self.keyword().as_str() {
            "{" => {
                self.at += 1;
                let script = self.list(&["}"])?;
                self.expect_keyword("}")?;
                Ok(Node::Group(script, self.redirects()?))
            }
            "if" => {
                self.at += 2;
                self.branch()
            }
            word @ ("while" | "until") => {
                let until = word == "until";
                self.at += 5;
                let condition = self.list(&["do"])?;
                self.expect_keyword("do")?;
                let body = self.list(&["done"])?;
                self.expect_keyword("done")?;
                Ok(Node::Loop {
                    until,
                    condition,
                    body,
                })
            }
            "for" => self.for_loop(),
            _ => self.simple(),
        }
    }

    fn branch(&mut self) -> Result<Node, String> {
        let condition = self.list(&["then"])?;
        self.expect_keyword("then")?;
        let then = self.list(&["else", "elif", "fi"])?;
        self.blanks(true);
        let otherwise = match self.keyword().as_str() {
            "elif" => {
                self.at += 4;
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err("nesting too deep".to_owned());
                }
                return Ok(Node::If {
                    condition,
                    then,
                    otherwise: Arc::new(vec![self.branch()?]),
                });
            }
            "else" => {
                self.at += 4;
                self.list(&["fi"])?
            }
            _ => Script::default(),
        };
        self.expect_keyword("fi")?;
        Ok(Node::If {
            condition,
            then,
            otherwise,
        })
    }

    fn for_loop(&mut self) -> Result<Node, String> {
        self.at += 3;
        self.blanks(false);
        let name = self.keyword();
        self.at += name.len();
        self.expect_keyword("in")?;
        let mut words = Vec::new();
        loop {
            self.blanks(false);
            match self.word()? {
                Some(word) => words.push(word),
                None => break,
            }
        }
        self.blanks(true);
        self.take(";");
        self.expect_keyword("do")?;
        let body = self.list(&["done"])?;
        self.expect_keyword("done")?;
        Ok(Node::For { name, words, body })
    }

    fn simple(&mut self) -> Result<Node, String> {
        let mut simple = Simple::default();
        loop {
            self.blanks(false);
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            let Some(word) = self.word()? else { break };
            match assignment(&word) {
                Some(pair) if simple.words.is_empty() => simple.assignments.push(pair),
                _ => simple.words.push(word),
            }
        }
        if simple == Simple::default() {
            return Err(match self.peek() {
                Some(c) => format!("unexpected \"{c}\""),
                None => "unexpected end of file".to_owned(),
            });
        }
        Ok(Node::Simple(simple))
    }

    fn redirects(&mut self) -> Result<Vec<Redirect>, String> {
        let mut all = Vec::new();
        loop {
            self.blanks(false);
            match self.redirect()? {
                Some(redirect) => all.push(redirect),
                None => return Ok(all),
            }
        }
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, String> {
        let start = self.at;
        let digit = self.peek().filter(char::is_ascii_digit);
        if digit.is_some() {
            self.at += 1;
        }
        let number = digit.and_then(|c| c.to_digit(10));
        let (append, read) = if self.take(">>") {
            (true, false)
        } else if self.take(">") {
            (false, false)
        } else if self.take("<") {
            (false, true)
        } else {
            self.at = start;
            return Ok(None);
        };
        let fd = number.unwrap_or(u32::from(!read));
        if self.take("&") {
            let to = self.peek().and_then(|c| c.to_digit(10));
            self.at += 1;
            return Ok(Some(Redirect {
                fd,
                to: Target::Duplicate(to.ok_or("bad fd number")?),
            }));
        }
        self.blanks(false);
        let word = self.word()?.ok_or("newline unexpected")?;
        let to = match (read, append) {
            (true, _) => Target::Read(word),
            (_, true) => Target::Append(word),
            _ => Target::Write(word),
        };
        Ok(Some(Redirect { fd, to }))
    }
}

/// `NAME=value` as a word.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Part::Text {
        text,
        quoted: false,
    }) = word.0.first()
    else {
        return None;
    };
    let (name, rest) = text.split_once('=')?;
    let ok = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !ok {
        return None;
    }
    let mut parts = vec![Part::Text {
        text: rest.to_owned(),
        quoted: true,
    }];
    parts.extend(word.0[1..].iter().cloned());
    Some((name.to_owned(), Word(parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_pipes_and_background_jobs_nest() {
        let script =
            parse("(sleep 3; dd if=/dev/zero of=/x 2>/dev/null) & exec advocate-api serve")
                .unwrap();
        assert_eq!(script.len(), 2);
        assert!(
            matches!(&script[0], Node::Background(inner) if matches!(**inner, Node::Subshell(..)))
        );
        assert!(matches!(&script[1], Node::Simple(simple) if simple.words.len() == 3));
    }

    #[test]
    fn quotes_and_assignments_are_kept_apart() {
        let script = parse("A=1 echo \"$A b\" 'c d'").unwrap();
        let Node::Simple(simple) = &script[0] else {
            panic!("a simple command")
        };
        assert_eq!(simple.assignments.len(), 1);
        assert_eq!(simple.words.len(), 3);
    }

    #[test]
    fn broken_scripts_are_errors() {
        let deep = "(".repeat(100_000);
        assert!(parse(&deep).is_err());
        for text in [
            "if true; then",
            "echo 'a",
            "( true",
            "done",
            "a && ",
            "while true; do x",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(
            parse("while ! true; do sleep 1; done; if a; then b; elif c; then d; else e; fi")
                .is_ok()
        );
    }
}
