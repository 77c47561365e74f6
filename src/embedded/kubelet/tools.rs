//! Commands inside containers: the shell's own, the usual tools, and programs of the image.

use std::time::Duration;

use crate::embedded::image::{DEFAULT_PATH, Executable};
use crate::embedded::kubelet::machine::Machine;
use crate::embedded::kubelet::process::{self, Frame, Next, OnTerm, Owner, ProgramFrame};

impl Machine<'_> {
    /// Finds an executable of the image by path or along `PATH`.
    pub fn executable(&self, name: &str) -> Option<Executable> {
        let path = self
            .process
            .vars
            .get("PATH")
            .map_or(DEFAULT_PATH, String::as_str);
        let run = self.pod.run(&self.run_id)?;
        run.image
            .find(name, path)
            .map(|(_, executable)| executable.clone())
    }

    /// Runs a command line: builtins, then executables.
    pub fn command(&mut self, words: &[String]) -> Next {
        let name = words[0].as_str();
        let args = &words[1..];
        if let Some(next) = self.builtin(name, args) {
            return next;
        }
        self.execute(name, args)
    }

    fn execute(&mut self, name: &str, args: &[String]) -> Next {
        match self.executable(name) {
            None => {
                self.error(&format!("sh: {name}: not found\n"));
                self.done(127)
            }
            Some(Executable::Tool(tool)) => self.tool(&tool, args),
            Some(Executable::Program(program)) => self.start_program(&program, args),
        }
    }

    /// Puts a program on the stack, or says why it refuses its arguments.
    pub fn start_program(
        &mut self,
        program: &std::sync::Arc<crate::embedded::image::program::Program>,
        args: &[String],
    ) -> Next {
        if let (Some(commands), Some(first)) = (&program.commands, args.first())
            && !commands.contains(first)
        {
            self.error(&format!("{}\n", program.refusal.replace("{arg}", first)));
            return self.done(program.refusal_exit);
        }
        self.process.stack.push(Frame::Program(ProgramFrame {
            program: program.clone(),
            step: 0,
            filled_mib: 0,
            failing: None,
            database: None,
        }));
        if self.grow(program.base_kib) {
            Next::Again
        } else {
            Next::OutOfMemory
        }
    }

    /// The command is over with an exit status.
    pub fn done(&mut self, code: i32) -> Next {
        self.process.last = code;
        Next::Again
    }

    /// The command takes a while, then is over with an exit status.
    pub fn done_after(&mut self, wait: Duration, code: i32) -> Next {
        self.process.stack.push(Frame::Status(code));
        Next::Until(self.now() + wait)
    }

    fn builtin(&mut self, name: &str, args: &[String]) -> Option<Next> {
        let next = match name {
            ":" => self.done(0),
            "exit" => {
                let code = args
                    .first()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(self.process.last);
                self.leave(code & 0xff)
            }
            "exec" if args.is_empty() => self.done(0),
            "exec" => {
                self.process.stack.clear();
                if !args[0].contains('/') && self.executable(&args[0]).is_none() {
                    self.error(&format!("sh: exec: {}: not found\n", args[0]));
                    return Some(self.leave(127));
                }
                self.execute(&args[0], &args[1..])
            }
            "export" | "readonly" | "local" => {
                for pair in args {
                    if let Some((name, value)) = pair.split_once('=') {
                        self.process.vars.insert(name.to_owned(), value.to_owned());
                    }
                }
                self.done(0)
            }
            "unset" => {
                for name in args {
                    self.process.vars.remove(name);
                }
                self.done(0)
            }
            "set" => {
                if args.first().is_some_and(|arg| arg == "--") {
                    self.process.args = args[1..].to_vec();
                }
                self.done(0)
            }
            "cd" | "umask" | "ulimit" => self.done(0),
            "trap" => self.trap(args),
            "wait" => {
                self.process.last = 0;
                self.process.stack.push(Frame::WaitJobs);
                Next::Again
            }
            "kill" => self.kill(args),
            "command" | "type" | "which" => {
                let wanted = args.iter().find(|arg| !arg.starts_with('-'));
                let found = wanted.is_some_and(|name| self.executable(name).is_some());
                if let Some(name) = wanted.filter(|_| found) {
                    self.print(&format!("/bin/{name}\n"));
                }
                self.done(if found { 0 } else { 127 })
            }
            "eval" | "." | "source" => {
                let text = if name == "eval" {
                    args.join(" ")
                } else {
                    args.first()
                        .and_then(|path| self.read_file(path))
                        .unwrap_or_default()
                };
                self.run_text(&text)
            }
            _ => return None,
        };
        Some(next)
    }

    /// Ends the process, or only the substitution it is in.
    fn leave(&mut self, code: i32) -> Next {
        self.process.stack.clear();
        self.process.last = code;
        Next::Exit(code)
    }

    fn run_text(&mut self, text: &str) -> Next {
        match process::shell_frame(text, "sh") {
            Ok(frame) => {
                self.process.stack.push(frame);
                Next::Again
            }
            Err(why) => {
                self.error(&why);
                self.done(2)
            }
        }
    }

    fn trap(&mut self, args: &[String]) -> Next {
        let signals = args.get(1..).unwrap_or_default();
        let term = signals
            .iter()
            .any(|signal| matches!(signal.as_str(), "TERM" | "SIGTERM" | "15"));
        if term {
            self.process.on_term = match args[0].as_str() {
                "-" => OnTerm::Default,
                "" => OnTerm::Ignore,
                text => crate::embedded::kubelet::shell::parse(text)
                    .map_or(OnTerm::Ignore, OnTerm::Trap),
            };
        }
        self.done(0)
    }

    fn kill(&mut self, args: &[String]) -> Next {
        let hard = args
            .iter()
            .any(|arg| matches!(arg.as_str(), "-9" | "-KILL" | "-SIGKILL"));
        let probe_only = args.iter().any(|arg| arg == "-0");
        let Some(pid) = args
            .iter()
            .rfind(|arg| !arg.starts_with('-'))
            .and_then(|arg| arg.parse::<u32>().ok())
        else {
            return self.done(1);
        };
        let run_id = self.run_id.clone();
        if pid == 1 {
            // Process 1 cannot be killed from inside its own namespace, only asked to end.
            if !hard && !probe_only {
                if self.process.id == 1 {
                    if let OnTerm::Trap(script) = self.process.on_term.clone() {
                        self.process.pending_trap = Some(script);
                    }
                } else {
                    process::terminate(self.world, self.pod, &run_id);
                }
            }
            return self.done(0);
        }
        let job = pid.saturating_sub(6);
        let Some(run) = self.pod.run_mut(&run_id) else {
            return self.done(1);
        };
        let there = run
            .processes
            .iter()
            .any(|process| process.id == job && process.owner == Owner::Nobody);
        if there && !probe_only {
            run.processes.retain(|process| process.id != job);
            run.sockets.retain(|socket| socket.process != job);
        }
        if !there {
            self.error(&format!("sh: can't kill pid {pid}: No such process\n"));
        }
        self.done(i32::from(!there))
    }

    fn tool(&mut self, tool: &str, args: &[String]) -> Next {
        match tool {
            "true" => self.done(0),
            "false" => self.done(1),
            "sh" | "ash" | "bash" => self.shell(args),
            "sleep" => self.sleep(args),
            "echo" => {
                let plain = args.first().is_some_and(|arg| arg == "-n");
                let words =
                    &args[usize::from(plain || args.first().is_some_and(|arg| arg == "-e"))..];
                let end = if plain { "" } else { "\n" };
                self.print(&format!("{}{end}", words.join(" ")));
                self.done(0)
            }
            "printf" => {
                let text = printf(args);
                self.print(&text);
                self.done(0)
            }
            "test" | "[" => {
                let args = match args.split_last() {
                    Some((last, rest)) if tool == "[" && last == "]" => rest,
                    _ => args,
                };
                let truth = self.test(args);
                self.done(i32::from(!truth))
            }
            "env" | "printenv" => {
                let all: String = self
                    .process
                    .vars
                    .iter()
                    .map(|(name, value)| format!("{name}={value}\n"))
                    .collect();
                self.print(&all);
                self.done(0)
            }
            _ => self.small_tool(tool, args),
        }
    }

    /// Tools that tell about the container.
    fn small_tool(&mut self, tool: &str, args: &[String]) -> Next {
        match tool {
            "id" => {
                let user = self.user();
                let root = if user == "0" { "(root)" } else { "" };
                let group = self
                    .identity("runAsGroup")
                    .unwrap_or_else(|| "0".to_owned());
                let more = self.pod.spec()["securityContext"]["fsGroup"].as_i64();
                let more = more.map(|id| format!(",{id}")).unwrap_or_default();
                self.print(&format!(
                    "uid={user}{root} gid={group} groups={group}{more}\n"
                ));
                self.done(0)
            }
            "whoami" => {
                let user = self.user();
                self.print(&if user == "0" {
                    "root\n".to_owned()
                } else {
                    format!("{user}\n")
                });
                self.done(0)
            }
            "hostname" => {
                let name = format!("{}\n", self.pod.name);
                self.print(&name);
                self.done(0)
            }
            "date" => {
                let now = self.now();
                let text = if args.iter().any(|arg| arg.contains("%s")) {
                    (now.micros() / 1_000_000).to_string()
                } else {
                    now.seconds_text()
                };
                self.print(&format!("{text}\n"));
                self.done(0)
            }
            "uname" => {
                self.print("Linux\n");
                self.done(0)
            }
            "pwd" => {
                self.print("/\n");
                self.done(0)
            }
            "seq" => self.seq(args),
            "ps" => {
                self.print("PID   USER     TIME  COMMAND\n    1 root      0:00 sh\n");
                self.done(0)
            }
            _ => self.other_tool(tool, args),
        }
    }

    fn other_tool(&mut self, tool: &str, args: &[String]) -> Next {
        match tool {
            "cat" | "head" | "tail" | "grep" | "touch" | "ls" | "rm" | "mkdir" | "dd" | "stat" => {
                self.file_tool(tool, args)
            }
            "wget" | "curl" | "nslookup" | "nc" | "psql" | "pg_isready" | "redis-cli" => {
                self.network_tool(tool, args)
            }
            "httpd" => self.httpd(args),
            _ => self.done(0),
        }
    }

    /// The user id the container runs as.
    pub fn user(&self) -> String {
        let image = self.pod.run(&self.run_id).map(|run| run.image.user.clone());
        self.identity("runAsUser")
            .or(image.filter(|user| !user.is_empty()))
            .unwrap_or_else(|| "0".to_owned())
    }

    /// An id of the container's security context, or of the pod's.
    fn identity(&self, field: &str) -> Option<String> {
        let run = self.pod.run(&self.run_id)?;
        let own = self
            .pod
            .container_spec(&run.facts.name)
            .and_then(|(spec, _)| spec["securityContext"][field].as_i64());
        own.or_else(|| self.pod.spec()["securityContext"][field].as_i64())
            .map(|id| id.to_string())
    }

    fn shell(&mut self, args: &[String]) -> Next {
        let mut rest = args.iter().peekable();
        let mut command = false;
        while let Some(option) = rest.peek().filter(|arg| arg.starts_with('-')) {
            command |= option.contains('c');
            rest.next();
        }
        if command {
            let Some(text) = rest.next().cloned() else {
                self.error("sh: -c requires an argument\n");
                return self.done(2);
            };
            self.process.args = rest.skip(1).cloned().collect();
            return self.run_text(&text);
        }
        match rest.next() {
            Some(path) => match self.read_file(path) {
                Some(text) => self.run_text(&text),
                None => {
                    self.error(&format!(
                        "sh: can't open '{path}': No such file or directory\n"
                    ));
                    self.done(2)
                }
            },
            None => {
                // Reads commands from its input; a container has none, so it ends at once.
                let text = std::mem::take(&mut self.process.io.stdin);
                self.run_text(&text)
            }
        }
    }

    fn sleep(&mut self, args: &[String]) -> Next {
        let mut total = 0.0;
        for arg in args {
            let (digits, unit) = match arg.find(|c: char| c.is_ascii_alphabetic()) {
                Some(at) => arg.split_at(at),
                None => (arg.as_str(), "s"),
            };
            let factor = match (arg.as_str(), unit) {
                ("infinity" | "inf", _) => f64::INFINITY,
                (_, "s") => 1.0,
                (_, "m") => 60.0,
                (_, "h") => 3600.0,
                (_, "d") => 86_400.0,
                _ => f64::NAN,
            };
            total +=
                digits
                    .parse::<f64>()
                    .unwrap_or(if factor.is_infinite() { 1.0 } else { f64::NAN })
                    * factor;
        }
        if total.is_infinite() {
            self.process.stack.push(Frame::Status(0));
            return Next::Park;
        }
        if args.is_empty() || total.is_nan() || total < 0.0 {
            let what = args.first().cloned().unwrap_or_default();
            self.error(&format!("sleep: invalid number '{what}'\n"));
            return self.done(1);
        }
        // A century stands for ever.
        self.done_after(Duration::from_secs_f64(total.min(3.2e9)), 0)
    }

    fn seq(&mut self, args: &[String]) -> Next {
        let numbers: Vec<i64> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
        let (first, step, last) = match numbers.as_slice() {
            [last] => (1, 1, *last),
            [first, last] => (*first, 1, *last),
            [first, step, last] if *step > 0 => (*first, *step, *last),
            _ => (1, 1, 0),
        };
        let mut text = String::new();
        let mut n = first;
        // Output beyond this serves nobody.
        for _ in 0..10_000 {
            if n > last {
                break;
            }
            text.push_str(&format!("{n}\n"));
            n += step;
        }
        self.print(&text);
        self.done(0)
    }

    fn test(&self, args: &[String]) -> bool {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let number = |text: &str| text.trim().parse::<i64>().unwrap_or(0);
        match args.as_slice() {
            [] => false,
            ["!", rest @ ..] => {
                let rest: Vec<String> = rest.iter().map(|arg| (*arg).to_owned()).collect();
                !self.test(&rest)
            }
            [text] => !text.is_empty(),
            ["-n", text] => !text.is_empty(),
            ["-z", text] => text.is_empty(),
            ["-e", path] => self.exists(path),
            ["-f" | "-r" | "-w" | "-L", path] => self.exists(path) && !self.is_folder(path),
            ["-s", path] => self.read_file(path).is_some_and(|text| !text.is_empty()),
            ["-d", path] => self.is_folder(path),
            ["-x", path] => self.executable(path).is_some(),
            [left, operator, right] => match *operator {
                "=" | "==" => left == right,
                "!=" => left != right,
                "-eq" => number(left) == number(right),
                "-ne" => number(left) != number(right),
                "-lt" => number(left) < number(right),
                "-le" => number(left) <= number(right),
                "-gt" => number(left) > number(right),
                "-ge" => number(left) >= number(right),
                _ => false,
            },
            _ => false,
        }
    }
}

/// The formats of printf that matter: `%s`, `%d`, `%%`, `\n`, `\t`.
fn printf(args: &[String]) -> String {
    let Some((format, values)) = args.split_first() else {
        return String::new();
    };
    let mut values = values.iter();
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            '%' => match chars.next() {
                Some('%') => text.push('%'),
                Some(_) => text.push_str(values.next().map_or("", String::as_str)),
                None => text.push('%'),
            },
            other => text.push(other),
        }
    }
    text
}
