//! Expansion of shell words and access to a container's files.

use crate::embedded::kubelet::machine::Machine;
use crate::embedded::kubelet::process::{Frame, Next, Sink};
use crate::embedded::kubelet::shell::{Part, Script, Word};
use crate::embedded::kubelet::volumes;

/// Longest text a variable, an expansion or a file holds here; a loop that doubles one must not fill the host.
pub const TEXT_MAX: usize = 128 * 1024;

/// Longest arithmetic expression.
const ARITHMETIC_MAX: usize = 200;

/// Steps that a command substitution may take; it takes no time.
const SUBSTITUTION_STEPS: u32 = 500;

impl Machine<'_> {
    /// Expands a word to one text, without splitting.
    pub fn expand_one(&mut self, word: &Word) -> String {
        let mut text = String::new();
        for part in &word.0 {
            text.push_str(&self.part(part).0);
            cut(&mut text);
        }
        text
    }

    /// Expands words, splitting what is not quoted.
    pub fn expand_all(&mut self, words: &[Word]) -> Vec<String> {
        let mut all = Vec::new();
        for word in words {
            let mut current: Option<String> = None;
            for part in &word.0 {
                let (mut text, whole) = self.part(part);
                cut(&mut text);
                if whole {
                    let current = current.get_or_insert_default();
                    current.push_str(&text);
                    cut(current);
                    continue;
                }
                if text.starts_with(char::is_whitespace) {
                    all.extend(current.take());
                }
                let mut pieces = text.split_whitespace().peekable();
                while let Some(piece) = pieces.next() {
                    current.get_or_insert_default().push_str(piece);
                    if pieces.peek().is_some() || text.ends_with(char::is_whitespace) {
                        all.extend(current.take());
                    }
                }
            }
            all.extend(current);
        }
        all
    }

    /// A part's text, and whether it stays in one piece.
    fn part(&mut self, part: &Part) -> (String, bool) {
        match part {
            Part::Text { text, .. } => (text.clone(), true),
            Part::Variable {
                name,
                default,
                alternative,
                quoted,
            } => {
                let value = self.variable(name);
                let set = !value.is_empty();
                let text = match (default, alternative) {
                    (Some(default), _) if !set => self.expand_text(default),
                    (_, Some(alternative)) if set => self.expand_text(alternative),
                    (_, Some(_)) => String::new(),
                    _ => value,
                };
                (text, *quoted)
            }
            Part::Command { script, quoted } => {
                let text = self.substitute(script.clone());
                (text.trim_end_matches('\n').to_owned(), *quoted)
            }
            Part::Arithmetic(text) => {
                let text: String = self
                    .expand_text(text)
                    .chars()
                    .take(ARITHMETIC_MAX)
                    .collect();
                (
                    arithmetic(&text, &|name| self.process.vars.get(name).cloned()).to_string(),
                    true,
                )
            }
        }
    }

    fn expand_text(&mut self, text: &str) -> String {
        match crate::embedded::kubelet::shell::parse(&format!("x \"{text}\"")) {
            Ok(script) => match script.first() {
                Some(crate::embedded::kubelet::shell::Node::Simple(simple))
                    if simple.words.len() == 2 =>
                {
                    let word = simple.words[1].clone();
                    self.expand_one(&word)
                }
                _ => text.to_owned(),
            },
            Err(_) => text.to_owned(),
        }
    }

    fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.process.last.to_string(),
            "$" => self.process.id.to_string(),
            "!" => self.process.last_job.to_string(),
            "#" => self.process.args.len().to_string(),
            "@" | "*" => self.process.args.join(" "),
            "0" => "sh".to_owned(),
            digit if digit.len() == 1 && digit.as_bytes()[0].is_ascii_digit() => digit
                .parse::<usize>()
                .ok()
                .and_then(|n| self.process.args.get(n - 1).cloned())
                .unwrap_or_default(),
            _ => self.process.vars.get(name).cloned().unwrap_or_default(),
        }
    }

    /// Runs a script to its end at once and gives its output. Whatever would wait does not.
    fn substitute(&mut self, script: Script) -> String {
        let outer_stack = std::mem::replace(
            &mut self.process.stack,
            vec![Frame::Script { script, next: 0 }],
        );
        let outer_io = self.process.io.clone();
        self.process.captures.push(String::new());
        let capture = self.process.captures.len() - 1;
        self.process.io.out = Sink::Capture(capture);
        for _ in 0..SUBSTITUTION_STEPS {
            if self.process.stack.is_empty() {
                break;
            }
            if matches!(self.step(), Next::Exit(_) | Next::Park | Next::OutOfMemory) {
                break;
            }
        }
        self.process.stack = outer_stack;
        self.process.io = outer_io;
        let text = std::mem::take(&mut self.process.captures[capture]);
        // Stages of pipes inside left captures of their own.
        self.process.captures.truncate(capture);
        text
    }

    /// The text of a file as this container sees it.
    pub fn read_file(&self, path: &str) -> Option<String> {
        let run = self.pod.run(&self.run_id)?;
        if let Some(text) = volumes::read(self.world, self.pod, &run.facts.name, path) {
            return Some(text);
        }
        let name = self.pod.name.as_str();
        match path {
            "/etc/hostname" => Some(format!("{name}\n")),
            "/etc/resolv.conf" => Some(format!(
                "search {}.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.43.0.10\noptions ndots:5\n",
                self.pod.namespace
            )),
            "/dev/zero" | "/dev/null" => Some(String::new()),
            _ => run
                .files
                .get(path)
                .or_else(|| run.image.files.get(path))
                .cloned(),
        }
    }

    /// Writes a file; the error is the system's word for why not.
    pub fn write_file(&mut self, path: &str, mut text: String) -> Result<(), &'static str> {
        cut(&mut text);
        let Some(run) = self.pod.run(&self.run_id) else {
            return Ok(());
        };
        let name = run.facts.name.clone();
        match volumes::write(self.pod, &name, path, &text) {
            Some(answer) => answer,
            None => {
                let root_only = self.pod.container_spec(&name).is_some_and(|(spec, _)| {
                    spec["securityContext"]["readOnlyRootFilesystem"] == true
                });
                if root_only {
                    return Err("Read-only file system");
                }
                if let Some(run) = self.pod.run_mut(&self.run_id) {
                    run.files.insert(path.to_owned(), text);
                }
                Ok(())
            }
        }
    }

    /// Whether a path exists, as a file or a folder.
    pub fn exists(&self, path: &str) -> bool {
        self.read_file(path).is_some() || self.is_folder(path) || self.executable(path).is_some()
    }

    /// Whether a path is a folder: it is one when something lies below it.
    pub fn is_folder(&self, path: &str) -> bool {
        if ["/", "/tmp", "/bin", "/etc", "/usr", "/var", "/dev", "/proc"].contains(&path) {
            return true;
        }
        let Some(run) = self.pod.run(&self.run_id) else {
            return false;
        };
        let below = format!("{}/", path.trim_end_matches('/'));
        volumes::mounted_at(self.pod, &run.facts.name, path)
            || run
                .files
                .keys()
                .chain(run.image.files.keys())
                .any(|file| file.starts_with(&below))
    }
}

/// Keeps a text within its limit.
pub fn cut(text: &mut String) {
    if text.len() > TEXT_MAX {
        let mut end = TEXT_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
}

/// Sums of integers and variables, left to right by precedence; what does not parse counts as 0.
fn arithmetic(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> i64 {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    for operators in [&['+', '-'][..], &['*', '/', '%'][..]] {
        if let Some(at) = text.rfind(operators).filter(|at| *at > 0) {
            let left = arithmetic(&text[..at], lookup);
            let right = arithmetic(&text[at + 1..], lookup);
            return match &text[at..=at] {
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right).unwrap_or(0),
                _ => left.checked_rem(right).unwrap_or(0),
            };
        }
    }
    text.parse()
        .ok()
        .or_else(|| lookup(text.trim_start_matches('$'))?.trim().parse().ok())
        .unwrap_or(0)
}
