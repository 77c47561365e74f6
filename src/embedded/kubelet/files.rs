//! The file tools of containers: `cat`, `head`, `tail`, `grep`, `touch`, `ls`, `rm`, `mkdir`, `dd`, `stat`.

use std::time::Duration;

use serde_json::Value;

use crate::embedded::kubelet::machine::Machine;
use crate::embedded::kubelet::process::{Frame, Next};
use crate::embedded::kubelet::volumes;

impl Machine<'_> {
    /// Runs one of the file tools.
    pub fn file_tool(&mut self, tool: &str, args: &[String]) -> Next {
        let paths: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
        match tool {
            "cat" => self.cat(&paths),
            "head" | "tail" => self.ends_of(tool, args),
            "grep" => self.grep(args, &paths),
            "touch" => {
                let mut code = 0;
                for path in paths {
                    let old = self.read_file(path).unwrap_or_default();
                    if let Err(why) = self.write_file(path, old) {
                        self.error(&format!("touch: {path}: {why}\n"));
                        code = 1;
                    }
                }
                self.done(code)
            }
            "ls" => self.ls(&paths),
            "stat" => {
                let missing = paths
                    .iter()
                    .find(|path| !self.exists(path))
                    .map(|path| (*path).clone());
                if let Some(path) = &missing {
                    self.error(&format!(
                        "stat: can't stat '{path}': No such file or directory\n"
                    ));
                }
                self.done(i32::from(missing.is_some()))
            }
            "rm" => {
                for path in paths {
                    let path = path.clone();
                    volumes::remove(self.pod, &self.run_id, &path);
                    if let Some(run) = self.pod.run_mut(&self.run_id) {
                        run.files.retain(|file, _| {
                            *file != path && !file.starts_with(&format!("{path}/"))
                        });
                    }
                }
                self.done(0)
            }
            "mkdir" => {
                for path in paths {
                    let keep = format!("{}/.", path.trim_end_matches('/'));
                    if let Some(run) = self.pod.run_mut(&self.run_id) {
                        run.files.insert(keep, String::new());
                    }
                }
                self.done(0)
            }
            _ => self.dd(args),
        }
    }

    fn missing(&mut self, tool: &str, path: &str) {
        self.error(&format!(
            "{tool}: can't open '{path}': No such file or directory\n"
        ));
    }

    fn cat(&mut self, paths: &[&String]) -> Next {
        if paths.is_empty() {
            let text = std::mem::take(&mut self.process.io.stdin);
            self.print(&text);
            return self.done(0);
        }
        let mut code = 0;
        for path in paths {
            match self.read_file(path) {
                Some(text) => self.print(&text),
                None => {
                    self.missing("cat", path);
                    code = 1;
                }
            }
        }
        self.done(code)
    }

    fn ends_of(&mut self, tool: &str, args: &[String]) -> Next {
        let mut lines = 10;
        let mut path = None;
        let mut follow = false;
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match arg.as_str() {
                "-n" => lines = rest.next().and_then(|text| text.parse().ok()).unwrap_or(10),
                "-f" | "-F" => follow = true,
                option if option.starts_with('-') => {
                    lines = option
                        .trim_start_matches(['-', 'n'])
                        .parse()
                        .unwrap_or(lines);
                }
                other => path = Some(other.to_owned()),
            }
        }
        if tool == "tail" && path.as_deref() == Some("/dev/zero") {
            // It looks for the end of a line that never ends.
            return self.exhaust(u64::MAX);
        }
        let text = match &path {
            Some(path) => match self.read_file(path) {
                Some(text) => text,
                None => {
                    self.missing(tool, path);
                    return self.done(1);
                }
            },
            None => std::mem::take(&mut self.process.io.stdin),
        };
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        let part = if tool == "head" {
            &all[..lines.min(all.len())]
        } else {
            &all[all.len().saturating_sub(lines)..]
        };
        self.print(&part.concat());
        if follow {
            self.process.stack.push(Frame::Status(0));
            return Next::Park;
        }
        self.done(0)
    }

    fn grep(&mut self, args: &[String], paths: &[&String]) -> Next {
        let Some((pattern, files)) = paths.split_first() else {
            return self.done(2);
        };
        let quiet = args
            .iter()
            .any(|arg| arg.starts_with('-') && arg.contains('q'));
        let text: String = if files.is_empty() {
            std::mem::take(&mut self.process.io.stdin)
        } else {
            files
                .iter()
                .filter_map(|path| self.read_file(path))
                .collect()
        };
        let hits: String = text
            .split_inclusive('\n')
            .filter(|line| line.contains(pattern.as_str()))
            .collect();
        if !quiet {
            self.print(&hits);
        }
        self.done(i32::from(hits.is_empty()))
    }

    fn ls(&mut self, paths: &[&String]) -> Next {
        let root = "/".to_owned();
        let mut code = 0;
        for path in if paths.is_empty() {
            vec![&root]
        } else {
            paths.to_vec()
        } {
            if !self.exists(path) {
                self.error(&format!("ls: {path}: No such file or directory\n"));
                code = 1;
                continue;
            }
            let names = self.names_below(path);
            if names.is_empty() && !self.is_folder(path) {
                self.print(&format!("{path}\n"));
            }
            let text: String = names.iter().map(|name| format!("{name}\n")).collect();
            self.print(&text);
        }
        self.done(code)
    }

    fn names_below(&self, path: &str) -> Vec<String> {
        let Some(run) = self.pod.run(&self.run_id) else {
            return Vec::new();
        };
        let below = format!("{}/", path.trim_end_matches('/'));
        let mut names: Vec<String> = run
            .files
            .keys()
            .chain(run.image.files.keys())
            .chain(run.image.executables.keys())
            .filter_map(|file| {
                file.strip_prefix(&below)?
                    .split('/')
                    .next()
                    .map(str::to_owned)
            })
            .chain(volumes::names(self.world, self.pod, &run.facts.name, path))
            .filter(|name| name != ".")
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn dd(&mut self, args: &[String]) -> Next {
        let option = |name: &str| {
            args.iter()
                .find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='))
        };
        let size = |text: Option<&str>, default: u64| -> u64 {
            let Some(text) = text else { return default };
            let digits = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            let factor = match &text[digits..] {
                "k" | "K" => 1024,
                "M" => 1024 * 1024,
                "G" => 1024 * 1024 * 1024,
                _ => 1,
            };
            text[..digits]
                .parse::<u64>()
                .unwrap_or(default)
                .saturating_mul(factor)
        };
        let blocks = size(option("count"), 1);
        let block = size(option("bs"), 512);
        let total = block.saturating_mul(blocks);
        if !self.has_room(block / 1024) {
            return self.exhaust(block / 1024);
        }
        let from = option("if").unwrap_or_default().to_owned();
        let Some(path) = option("of").map(str::to_owned) else {
            return self.done(0);
        };
        if path == "/dev/null" {
            // Reading costs processor time: about a gigabyte a second.
            let now = self.now();
            let Some(run) = self.pod.run_mut(&self.run_id) else {
                return Next::Again;
            };
            let done = run.cpu.charge(now, total / 1_000);
            self.process.stack.push(Frame::Status(0));
            return Next::Until(done);
        }
        let text = self.read_file(&from).unwrap_or_default();
        if let Err(why) = self.write_file(&path, text) {
            self.error(&format!("dd: can't open '{path}': {why}\n"));
            return self.done(1);
        }
        if self.in_memory(&path) && !self.has_room(total / 1024) {
            return self.exhaust(total / 1024);
        }
        volumes::note_written(self.pod, &self.run_id, &path, total);
        self.error(&format!("{blocks}+0 records in\n{blocks}+0 records out\n"));
        // A disk of some hundred megabytes a second.
        self.done_after(Duration::from_micros(total / 400), 0)
    }

    /// Whether a path lies on a volume that is kept in memory.
    fn in_memory(&self, path: &str) -> bool {
        let Some(run) = self.pod.run(&self.run_id) else {
            return false;
        };
        let Some((spec, _)) = self.pod.container_spec(&run.facts.name) else {
            return false;
        };
        let volumes = self.pod.spec()["volumes"].as_array();
        let below = |mount: &Value| {
            let at = mount["mountPath"].as_str().unwrap_or_default();
            path.strip_prefix(at)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        spec["volumeMounts"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|mount| below(mount))
            .any(|mount| {
                volumes.into_iter().flatten().any(|volume| {
                    volume["name"] == mount["name"] && volume["emptyDir"]["medium"] == "Memory"
                })
            })
    }

    fn has_room(&self, kib: u64) -> bool {
        let now = self.now();
        self.pod.run(&self.run_id).is_none_or(|run| {
            run.memory_limit_kib
                .is_none_or(|limit| run.memory_at(now).saturating_add(kib) <= limit)
        })
    }

    /// A tool that takes more memory than there is: it is killed. A container whose last word it was ends with it.
    fn exhaust(&mut self, kib: u64) -> Next {
        if self.has_room(kib) {
            return self.done(0);
        }
        if let Some(run) = self.pod.run_mut(&self.run_id) {
            if run.memory_limit_kib.is_none() {
                return Next::Park;
            }
            run.out_of_memory = true;
        }
        if self.process.id == 1 && self.process.stack.is_empty() {
            return Next::OutOfMemory;
        }
        self.error("Killed\n");
        self.done(137)
    }
}
