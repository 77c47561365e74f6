//! Reports of experiments in every format: what they must say, how they say it, and that no text in them comes alive.

mod reports {
    pub mod analyses;
    mod parts;
}

use agent_breakage::experiment::analysis::model::Analysis;
use agent_breakage::ids::ScenarioId;
use agent_breakage::report::experiment;
use reports::analyses;

/// Every fixture by name.
fn all() -> Vec<(&'static str, Analysis)> {
    vec![
        ("falsification", analyses::falsification()),
        ("density", analyses::density()),
        ("degenerate", analyses::degenerate()),
        ("exploratory", analyses::exploratory()),
        ("hostile", analyses::hostile()),
    ]
}

fn readable(analysis: &Analysis) -> [(&'static str, String); 3] {
    [
        ("text", experiment::text(analysis)),
        ("markdown", experiment::markdown(analysis)),
        ("html", experiment::html(analysis)),
    ]
}

/// Writes the fixtures' reports to look at: `BREAKAGE_REPORTS_TO=DIR cargo test --test reports`.
#[test]
fn reports_are_written_for_eyes_when_asked_for() {
    let Ok(folder) = std::env::var("BREAKAGE_REPORTS_TO") else {
        return;
    };
    for (name, analysis) in all() {
        let write = |ending: &str, text: String| {
            let path = std::path::Path::new(&folder).join(format!("{name}.{ending}"));
            std::fs::write(&path, text).expect("the folder takes files");
            assert!(path.metadata().expect("it was written").len() > 0);
        };
        write("txt", experiment::text(&analysis));
        write("md", experiment::markdown(&analysis));
        write("html", experiment::html(&analysis));
        write("csv", experiment::csv(&analysis));
        write("results.csv", experiment::csv_results(&analysis));
        write("json", experiment::json(&analysis));
    }
}

#[test]
fn no_report_uses_a_word_that_claims_more_than_the_numbers() {
    for (name, analysis) in all() {
        for (format, text) in readable(&analysis) {
            let lower = text.to_lowercase();
            for word in [
                "significan",
                "no effect",
                "trend",
                "near-significant",
                "proves",
                "nan",
                "infinity",
            ] {
                assert!(!has_word(&lower, word), "{name} {format}: {word}");
            }
        }
    }
}

/// Whether a word begins so; "nan" inside "finance" is none.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let short = word.len() <= 3 && after.is_some_and(char::is_alphanumeric);
        !before.is_some_and(char::is_alphanumeric) && !short
    })
}

#[test]
fn an_exploratory_report_says_so_at_the_top_and_never_confirms() {
    for (format, text) in readable(&analyses::exploratory()) {
        let body = text
            .split("</style>")
            .last()
            .unwrap_or(&text)
            .to_lowercase();
        let at = body.find("exploratory").expect("it says so");
        let first_table = body.find("hypotheses").expect("it has tables");
        assert!(at < first_table, "{format}");
        assert!(
            body.contains("nothing in this report decides anything"),
            "{format}"
        );
        assert!(body.contains("scores were read before the end"), "{format}");
        for word in ["confirm", "the data landed", "landed in row"] {
            assert!(!body.contains(word), "{format}: {word}");
        }
    }
    let kept = experiment::text(&analyses::falsification());
    assert!(kept.contains("The data landed in row extend"), "{kept}");
}

#[test]
fn a_simulation_says_so_before_any_number() {
    for (format, text) in readable(&analyses::falsification()) {
        let body = text.split("</style>").last().unwrap_or(&text);
        let warning = body.find("no evidence about real agents").expect(format);
        let answer = body
            .find("Decision")
            .or(body.find("DECISION"))
            .expect(format);
        assert!(warning < answer, "{format}");
    }
    let real = experiment::text(&analyses::exploratory());
    assert!(!real.to_lowercase().contains("simulat"), "{real}");
}

