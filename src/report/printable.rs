//! Text of agents and files made safe for a terminal: what would move the cursor, change colours or turn the direction of
//! writing is shown instead of sent.

/// For one line: line ends are shown as well.
pub fn line(text: &str) -> String {
    visible(text, false)
}

/// For running text: line ends and tabs stay.
pub fn block(text: &str) -> String {
    visible(text, true)
}

/// The first `limit` characters of one line, with an ellipsis when something was left off.
pub fn short(text: &str, limit: usize) -> String {
    let text = line(text);
    if text.chars().count() <= limit {
        return text;
    }
    let mut cut: String = text.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

fn visible(text: &str, keep_lines: bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if keep_lines && (c == '\n' || c == '\t') || !is_unsafe(c) {
            safe.push(c);
        } else {
            safe.extend(c.escape_default());
        }
    }
    safe
}

/// Control characters, and marks that reorder or hide what stands beside them.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_command_the_terminal_is_shown() {
        assert_eq!(line("red \u{1b}[31mtext\r\n"), "red \\u{1b}[31mtext\\r\\n");
        assert_eq!(
            line("a\u{202e}b\u{9b}c\u{200b}"),
            "a\\u{202e}b\\u{9b}c\\u{200b}"
        );
        assert_eq!(block("one\n\ttwo\u{7}"), "one\n\ttwo\\u{7}");
        assert_eq!(line("データ 😀 ä | `"), "データ 😀 ä | `");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(short(&"ä".repeat(20_000), 5), "ääää…");
        assert_eq!(short("abc", 3), "abc");
    }
}
