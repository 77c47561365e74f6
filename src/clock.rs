//! The pace of tokio's clock: as fast as wall time, or a whole number of times faster.
//!
//! All code waits through tokio's clock, so whoever drives a future decides here how long an hour is. This is for work
//! that talks to another process, where time must pass by itself: a run within the process uses tokio's paused time
//! instead, which leaps from one timer to the next. The only module that looks at the wall's clock to make time.

use std::future::Future;
use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// The name of the extension of a kubeconfig's cluster that tells how fast the clock of the server behind it runs:
/// `{name: agent-breakage/clock, extension: {factor: 60}}`. Without it the server is none of ours, and its time is real.
pub const EXTENSION_NAME: &str = "agent-breakage/clock";
/// The field of the extension that holds the factor.
pub const EXTENSION_FACTOR: &str = "factor";

/// Faster clocks are refused: an answer over the loopback takes up to some milliseconds of wall time on a busy
/// machine, and at this factor that is already as long as a client's time limit.
pub const MAX_FACTOR: u32 = 1000;
/// A minute in each second: a run of ten minutes takes ten seconds, and an answer that takes 10 ms is still well within
/// a time limit of a second.
pub const DEFAULT_FACTOR: NonZeroU32 = NonZeroU32::new(60).expect("60 is not zero");

/// Wall time between two moves of a fast clock. Shorter ones would spend more on waking up than they smooth.
const TICK: Duration = Duration::from_millis(1);
/// A process that did not get to run for longer than this loses the time beyond it: its clock slows down rather than
/// leaping over answers that are on their way.
const MAX_MOVE: Duration = Duration::from_millis(5);
/// The clock's own time that passes at most before the tasks that wake in it get to run, so that a chain of short
/// waits takes about as long as it says.
const GRAIN: Duration = Duration::from_millis(20);

/// How fast tokio's clock runs against the wall's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As the wall's.
    #[default]
    Real,
    /// This many times faster.
    Fast(NonZeroU32),
}

/// A pace that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PaceError {
    #[error("a clock cannot run {0} times as fast; give a whole number from 1 to {MAX_FACTOR}")]
    Factor(String),
}

impl Pace {
    /// The pace of a factor from 1 to [`MAX_FACTOR`].
    pub fn of_factor(factor: u32) -> Result<Pace, PaceError> {
        match NonZeroU32::new(factor) {
            Some(NonZeroU32::MIN) => Ok(Pace::Real),
            Some(factor) if factor.get() <= MAX_FACTOR => Ok(Pace::Fast(factor)),
            _ => Err(PaceError::Factor(factor.to_string())),
        }
    }

    /// Seconds of the clock in one second of the wall's.
    pub fn factor(self) -> u32 {
        match self {
            Pace::Real => 1,
            Pace::Fast(factor) => factor.get(),
        }
    }

    /// What stands under [`EXTENSION_NAME`] in a kubeconfig.
    pub fn to_extension(self) -> Value {
        json!({ EXTENSION_FACTOR: self.factor() })
    }

    /// Reads what stands under [`EXTENSION_NAME`] in a kubeconfig.
    pub fn from_extension(extension: &Value) -> Result<Pace, PaceError> {
        let factor = &extension[EXTENSION_FACTOR];
        factor
            .as_u64()
            .and_then(|factor| u32::try_from(factor).ok())
            .ok_or_else(|| PaceError::Factor(factor.to_string()))
            .and_then(Pace::of_factor)
    }
}

/// Runs a future to its end on a runtime of this thread whose clock goes at the given pace. Timers, sockets and signals
/// work at any pace. Fails when the system gives no runtime; must not be called inside one.
pub fn block_on<F: Future>(pace: Pace, future: F) -> io::Result<F::Output> {
    block_on_after_leap(pace, async {}, |()| future)
}

/// As [`block_on`], after a first part whose waits cost nothing: while it lasts the clock leaps from one timer to the
/// next, so it must not wait for anything outside this process. What it answers is handed on to the second part.
pub fn block_on_after_leap<A, B: Future>(
    pace: Pace,
    first: impl Future<Output = A>,
    then: impl FnOnce(A) -> B,
) -> io::Result<B::Output> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(async {
        let answer = first.await;
        match pace {
            Pace::Real => tokio::time::resume(),
            Pace::Fast(factor) => wind(factor),
        }
        then(answer).await
    }))
}

