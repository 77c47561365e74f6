//! Scores from CSV: columns `arm,score`, or one column per arm.

use std::path::Path;

use anyhow::anyhow;

use crate::cli::failure::Failure;
use crate::cli::stats::read;
use crate::stats::sample::{MICRO, Sample};

/// Scores by arm, in the order in which the arms first appear.
pub(super) struct Table {
    pub(super) arms: Vec<(String, Vec<i64>)>,
    /// The file, as it is named in messages.
    pub(super) name: String,
}

impl Table {
    pub(super) fn read(path: &Path) -> Result<Table, Failure> {
        let name = if path.as_os_str() == "-" {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        parse(&name, &read(path)?)
    }

    /// The arm of this name, or the only one that is left once `other` is taken.
    pub(super) fn pick(&self, wanted: &str) -> Result<Sample, Failure> {
        let found = self.arms.iter().find(|(arm, _)| arm == wanted);
        let (_, scores) = found.ok_or_else(|| {
            let known: Vec<&str> = self.arms.iter().map(|(arm, _)| arm.as_str()).collect();
            Failure::input(anyhow!("{}: no arm `{wanted}`", self.name))
                .hint(format!("the arms are: {}", known.join(", ")))
        })?;
        Ok(Sample::new(scores.iter().copied()))
    }
}

fn parse(name: &str, text: &str) -> Result<Table, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let open = (1..).zip(text.lines()).find(|(_, line)| {
        !line.trim_start().starts_with('#') && line.matches('"').count() % 2 == 1
    });
    if let Some((line, _)) = open {
        return Err(Failure::input(anyhow!(
            "{name}:{line}: a quote without its other one in the same line"
        ))
        .hint("arms are names and scores are numbers: neither needs quotes, and neither goes over lines"));
    }
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let Some((_, header)) = lines.next() else {
        return Err(Failure::input(anyhow!("{name}: empty")).hint(EXPECTED));
    };
    let columns = fields(header);
    let table = if columns == ["arm", "score"] {
        long(name, lines)?
    } else {
        wide(name, &columns, lines)?
    };
    Ok(Table {
        arms: table,
        name: name.to_owned(),
    })
}

const EXPECTED: &str = "the first line names the columns: `arm,score`, or one column per arm such as `treatment,control`";

type Arms = Vec<(String, Vec<i64>)>;

fn long<'a>(name: &str, lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Arms, Failure> {
    let mut arms: Arms = Vec::new();
    for (line, text) in lines {
        let fields = fields(text);
        let [arm, score] = fields.as_slice() else {
            return Err(Failure::input(anyhow!(
                "{name}:{line}: {} fields where `arm,score` has 2",
                fields.len()
            )));
        };
        if arm.is_empty() {
            return Err(Failure::input(anyhow!(
                "{name}:{line}: field `arm` is empty"
            )));
        }
        let score = micro(name, line, "score", score)?;
        match arms.iter_mut().find(|(known, _)| known == arm) {
            Some((_, scores)) => scores.push(score),
            None => arms.push((arm.clone(), vec![score])),
        }
    }
    Ok(arms)
}

/// Columns may be of different length: an empty field is no score.
fn wide<'a>(
    name: &str,
    columns: &[String],
    lines: impl Iterator<Item = (usize, &'a str)>,
) -> Result<Arms, Failure> {
    if columns.iter().any(|column| column.parse::<f64>().is_ok()) {
        return Err(
            Failure::input(anyhow!("{name}:1: numbers where column names are expected"))
                .hint(EXPECTED),
        );
    }
    for (at, column) in columns.iter().enumerate() {
        if column.is_empty() || columns[..at].contains(column) {
            return Err(Failure::input(anyhow!(
                "{name}:1: column {} has no name of its own",
                at + 1
            ))
            .hint(EXPECTED));
        }
    }
    let mut arms: Arms = columns.iter().map(|c| (c.clone(), Vec::new())).collect();
    for (line, text) in lines {
        let fields = fields(text);
        if fields.len() > columns.len() {
            return Err(Failure::input(anyhow!(
                "{name}:{line}: {} fields where {} columns are named",
                fields.len(),
                columns.len()
            )));
        }
        for ((arm, scores), field) in arms.iter_mut().zip(&fields) {
            if !field.is_empty() {
                scores.push(micro(name, line, arm, field)?);
            }
        }
    }
    Ok(arms)
}

/// No quoting beyond a pair of quotes around a field: arms are names and scores are numbers.
fn fields(line: &str) -> Vec<String> {
    line.split([',', ';', '\t'])
        .map(|field| field.trim().trim_matches('"').trim().to_owned())
        .collect()
}

fn micro(name: &str, line: usize, field: &str, text: &str) -> Result<i64, Failure> {
    let refuse = |what: &str| {
        Failure::input(anyhow!("{name}:{line}: field `{field}`: {what}"))
            .hint("scores are numbers from 0 to 1; leave out a run that has none")
    };
    let score: f64 = text
        .parse()
        .map_err(|_| refuse(&format!("`{text}` is not a number")))?;
    if score.is_nan() {
        return Err(refuse("NaN is not a score"));
    }
    if !(0.0..=1.0).contains(&score) {
        return Err(refuse(&format!("{text} is not between 0 and 1")));
    }
    Ok((score * MICRO).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        match parse("scores.csv", text) {
            Ok(_) => "accepted".to_owned(),
            Err(failure) => failure.source.to_string(),
        }
    }

    #[test]
    fn both_shapes_give_the_same_scores() {
        let long = parse("a", "arm,score\nt,0.91\nc,0.5\nt,0.805\n").expect("long");
        let wide = parse("b", "\u{feff}t,c\r\n0.91,0.5\r\n\r\n0.805,\r\n").expect("wide");
        assert_eq!(long.arms, wide.arms);
        assert_eq!(long.arms[0], ("t".to_owned(), vec![910_000, 805_000]));
    }

    #[test]
    fn what_is_no_score_is_refused_with_file_line_and_field() {
        assert_eq!(
            error("arm,score\nt,0.9\nt,NaN\n"),
            "scores.csv:3: field `score`: NaN is not a score"
        );
        assert_eq!(
            error("t,c\n0.9,1.2\n"),
            "scores.csv:2: field `c`: 1.2 is not between 0 and 1"
        );
        assert_eq!(
            error("arm,score\nt,inf\n"),
            "scores.csv:2: field `score`: inf is not between 0 and 1"
        );
        assert_eq!(
            error("arm,score\n\nt,high\n"),
            "scores.csv:3: field `score`: `high` is not a number"
        );
    }

    #[test]
    fn a_file_without_names_is_refused() {
        assert_eq!(error(""), "scores.csv: empty");
        assert_eq!(
            error("0.9,0.8\n0.7,0.6\n"),
            "scores.csv:1: numbers where column names are expected"
        );
        assert_eq!(
            error("t,t\n"),
            "scores.csv:1: column 2 has no name of its own"
        );
        assert_eq!(
            error("t,c\n1,1,1\n"),
            "scores.csv:2: 3 fields where 2 columns are named"
        );
    }
}
