//! Whose turn it is: runs end in any order and are kept in that of their numbers.

use std::sync::{Condvar, Mutex, PoisonError};

/// Whose turn it is to be kept: repetitions are taken up in order, so the one that is waited for is always under way.
#[derive(Default)]
pub struct Turns {
    next: Mutex<u64>,
    moved: Condvar,
}

impl Turns {
    /// The place of the run with this number.
    pub fn of(&self, index: u64) -> Turn<'_> {
        Turn { turns: self, index }
    }
}

/// The place of one repetition. It is given on when dropped, however its run ended.
pub struct Turn<'a> {
    turns: &'a Turns,
    index: u64,
}

impl Turn<'_> {
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Returns when every earlier run has given its place on.
    pub fn wait(&self) {
        let next = self.turns.next.lock();
        let next = next.unwrap_or_else(PoisonError::into_inner);
        drop(self.turns.moved.wait_while(next, |next| *next < self.index));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.wait();
        let next = self.turns.next.lock();
        *next.unwrap_or_else(PoisonError::into_inner) = self.index + 1;
        self.turns.moved.notify_all();
    }
}
