//! What conditions ask Prometheus, and how far back its answer may reach.

use crate::detect::expression::Test;

/// Prometheus is asked to leave out samples that are older, where it would go back five minutes by itself. Two scrapes
/// at the usual 30 s fit in, so that one that fails does not leave a gap.
pub const MAX_SAMPLE_AGE_S: u64 = 60;

/// The query of a test; none for tests that ask the cluster, and for those that no query is known for.
pub fn query_of(test: &Test) -> Option<String> {
    match test {
        Test::Promql { query, .. } => Some(query.clone()),
        Test::ErrorRate { namespace, .. } => Some(error_rate(namespace)),
        _ => None,
    }
}

/// The share of a namespace's requests that were answered 5xx in the last minute. Requests without one such answer are
/// a share of 0; no requests are NaN, and no metric at all is empty, so that neither passes for a good share.
fn error_rate(namespace: &str) -> String {
    let all = format!(
        "sum(rate(http_server_request_duration_seconds_count{{k8s_namespace_name=\"{namespace}\"}}[1m]))"
    );
    let failed = format!(
        "sum(rate(http_server_request_duration_seconds_count{{k8s_namespace_name=\"{namespace}\",\
         http_response_status_code=~\"5..\"}}[1m]))"
    );
    format!("({failed} or {all} * 0) / {all}")
}

/// How old the newest sample behind an answer may be, in milliseconds; none for tests that ask no query.
///
/// Never too small: the longest range of the text counts, and where ranges add up (subqueries, offsets) all of them.
pub fn reach_ms(test: &Test) -> Option<u64> {
    let query = query_of(test)?;
    let (durations, add_up) = durations_ms(&query);
    let ranges = if add_up {
        durations
            .iter()
            .fold(0u64, |sum, ms| sum.saturating_add(*ms))
    } else {
        durations.iter().copied().max().unwrap_or(0)
    };
    let instant = MAX_SAMPLE_AGE_S * 1000;
    Some(if add_up {
        instant.saturating_add(ranges)
    } else {
        instant.max(ranges)
    })
}

/// The durations of a query in milliseconds, outside quotes, and whether they may add up.
fn durations_ms(query: &str) -> (Vec<u64>, bool) {
    let bare = without_quotes(query);
    let words = bare.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let mut durations = Vec::new();
    let mut add_up = false;
    for word in words {
        add_up |= word == "offset";
        // `[5m:1m]` is a subquery; a colon inside a metric's name stands between letters and yields no durations.
        let parts: Vec<Option<u64>> = word.split(':').map(duration_ms).collect();
        add_up |= parts.len() > 1 && parts.iter().any(Option::is_some);
        durations.extend(parts.into_iter().flatten());
    }
    (durations, add_up)
}

/// The text with everything between quotes left out.
fn without_quotes(query: &str) -> String {
    let mut bare = String::with_capacity(query.len());
    let mut quote = None;
    let mut escaped = false;
    for c in query.chars() {
        match quote {
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None => bare.push(c),
            Some(open) => {
                if c == open && !escaped {
                    quote = None;
                    bare.push(' ');
                }
                escaped = c == '\\' && !escaped && open != '`';
            }
        }
    }
    bare
}

/// `1h30m` in milliseconds; none for other words, such as plain numbers.
fn duration_ms(word: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 7] = [
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("y", 31_536_000_000),
    ];
    let mut rest = word;
    let mut total = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..letters])?;
        total = total.saturating_add(number.saturating_mul(*unit));
        rest = &rest[letters..];
    }
    (!word.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::expression::Expression;

    fn reach_s(text: &str) -> Option<u64> {
        reach_ms(&Expression::parse(text).unwrap().test).map(|ms| ms / 1000)
    }

    #[test]
    fn an_answer_reaches_back_as_far_as_its_longest_range_and_never_less_than_a_sample_may_be_old()
    {
        for (text, expected) in [
            ("promql: up{job=\"x\"} == 1", Some(60)),
            ("promql: rate(x[30s]) < 1", Some(60)),
            ("promql: sum(rate(x[2m])) / sum(rate(y[1m])) < 1", Some(120)),
            ("promql: rate(x[1h30m]) < 1", Some(5_400)),
            // Ranges inside a subquery and offsets add up.
            (
                "promql: max_over_time(rate(x[2m])[5m:1m]) < 1",
                Some(60 + 120 + 300 + 60),
            ),
            ("promql: x - x offset 10m < 1", Some(60 + 600)),
            // Neither in quotes nor in a recording rule's name.
            ("promql: x{path=\"/a[9h]\\\"[9h]\"} < 1", Some(60)),
            ("promql: job:x:rate5m < 1", Some(60)),
            ("error_rate{ns=a} < 0.1", Some(60)),
            ("deployment.a.b.replicas == 1", None),
        ] {
            assert_eq!(reach_s(text), expected, "{text}");
        }
    }

    #[test]
    fn the_error_rate_asks_for_the_share_of_5xx_and_is_zero_only_where_there_were_requests() {
        let query = query_of(&Expression::parse("error_rate{ns=a} < 0.1").unwrap().test).unwrap();
        let all =
            "sum(rate(http_server_request_duration_seconds_count{k8s_namespace_name=\"a\"}[1m]))";
        assert!(
            query.ends_with(&format!(" or {all} * 0) / {all}")),
            "{query}"
        );
        assert!(
            query.contains("http_response_status_code=~\"5..\""),
            "{query}"
        );
    }
}