#[test]
fn text_fits_100_columns_and_gives_the_answer_first() {
    for (name, analysis) in all() {
        let text = experiment::text(&analysis);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
            assert_eq!(line.trim_end(), line, "{name}: blanks at the end");
        }
        let hash = text
            .find(analysis.registration.hash.as_str())
            .expect("the hash");
        let tables = text.find("Hypotheses:").expect("tables");
        assert!(hash < tables, "{name}");
    }
    let text = experiment::text(&analyses::falsification());
    assert!(text.contains("0.700x3 0.805x3 0.910x12 0.940x2"), "{text}");
    assert!(
        text.contains("> extend") || text.contains(">  extend"),
        "{text}"
    );
}

#[test]
fn every_format_has_the_same_sections_in_the_same_order() {
    let titles = [
        "Registration",
        "What became of every run",
        "Was the treatment delivered?",
        "Decision",
        "Results by scenario",
        "Average over the scenarios",
        "Dose: the treatment over the tiers",
        "Axes and rates",
        "Exclusions",
        "Drift, order and carry-over",
        "Other rubrics, credits and tests",
        "Achieved precision",
        "Calibration of the instrument",
        "Computing this again",
    ];
    for (format, text) in readable(&analyses::density()) {
        let mut from = 0;
        for title in titles {
            let title = match format {
                "text" => format!("\n{title}\n-"),
                "markdown" => format!("\n## {title}\n"),
                _ => format!("-title\">{title}</h2>"),
            };
            let at = text[from..].find(&title);
            from += at.unwrap_or_else(|| panic!("{format}: {title:?} is missing or out of order"));
        }
    }
}

#[test]
fn markdown_tables_keep_their_columns_whatever_stands_in_them() {
    for (name, analysis) in all() {
        let mut width = None;
        for line in experiment::markdown(&analysis).lines() {
            if !line.starts_with('|') {
                width = None;
                continue;
            }
            let columns = unescaped_pipes(line);
            assert_eq!(*width.get_or_insert(columns), columns, "{name}: {line}");
        }
    }
}

fn unescaped_pipes(line: &str) -> usize {
    let (mut count, mut escaped) = (0, false);
    for c in line.chars() {
        match c {
            '\\' => escaped = !escaped,
            '|' if !escaped => count += 1,
            _ => escaped = false,
        }
        if c == '|' {
            escaped = false;
        }
    }
    count
}

#[test]
fn html_is_well_formed_and_needs_nothing_from_outside() {
    for (name, analysis) in all() {
        let html = experiment::html(&analysis);
        let tree = parse(&html);
        for node in tree.descendants().filter(roxmltree::Node::is_element) {
            let tag = node.tag_name().name();
            assert!(
                ![
                    "script",
                    "link",
                    "img",
                    "iframe",
                    "object",
                    "embed",
                    "foreignObject",
                    "use"
                ]
                .contains(&tag),
                "{name}: <{tag}>"
            );
            for attribute in node.attributes() {
                let (key, value) = (attribute.name(), attribute.value());
                assert!(!key.starts_with("on"), "{name}: {key}");
                assert!(key != "href" || value.starts_with('#'), "{name}: {value}");
                assert!(
                    !["src", "style", "xlink:href"].contains(&key),
                    "{name}: {key}"
                );
            }
        }
        for outside in ["http://", "https://", "@import", "url("] {
            assert!(!html.contains(outside), "{name}: {outside}");
        }
    }
}

#[test]
fn every_link_has_its_target_and_every_id_is_there_once() {
    for (name, analysis) in all() {
        let html = experiment::html(&analysis);
        let tree = parse(&html);
        let ids: Vec<&str> = tree
            .descendants()
            .filter_map(|node| node.attribute("id"))
            .collect();
        let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len(), "{name}");
        for node in tree.descendants() {
            let named = node.attribute("aria-labelledby").unwrap_or_default();
            let linked = node
                .attribute("href")
                .and_then(|href| href.strip_prefix('#'));
            for id in named.split_whitespace().chain(linked) {
                assert!(ids.contains(&id), "{name}: {id}");
            }
        }
    }
}

