//! The small web server of busybox: it serves the files of a folder on a port.

use std::sync::Arc;

use crate::embedded::image::program::{Amount, Listen, Path, Program, Protocol, Step};
use crate::embedded::kubelet::machine::Machine;
use crate::embedded::kubelet::process::{self, Frame, Next, Owner, Process, ProgramFrame};

/// What the server keeps resident: a static busybox shares all of its code with the shell.
const RESIDENT_KIB: u64 = 240;
/// Processor time of one request, in microseconds: a fork, one small file.
const REQUEST_US: u64 = 450;
/// What it says of a file that is not there.
const NOT_FOUND: &str = "<HTML><HEAD><TITLE>404 Not Found</TITLE></HEAD>\n<BODY><H1>404 Not Found</H1>\nThe requested URL was not found\n</BODY></HTML>\n";
/// The port without `-p`.
const DEFAULT_PORT: u64 = 80;

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    foreground: bool,
    port: u64,
    home: String,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            foreground: false,
            port: DEFAULT_PORT,
            home: "/".to_owned(),
        };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                continue;
            };
            for (at, letter) in letters.char_indices() {
                match letter {
                    'f' => options.foreground = true,
                    'v' | 'i' => {}
                    'p' | 'h' | 'c' | 'u' | 'r' | 'e' | 'd' | 'm' => {
                        let attached = &letters[at + 1..];
                        let value = match attached {
                            "" => rest.next().cloned(),
                            text => Some(text.to_owned()),
                        };
                        let value = value.ok_or_else(|| {
                            format!("httpd: option requires an argument -- '{letter}'\n")
                        })?;
                        options.take(letter, &value)?;
                        break;
                    }
                    other => return Err(format!("httpd: unrecognized option: {other}\n")),
                }
            }
        }
        Ok(options)
    }

    fn take(&mut self, letter: char, value: &str) -> Result<(), String> {
        match letter {
            'p' => {
                // An address before the port binds to it; pods have one.
                let digits = value.rsplit(':').next().unwrap_or(value);
                let port = digits.parse::<u16>().ok().filter(|port| *port > 0);
                self.port = port
                    .map(u64::from)
                    .ok_or_else(|| format!("httpd: invalid number '{digits}'\n"))?;
            }
            'h' => value.clone_into(&mut self.home),
            _ => {}
        }
        Ok(())
    }
}

impl Machine<'_> {
    /// `httpd [-f] [-p PORT] [-h HOME]`. It serves what the folder holds when it starts.
    pub fn httpd(&mut self, args: &[String]) -> Next {
        let options = match Options::parse(args) {
            Ok(options) => options,
            Err(why) => {
                self.error(&why);
                return self.done(1);
            }
        };
        if options.home != "/" && !self.is_folder(&options.home) {
            self.error(&format!(
                "httpd: can't change directory to '{}': No such file or directory\n",
                options.home
            ));
            return self.done(1);
        }
        let program = Arc::new(self.server(&options));
        if options.foreground {
            return self.start_program(&program, &[]);
        }
        if !self.grow(program.base_kib) {
            return Next::OutOfMemory;
        }
        let frame = Frame::Program(ProgramFrame {
            program,
            step: 0,
            filled_mib: 0,
            failing: None,
            database: None,
        });
        let daemon = Process::new(0, self.process.vars.clone(), frame, Owner::Nobody);
        process::spawn(self.world, self.pod, &self.run_id, daemon);
        self.done(0)
    }

    fn server(&self, options: &Options) -> Program {
        let below = format!("{}/", options.home.trim_end_matches('/'));
        let mut files: Vec<(String, String)> = Vec::new();
        if let Some(run) = self.pod.run(&self.run_id) {
            let all = run.image.files.iter().chain(run.files.iter());
            for (file, body) in all {
                let Some(name) = file.strip_prefix(&below) else {
                    continue;
                };
                if name == "index.html" || name.ends_with("/index.html") {
                    let folder = name.trim_end_matches("index.html");
                    files.push((format!("/{folder}"), body.clone()));
                }
                if !name.ends_with("/.") && name != "." {
                    files.push((format!("/{name}"), body.clone()));
                }
            }
        }
        let paths = files
            .into_iter()
            .map(|(path, body)| Path {
                path,
                prefix: false,
                status: 200,
                cpu_us_each: REQUEST_US,
                cpu_times: Amount::fixed(1),
                body,
                ..Path::default()
            })
            .collect();
        Program {
            name: "httpd".to_owned(),
            base_kib: RESIDENT_KIB,
            steps: vec![Step::Listen(Listen {
                port: Amount::fixed(options.port),
                loopback: false,
                speaks: Protocol::Http {
                    paths,
                    not_found: NOT_FOUND.to_owned(),
                },
            })],
            // It installs no handler, so process 1 ignores SIGTERM and the whole grace period is waited for.
            ..Program::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&args)
    }

    #[test]
    fn options_are_read_apart_and_together() {
        let wanted = Options {
            foreground: true,
            port: 8080,
            home: "/www".to_owned(),
        };
        for line in [
            "-f -p 8080 -h /www",
            "-fp8080 -h/www",
            "-fp 0.0.0.0:8080 -h /www",
        ] {
            assert_eq!(parsed(line).unwrap(), wanted, "{line}");
        }
        assert_eq!(parsed("").unwrap().port, 80);
    }

    #[test]
    fn a_port_that_is_none_is_refused() {
        for line in ["-p", "-p http", "-p 0", "-p 70000", "-x"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