/// Keeps the paused clock of this runtime moving until the runtime ends.
///
/// A paused clock leaps to the next timer as soon as every task waits, even where they wait for a socket, but never
/// while a blocking task is outstanding. So the ticks come from a blocking task, which is outstanding all the time.
fn wind(factor: NonZeroU32) {
    // One tick at most waits to be taken, so a runtime that is busy is not flooded afterwards.
    let (tick, mut ticks) = mpsc::channel::<()>(1);
    tokio::task::spawn_blocking(move || {
        while tick.blocking_send(()).is_ok() {
            std::thread::sleep(TICK);
        }
    });
    tokio::spawn(async move {
        let mut last = std::time::Instant::now();
        while ticks.recv().await.is_some() {
            let now = std::time::Instant::now();
            let mut rest = now.duration_since(last).min(MAX_MOVE) * factor.get();
            last = now;
            while !rest.is_zero() {
                let step = rest.min(GRAIN);
                tokio::time::advance(step).await;
                rest -= step;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    fn fast(factor: u32) -> Pace {
        Pace::of_factor(factor).expect("the factor is allowed")
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_fast_clock_moves_and_never_runs_ahead_of_its_factor() {
        let wall = std::time::Instant::now();
        let passed = block_on(fast(1000), async {
            let start = Instant::now();
            sleep(Duration::from_secs(60)).await;
            start.elapsed()
        })
        .expect("a runtime");
        assert!(passed >= Duration::from_secs(60));
        assert!(passed <= wall.elapsed() * 1000, "{passed:?} is too far");
    }

    #[test]
    fn real_time_is_as_long_as_the_walls() {
        let wall = std::time::Instant::now();
        block_on(Pace::Real, async { sleep(Duration::from_millis(20)).await }).expect("a runtime");
        assert!(wall.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn what_comes_before_real_time_costs_none() {
        let wall = std::time::Instant::now();
        let (leapt, passed) = block_on_after_leap(
            Pace::Real,
            async {
                let start = Instant::now();
                sleep(24 * HOUR).await;
                start
            },
            |start| async move {
                let leapt = start.elapsed();
                sleep(Duration::from_millis(20)).await;
                (leapt, start.elapsed())
            },
        )
        .expect("a runtime");
        assert!(leapt >= 24 * HOUR && wall.elapsed() < HOUR);
        assert!(passed - leapt >= Duration::from_millis(20));
        assert!(passed - leapt <= wall.elapsed(), "still leaping");
    }

    #[test]
    fn timers_of_a_fast_clock_keep_their_order() {
        let order = block_on(fast(1000), async {
            let (done, mut order) = mpsc::unbounded_channel();
            for ms in [700, 20, 3000, 21, 1500, 650, 19] {
                let done = done.clone();
                tokio::spawn(async move {
                    sleep(Duration::from_millis(ms)).await;
                    done.send(ms)
                });
            }
            drop(done);
            let mut seen = Vec::new();
            while let Some(ms) = order.recv().await {
                seen.push(ms);
            }
            seen
        })
        .expect("a runtime");
        assert_eq!(order, [19, 20, 21, 650, 700, 1500, 3000]);
    }

    #[test]
    fn a_chain_of_short_waits_takes_about_as_long_as_it_says() {
        // 50 waits of 100 ms at a pace of a second a tick: leaping a tick at a time would make 50 s of them.
        let passed = block_on(fast(1000), async {
            let start = Instant::now();
            for _ in 0..50 {
                sleep(Duration::from_millis(100)).await;
            }
            start.elapsed()
        })
        .expect("a runtime");
        assert!(
            passed >= Duration::from_secs(5) && passed < Duration::from_secs(7),
            "{passed:?}"
        );
    }

    #[test]
    fn an_exchange_over_the_loopback_works_at_a_fast_pace() {
        let answer = block_on(fast(60), async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("its address");
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut text = [0; 4];
                stream.read_exact(&mut text).await.expect("four bytes");
                sleep(Duration::from_secs(1)).await;
                stream.write_all(b"pong").await.expect("the client listens");
            });
            let mut stream = TcpStream::connect(address).await.expect("the server");
            stream.write_all(b"ping").await.expect("the server listens");
            let mut text = Vec::new();
            stream.read_to_end(&mut text).await.expect("an answer");
            text
        })
        .expect("a runtime");
        assert_eq!(answer, b"pong");
    }

    #[test]
    fn waiting_for_a_socket_lets_no_time_leap() {
        let pause = Duration::from_millis(50);
        let wall = std::time::Instant::now();
        let waited = block_on(fast(10), async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("its address");
            let client = std::thread::spawn(move || {
                std::thread::sleep(pause);
                std::net::TcpStream::connect(address).expect("the server listens")
            });
            let start = Instant::now();
            // With a paused clock alone this fires at once, for nothing else is left to wait for.
            let accepted = timeout(24 * HOUR, listener.accept()).await;
            assert!(accepted.is_ok(), "a day went by while a client was coming");
            drop(client);
            start.elapsed()
        })
        .expect("a runtime");
        assert!(waited <= wall.elapsed() * 10, "{waited:?} is too far");
    }

    #[test]
    fn a_kubeconfig_carries_the_pace() {
        for (pace, factor) in [(Pace::Real, 1), (fast(60), 60)] {
            let extension = pace.to_extension();
            assert_eq!(extension, json!({"factor": factor}));
            assert_eq!(Pace::from_extension(&extension), Ok(pace));
        }
        for wrong in [
            json!({}),
            json!({"factor": 0}),
            json!({"factor": "60"}),
            json!({"factor": 1001}),
        ] {
            assert!(Pace::from_extension(&wrong).is_err(), "{wrong}");
        }
    }
}
