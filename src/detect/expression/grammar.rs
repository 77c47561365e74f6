//! The grammar of condition expressions.
//!
//! Names may hold dots: the first label is the namespace, the last word the field, all between is the name, so
//! nothing is ever ambiguous.

use winnow::Parser;
use winnow::ascii::multispace0;
use winnow::combinator::alt;
use winnow::token::{rest, take_while};

use crate::detect::expression::{Against, Op, Test, WORKLOAD_FIELDS, WorkloadField, WorkloadKind};
use crate::detect::syntax::{Fault, Parsed};
use crate::record::observation::ObjectName;

/// A whole expression.
pub fn test(input: &mut &str) -> Parsed<Test> {
    blank(input)?;
    if input.is_empty() {
        return Err(Fault::at(input, "the expression is empty"));
    }
    let start = *input;
    let word = take_while(0.., is_word).parse_next(input)?;
    match word {
        "deployment" => workload(input, WorkloadKind::Deployment),
        "statefulset" => workload(input, WorkloadKind::StatefulSet),
        "pod" => pod(input),
        "promql" => promql(input),
        "error_rate" => error_rate(input),
        "cluster_slo_delta" => slo_delta(input),
        other => Err(Fault::at(
            start,
            format!(
                "unknown start `{other}`, expected one of deployment.<ns>.<name>.<field>, \
                 statefulset.<ns>.<name>.<field>, pod.<ns>.<name>.phase, promql:, error_rate{{ns=...}}, \
                 cluster_slo_delta"
            ),
        )),
    }
}

fn workload(input: &mut &str, kind: WorkloadKind) -> Parsed<Test> {
    let (object, word, at_word) = dotted(input, kind.word(), "<field>")?;
    let field = WORKLOAD_FIELDS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, field)| *field)
        .ok_or_else(|| {
            let known: Vec<&str> = WORKLOAD_FIELDS.iter().map(|(name, _)| *name).collect();
            Fault::at(
                at_word,
                format!(
                    "unknown field `{word}`, expected one of {}",
                    known.join(", ")
                ),
            )
        })?;
    let op = op(input)?;
    blank(input)?;
    let against = against(input, field)?;
    end(input)?;
    Ok(Test::Workload {
        kind,
        object,
        field,
        op,
        against,
    })
}

fn against(input: &mut &str, field: WorkloadField) -> Parsed<Against> {
    let start = *input;
    let word =
        take_while(0.., |c: char| is_word(c) || matches!(c, '.' | '-' | '+')).parse_next(input)?;
    let takes_desired = !matches!(
        field,
        WorkloadField::Restarts | WorkloadField::DesiredReplicas
    );
    if word == "desiredReplicas" && takes_desired {
        return Ok(Against::DesiredReplicas);
    }
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    let canonical = plain && (word == "0" || !word.starts_with('0'));
    match word.parse::<i64>() {
        Ok(number) if canonical => Ok(Against::Number(number)),
        _ => {
            let expected = if takes_desired {
                "a whole number or desiredReplicas"
            } else {
                "a whole number"
            };
            Err(Fault::at(
                start,
                format!("expected {expected}, found {}", shown(start)),
            ))
        }
    }
}

fn pod(input: &mut &str) -> Parsed<Test> {
    let (object, word, at_word) = dotted(input, "pod", "phase")?;
    if word != "phase" {
        return Err(Fault::at(
            at_word,
            format!("unknown field `{word}`, expected phase"),
        ));
    }
    blank(input)?;
    let at_op = *input;
    let negated = match op(input)? {
        Op::Equal => false,
        Op::NotEqual => true,
        _ => return Err(Fault::at(at_op, "a phase is compared with == or !=")),
    };
    blank(input)?;
    let start = *input;
    let phase = take_while(0.., is_word).parse_next(input)?;
    const PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];
    if !PHASES.contains(&phase) {
        let expected = PHASES.join(", ");
        return Err(Fault::at(
            start,
            format!("unknown phase {}, expected one of {expected}", shown(start)),
        ));
    }
    end(input)?;
    Ok(Test::PodPhase {
        object,
        negated,
        phase: phase.to_owned(),
    })
}

/// `.<ns>.<name>.<word>`: object, last word, and the text from that word on for error positions.
fn dotted<'t>(
    input: &mut &'t str,
    start: &str,
    last: &str,
) -> Parsed<(ObjectName, &'t str, &'t str)> {
    let whole = *input;
    let path = take_while(0.., |c: char| is_word(c) || matches!(c, '.' | '-')).parse_next(input)?;
    let shape = || Fault::at(whole, format!("expected {start}.<namespace>.<name>.{last}"));
    let path_body = path.strip_prefix('.').ok_or_else(shape)?;
    let (namespace, others) = path_body.split_once('.').ok_or_else(shape)?;
    let (name, word) = others.rsplit_once('.').ok_or_else(shape)?;
    for part in [namespace, name] {
        let valid = part.split('.').all(is_label);
        if !valid {
            let at = whole.find(part).map_or(whole, |at| &whole[at..]);
            return Err(Fault::at(
                at,
                format!("`{part}` is not a name that Kubernetes allows (a-z, 0-9, - inside)"),
            ));
        }
    }
    let at_word = &whole[path.len() - word.len()..];
    let object = ObjectName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Ok((object, word, at_word))
}