#[test]
fn every_plot_says_what_it_shows_and_holds_only_numbers() {
    for (name, analysis) in all() {
        let html = experiment::html(&analysis);
        let tree = parse(&html);
        let plots: Vec<_> = tree
            .descendants()
            .filter(|node| node.has_tag_name("svg"))
            .collect();
        assert!(plots.len() >= 4, "{name}: {}", plots.len());
        for plot in plots {
            let told = |tag| {
                plot.children()
                    .find(|node| node.has_tag_name(tag))
                    .and_then(|node| node.text().map(str::len))
            };
            assert!(told("title") > Some(5) && told("desc") > Some(20), "{name}");
            for node in plot.descendants() {
                for key in [
                    "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height",
                ] {
                    if let Some(value) = node.attribute(key) {
                        let number: f64 = value.parse().expect(value);
                        assert!(
                            number.is_finite() && number > -50.0,
                            "{name}: {key} {value}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_run_order_plot_has_a_mark_for_every_run_that_counts() {
    let analysis = analyses::falsification();
    let html = experiment::html(&analysis);
    let tree = parse(&html);
    let plot = tree
        .descendants()
        .find(|node| node.attribute("id") == Some("plot-order"))
        .expect("the plot");
    let marks = |tag: &str, class: &str| {
        plot.descendants()
            .filter(|node| node.has_tag_name(tag) && node.attribute("class") == Some(class))
            .count()
    };
    // One more of each in the legend.
    let of = |arm: &str| {
        analysis
            .runs
            .iter()
            .filter(|run| run.arm.as_str() == arm)
            .count()
            + 1
    };
    assert_eq!(marks("circle", "s1"), of("treatment"));
    assert_eq!(marks("rect", "s0 hollow"), of("control"));
}

#[test]
fn the_landed_row_is_marked_once_and_its_rule_is_quoted() {
    let html = experiment::html(&analyses::falsification());
    let tree = parse(&html);
    let marked: Vec<String> = tree
        .descendants()
        .filter(|node| node.attribute("class") == Some("landed"))
        .filter_map(|node| node.parent()?.parent().map(|row| words_of(&row)))
        .collect();
    assert_eq!(marked.len(), 1, "{marked:?}");
    assert!(marked[0].contains("extend"), "{marked:?}");
    assert!(html.contains("pooled == inconclusive or benefit in 1..2"));
}

#[test]
fn text_of_agents_is_seen_and_not_obeyed() {
    let hostile = analyses::hostile();
    let html = experiment::html(&hostile);
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for (format, text) in readable(&hostile) {
        for c in ['\u{1b}', '\u{202e}', '\r'] {
            assert!(!text.contains(c), "{format} holds {c:?}");
        }
    }
    let csv = experiment::csv(&hostile);
    assert!(csv.contains("\"'=1+1\""), "{csv}");
    assert!(!csv.contains(",=") && !csv.contains(",\"="), "{csv}");
    // What another program reads is told as it is.
    let json: serde_json::Value = serde_json::from_str(&experiment::json(&hostile)).expect("JSON");
    assert_eq!(
        json["registration"]["title"].as_str(),
        Some(analyses::HOSTILE.join(" ").as_str())
    );
}

#[test]
fn csv_has_a_row_for_every_run_and_every_result() {
    for (name, analysis) in all() {
        let runs = experiment::csv(&analysis);
        assert_eq!(runs.lines().count(), 1 + analysis.runs.len(), "{name}");
        let results = experiment::csv_results(&analysis);
        let expected: usize = analysis
            .comparisons
            .iter()
            .map(|one| one.scenarios.len() + usize::from(one.pooled.is_some()))
            .sum();
        assert_eq!(results.lines().count(), 1 + expected, "{name}");
        for text in [runs, results] {
            let mut lines = text.lines().map(cells);
            let width = lines.next().expect("headings");
            assert!(lines.all(|cells| cells == width), "{name}: {text}");
            assert!(!text.contains("NaN") && !text.contains("null"), "{name}");
        }
    }
    let results = experiment::csv_results(&analyses::falsification());
    let row = results.lines().nth(3).expect("the third scenario");
    assert!(
        row.contains(",-0.0"),
        "a difference below 0 is a number: {row}"
    );
}

/// Cells of a line; commas in quotes are none.
fn cells(line: &str) -> usize {
    let mut quoted = false;
    1 + line
        .chars()
        .filter(|c| {
            quoted ^= *c == '"';
            *c == ',' && !quoted
        })
        .count()
}

#[test]
fn json_has_neither_null_nor_words_for_numbers() {
    for (name, analysis) in all() {
        let text = experiment::json(&analysis);
        let value: serde_json::Value = serde_json::from_str(&text).expect(name);
        assert!(!text.contains(": null"), "{name}");
        assert_eq!(
            value["comparisons"].as_array().map(Vec::len),
            Some(analysis.comparisons.len()),
            "{name}"
        );
    }
}

#[test]
fn what_cannot_be_said_is_said_in_words() {
    let text = experiment::markdown(&analyses::degenerate());
    for words in [
        "**Treatment not delivered.**",
        "There is no pooled estimate: no run of readiness-probe-wrong-port counts",
        "readiness-probe-wrong-port, treatment: crashed 1, fault-vanished 7",
        "ABOVE the registered cap",
        "No calibration of this build is known",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_a_p_is_worth_stands_beside_it() {
    let text = |analysis: &Analysis| {
        let told = experiment::text(analysis);
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = text(&analyses::density());
    assert!(
        told.contains("(exploratory, not adjusted for the other tests)"),
        "{told}"
    );
    let mut analysis = analyses::falsification();
    let pooled = analysis.comparisons[0].pooled.as_mut().expect("pooled");
    pooled.unlike_effects = true;
    let one = pooled.cochran_q.as_mut().expect("three scenarios");
    one.p = 0.09;
    analysis.comparisons[0].exclusions.p = None;
    let told = text(&analysis);
    assert!(told.contains("Cochran's Q has p < 0.10 (0.09"), "{told}");
    assert!(!told.contains("more than chance"), "{told}");
    assert!(
        told.contains("nothing to test for whether the arms lost runs unevenly"),
        "{told}"
    );
}

#[test]
fn the_forest_plot_has_room_for_a_long_name() {
    let mut analysis = analyses::falsification();
    let name = "secret-key-removed-under-a-courier-that-two-replicas-need";
    analysis.comparisons[0].scenarios[0].scenario = ScenarioId::new(name);
    let html = experiment::html(&analysis);
    if let Ok(folder) = std::env::var("BREAKAGE_REPORTS_TO") {
        let path = std::path::Path::new(&folder).join("long-name.html");
        std::fs::write(path, &html).expect("the folder takes files");
    }
    let page = parse(&html);
    let lines: Vec<&str> = page
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    let whole = lines.windows(2).any(|two| two.concat() == name);
    assert!(whole, "{lines:#?}");
}

#[test]
fn the_same_analysis_gives_the_same_bytes() {
    for ((name, first), (_, second)) in all().into_iter().zip(all()) {
        assert_eq!(
            experiment::html(&first),
            experiment::html(&second),
            "{name}"
        );
        assert_eq!(
            experiment::json(&first),
            experiment::json(&second),
            "{name}"
        );
    }
}

fn words_of(node: &roxmltree::Node) -> String {
    node.descendants()
        .filter_map(|node| node.text())
        .collect::<Vec<_>>()
        .join(" ")
}

fn parse(html: &str) -> roxmltree::Document<'_> {
    let body = html
        .strip_prefix("<!DOCTYPE html>\n")
        .expect("it is HTML 5");
    roxmltree::Document::parse(body).unwrap_or_else(|error| panic!("{error}"))
}
