//! Threads as keepers of places: their numbers, and what others leave for them.
//!
//! A number outlives its thread: the next thread without one gets it, and with it what is still to come in.

use std::sync::Mutex;

use super::{Own, place, shared, try_hard};

/// Threads that can be keepers at once. Those beyond share all their places with everybody.
const KEEPERS: usize = 1024;

/// Places whose transfers others released, by keeper.
static INBOXES: [Mutex<Vec<u32>>; KEEPERS] = [const { Mutex::new(Vec::new()) }; KEEPERS];

/// Numbers that no thread has, and how many were ever given out.
static NUMBERS: Mutex<(Vec<u64>, u64)> = Mutex::new((Vec::new(), 0));

fn inbox(keeper: u64) -> Option<&'static Mutex<Vec<u32>>> {
    INBOXES.get(usize::try_from(keeper).ok()?.checked_sub(1)?)
}

/// Gives a thread a number, if one can be had.
pub(super) fn join(own: &Own) {
    let Some(mut numbers) = try_hard(&NUMBERS) else { return };
    let (left, given) = &mut *numbers;
    let number = left.pop().or_else(|| {
        (*given < KEEPERS as u64).then(|| {
            *given += 1;
            *given
        })
    });
    own.keeper.set(number.unwrap_or(0));
}

/// Takes the number of a thread that ends.
pub(super) fn leave(own: &Own) {
    let places = receive(own);
    if let Some(mut shared) = shared() {
        shared.extend(places);
    }
    let number = own.keeper.replace(0);
    if number != 0
        && let Some(mut numbers) = try_hard(&NUMBERS)
    {
        numbers.0.push(number);
    }
}

/// Leaves a place for its keeper. If its inbox can't be had, the place is lost for good.
pub(super) fn send(keeper: u64, index: u32) {
    if let Some(mut inbox) = inbox(keeper).and_then(try_hard) {
        inbox.push(index);
    }
}

/// What others left for this thread, as free places.
pub(super) fn receive(own: &Own) -> Vec<u32> {
    let keeper = own.keeper.get();
    let Some(mut sent) = inbox(keeper).and_then(try_hard).map(|mut inbox| std::mem::take(&mut *inbox)) else {
        return Vec::new();
    };
    sent.retain(|&index| place(index as usize).is_some_and(|place| place.ownership.receive(keeper)));
    sent
}

/// Numbers that were ever given out.
#[cfg(test)]
pub(super) fn given() -> u64 {
    NUMBERS.lock().expect("no panic").1
}