fn promql(input: &mut &str) -> Parsed<Test> {
    blank(input)?;
    if !input.starts_with(':') {
        return Err(Fault::at(input, "expected `:` after promql"));
    }
    let body = rest.parse_next(input)?[1..].trim();
    let at_end = &body[body.len()..];
    let tail = body
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')))
        .map_or(0, |at| {
            at + body[at..].chars().next().map_or(0, char::len_utf8)
        });
    let value = body[tail..]
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .ok_or_else(|| {
            Fault::at(
                &body[tail..],
                "expected `<query> <op> <number>`, no number at the end",
            )
        })?;
    let before = body[..tail].trim_end();
    let (query, op) = trailing_op(before).ok_or_else(|| {
        Fault::at(
            &body[before.len()..],
            "expected one of == != < <= > >= before the number",
        )
    })?;
    if query.is_empty() {
        return Err(Fault::at(body, "the query is empty"));
    }
    balanced(query)
        .map_err(|at| Fault::at(&body[at..], "a bracket or quote of the query is not closed"))?;
    *input = at_end;
    Ok(Test::Promql {
        query: query.to_owned(),
        op,
        value,
    })
}

fn trailing_op(text: &str) -> Option<(&str, Op)> {
    OPS.iter()
        .find_map(|(word, op)| text.strip_suffix(word).map(|query| (query.trim_end(), *op)))
}

/// Whether brackets and quotes close; otherwise the byte at which they do not.
fn balanced(query: &str) -> Result<(), usize> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut chars = query.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' | '\'' | '`' => loop {
                match chars.next() {
                    Some((_, '\\')) if c != '`' => {
                        chars.next();
                    }
                    Some((_, end)) if end == c => break,
                    Some(_) => {}
                    None => return Err(at),
                }
            },
            '(' => open.push((')', at)),
            '[' => open.push((']', at)),
            '{' => open.push(('}', at)),
            ')' | ']' | '}' => match open.pop() {
                Some((expected, _)) if expected == c => {}
                _ => return Err(at),
            },
            _ => {}
        }
    }
    open.pop().map_or(Ok(()), |(_, at)| Err(at))
}

fn error_rate(input: &mut &str) -> Parsed<Test> {
    let shape = "expected error_rate{ns=<namespace>}";
    for token in ["{", "ns", "="] {
        blank(input)?;
        if !input.starts_with(token) {
            return Err(Fault::at(input, shape));
        }
        *input = &input[token.len()..];
    }
    blank(input)?;
    let quoted = input.starts_with('"');
    if quoted {
        *input = &input[1..];
    }
    let start = *input;
    let namespace = take_while(0.., |c: char| is_word(c) || c == '-').parse_next(input)?;
    if !is_label(namespace) {
        return Err(Fault::at(start, "expected a namespace after ns="));
    }
    if quoted && !input.starts_with('"') {
        return Err(Fault::at(input, "the quote after ns= is not closed"));
    }
    if quoted {
        *input = &input[1..];
    }
    blank(input)?;
    if !input.starts_with('}') {
        return Err(Fault::at(input, shape));
    }
    *input = &input[1..];
    let op = op(input)?;
    let value = number(input)?;
    end(input)?;
    Ok(Test::ErrorRate {
        namespace: namespace.to_owned(),
        op,
        value,
    })
}

fn slo_delta(input: &mut &str) -> Parsed<Test> {
    let op = op(input)?;
    let value = number(input)?;
    blank(input)?;
    let words: Vec<&str> = input.split_whitespace().collect();
    let out_of_scope_only = match words.as_slice() {
        [] => false,
        ["in", "any", "out-of-scope", "namespace"] => true,
        _ => {
            return Err(Fault::at(
                input,
                format!(
                    "expected `in any out-of-scope namespace` or nothing, found {}",
                    shown(input)
                ),
            ));
        }
    };
    *input = "";
    Ok(Test::SloDelta {
        op,
        value,
        out_of_scope_only,
    })
}

/// Longer words first, so that `<=` is not read as `<`.
const OPS: [(&str, Op); 6] = [
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    ("<=", Op::LessOrEqual),
    (">=", Op::GreaterOrEqual),
    ("<", Op::Less),
    (">", Op::Greater),
];

fn op(input: &mut &str) -> Parsed<Op> {
    blank(input)?;
    let start = *input;
    let word = alt(("==", "!=", "<=", ">=", "<", ">"))
        .parse_next(input)
        .map_err(|_: Fault| {
            Fault::at(
                start,
                format!("expected one of == != < <= > >=, found {}", shown(start)),
            )
        })?;
    OPS.iter()
        .find(|(known, _)| *known == word)
        .map(|(_, op)| *op)
        .ok_or_else(|| Fault::at(start, "expected a comparison"))
}

fn number(input: &mut &str) -> Parsed<f64> {
    blank(input)?;
    let start = *input;
    let word =
        take_while(0.., |c: char| is_word(c) || matches!(c, '.' | '-' | '+')).parse_next(input)?;
    word.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .ok_or_else(|| Fault::at(start, format!("expected a number, found {}", shown(start))))
}

fn end(input: &mut &str) -> Parsed<()> {
    blank(input)?;
    if input.is_empty() {
        Ok(())
    } else {
        Err(Fault::at(
            input,
            format!("expected the end, found {}", shown(input)),
        ))
    }
}

fn blank(input: &mut &str) -> Parsed<()> {
    multispace0.void().parse_next(input)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a text is a DNS label as Kubernetes wants it in names.
pub fn is_label(text: &str) -> bool {
    /// RFC 1123.
    const MAX_LABEL: usize = 63;
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= MAX_LABEL
        && text.chars().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The next word of what is left, for a message.
fn shown(left: &str) -> String {
    /// Enough to recognise the place.
    const SHOWN_CHARS: usize = 24;
    match left.split_whitespace().next() {
        None => "nothing".to_owned(),
        Some(word) => format!("`{}`", word.chars().take(SHOWN_CHARS).collect::<String>()),
    }
}
