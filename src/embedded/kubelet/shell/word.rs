//! Words of the shell's grammar: quotes, variables, substitutions.

use super::{Parser, Part, Word, parse_at};

impl Parser {
    /// The next word, if one begins here.
    pub(super) fn word(&mut self) -> Result<Option<Word>, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    flush(&mut parts, &mut plain, false);
                    self.at += 1;
                    let text = self.until_char('\'')?;
                    parts.push(Part::Text { text, quoted: true });
                }
                '"' => {
                    flush(&mut parts, &mut plain, false);
                    self.at += 1;
                    self.double_quoted(&mut parts)?;
                }
                '\\' => {
                    flush(&mut parts, &mut plain, false);
                    self.at += 1;
                    if let Some(next) = self.peek() {
                        self.at += 1;
                        parts.push(Part::Text {
                            text: next.to_string(),
                            quoted: true,
                        });
                    }
                }
                '$' | '`' => {
                    flush(&mut parts, &mut plain, false);
                    let part = self.expansion(false)?;
                    parts.push(part);
                }
                _ => {
                    plain.push(c);
                    self.at += 1;
                }
            }
        }
        flush(&mut parts, &mut plain, false);
        Ok((!parts.is_empty()).then_some(Word(parts)))
    }

    fn until_char(&mut self, end: char) -> Result<String, String> {
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if c == end {
                return Ok(text);
            }
            text.push(c);
        }
        Err("unterminated quoted string".to_owned())
    }

    fn double_quoted(&mut self, parts: &mut Vec<Part>) -> Result<(), String> {
        let mut plain = String::new();
        let before = parts.len();
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.at += 1;
                    if !plain.is_empty() || parts.len() == before {
                        parts.push(Part::Text {
                            text: plain,
                            quoted: true,
                        });
                    }
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some(next @ ('"' | '\\' | '$' | '`')) => {
                            plain.push(next);
                            self.at += 1;
                        }
                        Some('\n') => self.at += 1,
                        _ => plain.push('\\'),
                    }
                }
                '$' | '`' => {
                    flush(parts, &mut plain, true);
                    let part = self.expansion(true)?;
                    parts.push(part);
                }
                _ => {
                    plain.push(c);
                    self.at += 1;
                }
            }
        }
        Err("unterminated quoted string".to_owned())
    }

    fn expansion(&mut self, quoted: bool) -> Result<Part, String> {
        if self.take("`") {
            let script = parse_at(&self.until_char('`')?, self.depth + 1)?;
            return Ok(Part::Command { script, quoted });
        }
        self.at += 1;
        if self.take("((") {
            let text = self.balanced(2)?;
            return Ok(Part::Arithmetic(text));
        }
        if self.take("(") {
            let script = parse_at(&self.balanced(1)?, self.depth + 1)?;
            return Ok(Part::Command { script, quoted });
        }
        if self.take("{") {
            return self.braced(quoted);
        }
        let special = self.peek().filter(|c| "?#$!@*0123456789".contains(*c));
        let name: String = match special {
            Some(c) => {
                self.at += 1;
                c.to_string()
            }
            None => {
                let name: String = self.chars[self.at..]
                    .iter()
                    .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
                    .collect();
                self.at += name.len();
                name
            }
        };
        if name.is_empty() {
            return Ok(Part::Text {
                text: "$".to_owned(),
                quoted,
            });
        }
        Ok(Part::Variable {
            name,
            default: None,
            alternative: None,
            quoted,
        })
    }

    fn braced(&mut self, quoted: bool) -> Result<Part, String> {
        let inside = self.until_char('}').map_err(|_| "Missing '}'".to_owned())?;
        let length = inside
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '?' || c == '#'))
            .unwrap_or(inside.len());
        let (name, rest) = inside.split_at(length);
        let after = |marks: [&str; 2]| {
            marks
                .iter()
                .find_map(|mark| rest.strip_prefix(mark))
                .map(str::to_owned)
        };
        let default = after([":-", "-"]);
        let alternative = after([":+", "+"]);
        if name.is_empty() || (!rest.is_empty() && default.is_none() && alternative.is_none()) {
            return Err("bad substitution".to_owned());
        }
        Ok(Part::Variable {
            name: name.to_owned(),
            default,
            alternative,
            quoted,
        })
    }

    /// Text up to the closing parentheses that match `depth` opening ones.
    fn balanced(&mut self, depth: usize) -> Result<String, String> {
        let mut open = depth;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                '\'' => {
                    text.push(c);
                    text.push_str(&self.until_char('\'')?);
                }
                _ => {}
            }
            if open == 0 {
                // The outer closing parenthesis of `$((` was counted into the text.
                text.truncate(text.len() - (depth - 1));
                return Ok(text);
            }
            text.push(c);
        }
        Err("unexpected end of file (expecting \")\")".to_owned())
    }
}

fn flush(parts: &mut Vec<Part>, plain: &mut String, quoted: bool) {
    if !plain.is_empty() {
        parts.push(Part::Text {
            text: std::mem::take(plain),
            quoted,
        });
    }
}
