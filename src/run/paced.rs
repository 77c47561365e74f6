//! A future that cannot keep the clock from moving.
//!
//! In virtual time the clock moves only when nobody has anything to do. An agent that asks without a pause, or wakes
//! itself for ever, would never let its budget end. [`Paced`] lets it rest for a while once it has been polled more often
//! within one instant than a real client could be, so that a flood costs time here as it does anywhere.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Polls within one instant. A client that gets each answer within a millisecond, which none does, asks this often in
/// a second; the busiest of ours makes some dozens.
pub const MAX_POLLS_PER_INSTANT: u32 = 1_000;
/// The time that so many polls take at least.
pub const REST: Duration = Duration::from_secs(1);

/// The future with its pace.
pub struct Paced<F> {
    inner: Pin<Box<F>>,
    instant: Option<Instant>,
    polls: u32,
    rest: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Paced<F> {
    pub fn new(inner: F) -> Paced<F> {
        Paced {
            inner: Box::pin(inner),
            instant: None,
            polls: 0,
            rest: None,
        }
    }
}

impl<F: Future> Future for Paced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if let Some(rest) = &mut self.rest {
            if rest.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.rest = None;
        }
        let now = Instant::now();
        if self.instant == Some(now) {
            self.polls += 1;
        } else {
            self.instant = Some(now);
            self.polls = 1;
        }
        if self.polls > MAX_POLLS_PER_INSTANT {
            let mut rest = Box::pin(tokio::time::sleep(REST));
            // A new timer is never due at once; polling it is what makes it wake us.
            let due = rest.as_mut().poll(context);
            self.rest = Some(rest);
            if due.is_pending() {
                return Poll::Pending;
            }
        }
        self.inner.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_future_that_always_wakes_itself_cannot_stop_the_clock() {
        let busy = Paced::new(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        let ended = tokio::time::timeout(Duration::from_secs(600), busy).await;
        assert!(ended.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_ordinary_future_is_not_slowed_down() {
        let started = Instant::now();
        let answer = Paced::new(async {
            for _ in 0..100 {
                for _ in 0..MAX_POLLS_PER_INSTANT / 2 {
                    tokio::task::yield_now().await;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            7
        })
        .await;
        assert_eq!(answer, 7);
        assert!(started.elapsed() < Duration::from_millis(300));
    }
}
