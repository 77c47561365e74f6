//! The language of a row's `when`.
//!
//! ```text
//! or      = and { "or" and }
//! and     = not { "and" not }
//! not     = "not" not | "(" or ")" | test
//! test    = "pooled" ("==" | "!=") verdict
//!         | "pooled" ["not"] "in" "(" verdict { "," verdict } ")"
//!         | sum ("==" | "!=" | "<" | "<=" | ">" | ">=") sum
//! sum     = term { "+" term }
//! term    = count | "scenarios" | integer
//! ```
//!
//! A count is a verdict's word: how many scenarios got it. `scenarios` is how many there are.

use crate::experiment::analysis::model::{Verdict, VerdictCounts};
use crate::experiment::matrix::{VERDICTS, count};
use crate::scenario::near::did_you_mean;

/// A guard is a line or two.
const MAX_GUARD_BYTES: usize = 2000;
/// Parentheses and `not` nested deeper than anybody reads; keeps the recursion harmless.
const MAX_DEPTH: usize = 32;
/// More scenarios than any plan has.
const MAX_INTEGER: u32 = 1_000_000;

/// A condition over the verdicts.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    Any(Vec<Guard>),
    All(Vec<Guard>),
    Not(Box<Guard>),
    /// The pooled verdict is one of these.
    Pooled(Vec<Verdict>),
    Compare(Vec<Term>, Op, Vec<Term>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    Count(Verdict),
    Scenarios,
    Number(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Why a guard cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GuardError {
    /// In bytes from the start of the text.
    pub offset: usize,
    pub message: String,
}

impl Guard {
    /// Reads a guard.
    ///
    /// # Errors
    /// The first thing that does not fit, with its place.
    pub fn parse(text: &str) -> Result<Guard, GuardError> {
        if text.len() > MAX_GUARD_BYTES {
            let message = format!("longer than {MAX_GUARD_BYTES} bytes");
            return Err(GuardError { offset: 0, message });
        }
        let mut reader = Reader {
            tokens: tokens(text)?,
            next: 0,
            end: text.len(),
            depth: 0,
        };
        let guard = reader.any()?;
        match reader.peek() {
            None => Ok(guard),
            Some(_) => Err(reader.expected("`and`, `or` or the end")),
        }
    }

    pub fn matches(&self, counts: &VerdictCounts) -> bool {
        match self {
            Guard::Any(parts) => parts.iter().any(|part| part.matches(counts)),
            Guard::All(parts) => parts.iter().all(|part| part.matches(counts)),
            Guard::Not(inner) => !inner.matches(counts),
            Guard::Pooled(wanted) => counts
                .pooled
                .is_some_and(|verdict| wanted.contains(&verdict)),
            Guard::Compare(left, op, right) => {
                let (left, right) = (sum(left, counts), sum(right, counts));
                match op {
                    Op::Equal => left == right,
                    Op::NotEqual => left != right,
                    Op::Less => left < right,
                    Op::AtMost => left <= right,
                    Op::Greater => left > right,
                    Op::AtLeast => left >= right,
                }
            }
        }
    }
}

fn sum(terms: &[Term], counts: &VerdictCounts) -> u64 {
    let value = |term: &Term| match term {
        Term::Count(verdict) => count(counts, *verdict),
        Term::Scenarios => VERDICTS.iter().map(|(_, each)| count(counts, *each)).sum(),
        Term::Number(number) => *number,
    };
    terms.iter().map(|term| u64::from(value(term))).sum()
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Number(u32),
    Sign(&'static str),
}

/// Longer ones first, so that `<=` is not read as `<`.
const SIGNS: [&str; 10] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", ",", "+"];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, GuardError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = |fits: fn(char) -> bool| rest.find(|c| !fits(c)).unwrap_or(rest.len());
        let (taken, token) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_alphabetic() {
            let taken = length(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            (taken, Token::Word(rest[..taken].to_owned()))
        } else if first.is_ascii_digit() {
            let taken = length(|c| c.is_ascii_digit());
            let number = rest[..taken].parse().ok().filter(|n| *n <= MAX_INTEGER);
            let Some(number) = number else {
                let message = format!("expected a whole number up to {MAX_INTEGER}");
                return Err(GuardError {
                    offset: at,
                    message,
                });
            };
            (taken, Token::Number(number))
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (sign.len(), Token::Sign(sign))
        } else {
            return Err(GuardError {
                offset: at,
                message: strange(first),
            });
        };
        found.push((at, token));
        at += taken;
    }
    Ok(found)
}

fn strange(found: char) -> String {
    let instead = match found {
        '=' => "; equality is written ==",
        '&' => "; write and",
        '|' => "; write or",
        '!' => "; write not, or != between two values",
        '-' => "; there are no negative counts",
        _ => "",
    };
    format!("`{}` has no meaning here{instead}", found.escape_debug())
}

struct Reader {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
    depth: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn need_sign(&mut self, sign: &str) -> Result<(), GuardError> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{sign}`")))
        }
    }

    fn error(&self, message: String) -> GuardError {
        GuardError {
            offset: self.offset(),
            message,
        }
    }

    fn expected(&self, what: &str) -> GuardError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(Token::Word(word)) => format!("`{word}`"),
            Some(Token::Number(number)) => format!("`{number}`"),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    fn any(&mut self) -> Result<Guard, GuardError> {
        let mut parts = vec![self.all()?];
        while self.take_word("or") {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Guard::Any))
    }

    fn all(&mut self) -> Result<Guard, GuardError> {
        let mut parts = vec![self.not()?];
        while self.take_word("and") {
            parts.push(self.not()?);
        }
        Ok(one_or(parts, Guard::All))
    }

    fn not(&mut self) -> Result<Guard, GuardError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let guard = if self.take_word("not") {
            Guard::Not(Box::new(self.not()?))
        } else if self.take_sign("(") {
            let inner = self.any()?;
            self.need_sign(")")?;
            inner
        } else if self.take_word("pooled") {
            self.pooled()?
        } else {
            self.compare()?
        };
        self.depth -= 1;
        Ok(guard)
    }

    fn pooled(&mut self) -> Result<Guard, GuardError> {
        if self.take_sign("==") {
            return Ok(Guard::Pooled(vec![self.verdict()?]));
        }
        if self.take_sign("!=") {
            let verdict = self.verdict()?;
            return Ok(Guard::Not(Box::new(Guard::Pooled(vec![verdict]))));
        }
        let negated = self.take_word("not");
        if !self.take_word("in") {
            return Err(self.expected("`==`, `!=` or `in (...)` after `pooled`"));
        }
        self.need_sign("(")?;
        let mut wanted = vec![self.verdict()?];
        while self.take_sign(",") {
            wanted.push(self.verdict()?);
        }
        self.need_sign(")")?;
        let guard = Guard::Pooled(wanted);
        Ok(if negated {
            Guard::Not(Box::new(guard))
        } else {
            guard
        })
    }

    fn verdict(&mut self) -> Result<Verdict, GuardError> {
        let words = VERDICTS.map(|(word, _)| word);
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self.expected(&format!("a verdict ({})", words.join(", "))));
        };
        if let Some((_, verdict)) = VERDICTS.iter().find(|(known, _)| known == word) {
            let verdict = *verdict;
            self.next += 1;
            return Ok(verdict);
        }
        Err(self.error(match word.as_str() {
            "none" => "without a pooled verdict no row is asked: the matrix' no_decision stands"
                .to_owned(),
            _ => {
                let guess = did_you_mean(word, words);
                format!(
                    "`{word}` is no verdict{guess}, expected one of {}",
                    words.join(", ")
                )
            }
        }))
    }

    fn compare(&mut self) -> Result<Guard, GuardError> {
        let left = self.sum()?;
        let op = match self.peek() {
            Some(Token::Sign("==")) => Op::Equal,
            Some(Token::Sign("!=")) => Op::NotEqual,
            Some(Token::Sign("<")) => Op::Less,
            Some(Token::Sign("<=")) => Op::AtMost,
            Some(Token::Sign(">")) => Op::Greater,
            Some(Token::Sign(">=")) => Op::AtLeast,
            _ => return Err(self.expected("a comparison (==, !=, <, <=, >, >=)")),
        };
        self.next += 1;
        Ok(Guard::Compare(left, op, self.sum()?))
    }

    fn sum(&mut self) -> Result<Vec<Term>, GuardError> {
        let mut terms = vec![self.term()?];
        while self.take_sign("+") {
            terms.push(self.term()?);
        }
        Ok(terms)
    }

    fn term(&mut self) -> Result<Term, GuardError> {
        let term = match self.peek() {
            Some(Token::Number(number)) => Term::Number(*number),
            Some(Token::Word(word)) if word == "scenarios" => Term::Scenarios,
            Some(Token::Word(word)) => match VERDICTS.iter().find(|(known, _)| known == word) {
                Some((_, verdict)) => Term::Count(*verdict),
                None => return Err(self.error(unknown_word(word))),
            },
            _ => return Err(self.expected("pooled, the count of a verdict or a whole number")),
        };
        self.next += 1;
        Ok(term)
    }
}

fn unknown_word(word: &str) -> String {
    let mut words: Vec<&str> = VERDICTS.iter().map(|(word, _)| *word).collect();
    words.extend(["scenarios", "pooled", "and", "or", "not"]);
    let guess = did_you_mean(word, words.iter().copied());
    format!(
        "unknown word `{word}`{guess}, expected one of {}",
        words.join(", ")
    )
}

fn one_or(mut parts: Vec<Guard>, join: fn(Vec<Guard>) -> Guard) -> Guard {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}
