//! A run in a terminal, where a person sees its stages go by: what a test waits for before it kills.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::tier::Tier;

/// The stages in their order, as the progress line names them.
pub const STAGES: [&str; 8] = [
    "prepare", "healthy", "inject", "manifest", "work", "settle", "undo", "clean",
];
/// No stage but `work` may take longer than this; a run that shows none for so long hangs.
const PATIENCE: Duration = Duration::from_secs(400);
/// How often the screen is looked at: less than any stage takes that waits for anything.
const GLANCE: Duration = Duration::from_millis(2);

pub struct Watched {
    /// util-linux's `script`, which lends the terminal.
    lender: Child,
    /// Stands by to kill the run at one newline: starting a program takes longer than the shortest stage.
    killer: Child,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Watched {
    /// Starts a run in a terminal of its own.
    pub fn start(tier: &Tier, workspace: &str, args: &[&str]) -> Watched {
        let mut words = vec![tier.program().to_str().unwrap(), "run", "--yes"];
        words.extend(args);
        let place = tier.place();
        words.extend(place);
        assert!(words.iter().all(|word| !word.contains([' ', '\'', '$'])));
        let mut lender = Command::new("script")
            .args(["--quiet", "--flush", "--command"])
            .arg(format!("exec {}", words.join(" ")))
            .arg("/dev/null")
            .env("BREAKAGE_WORKSPACE", tier.path(workspace))
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let mut shown = lender.stdout.take().unwrap();
        let kept = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = shown.read(&mut piece) {
                kept.lock().unwrap().extend_from_slice(&piece[..length]);
            }
        });
        let killer = stand_by(&mut lender);
        Watched {
            lender,
            killer,
            screen,
        }
    }

    /// All that was ever on the screen.
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// The last stage that was shown, as its place in [`STAGES`].
    pub fn stage(&self) -> Option<usize> {
        let screen = self.screen();
        // The progress line is drawn again and again, each time from the line's start.
        let last = |stage: &str| {
            let starts =
                ["\r", "\n", "\u{1b}[2K"].map(|start| screen.rfind(&format!("{start}{stage} ")));
            starts.into_iter().flatten().max()
        };
        (0..STAGES.len())
            .filter_map(|at| Some((last(STAGES[at])?, at)))
            .max()
            .map(|(_, at)| at)
    }

    /// Waits until a stage, or a later one, is on the screen.
    pub fn wait_for(&mut self, stage: usize) {
        let started = Instant::now();
        while self.stage().is_none_or(|shown| shown < stage) {
            let ended = self.lender.try_wait().unwrap().is_some();
            assert!(
                !ended && started.elapsed() < PATIENCE,
                "never in {}: {}",
                STAGES[stage],
                self.screen()
            );
            std::thread::sleep(GLANCE);
        }
    }

    /// SIGKILL to the run itself; answers the stage that was on the screen then, or none where the run had ended.
    pub fn kill(mut self) -> Option<&'static str> {
        // The pipe breaks where the run could not be found any more.
        let sent = self.killer.stdin.take().unwrap().write_all(b"\n");
        let killed = self.killer.wait().unwrap().success() && sent.is_ok();
        self.lender.wait().unwrap();
        // What was drawn in the last moment stands in the pipe.
        std::thread::sleep(Duration::from_millis(50));
        self.stage().map(|at| STAGES[at]).filter(|_| killed)
    }
}

/// A shell that waits for one line and then kills the run, the lender's only child.
fn stand_by(lender: &mut Child) -> Child {
    let children = format!("/proc/{0}/task/{0}/children", lender.id());
    let started = Instant::now();
    let run = loop {
        let listed = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(run) = listed.split_whitespace().next() {
            break run.to_owned();
        }
        let ended = lender.try_wait().unwrap().is_some();
        assert!(
            !ended && started.elapsed() < PATIENCE,
            "no run in its terminal"
        );
        std::thread::sleep(GLANCE);
    };
    Command::new("/bin/sh")
        .args(["-c", "read line; kill -KILL \"$1\"", "sh", &run])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
