//! Models of the core's protocols, and of one that the C library has: loom runs each in every order that the memory model allows (or up to
//! a bound, said where it is set), and checks what the protocol promises.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p telering-loom-tests --profile loom
//! ```
//!
//! A model that can't fail proves nothing. So each order, fence and step that a protocol depends on is a
//! `Fault` of the core, and a test here plants it and demands that a model fails. The last test of this
//! file fails when a fault has no such test.

//! A rule for new models: the thread that writes is the model's main thread, the threads that look are
//! spawned. loom runs the main thread first and finds further orders from what collided; of several loads
//! of a word it remembers the last one alone, so a store that comes after the loads of two threads hides
//! the first of them. With the stores first, each load meets them and every order is tried. (Seen here: with
//! the two sides the other way round, the model of the totals ran once and passed with every fault.)

#![cfg(loom)]

#[macro_use]
mod common;

mod attach;
mod close;
mod copies;
mod cursor;
mod image;
mod lease;
mod places;
mod ring;
mod totals;
mod wake;

use telering_core::sync::Fault;

#[test]
fn every_fault_has_a_model_that_must_fail() {
    let tested = [
        attach::MUTANTS,
        close::MUTANTS,
        copies::MUTANTS,
        image::MUTANTS,
        lease::MUTANTS,
        ring::MUTANTS,
        totals::MUTANTS,
        wake::MUTANTS,
        cursor::MUTANTS,
    ]
    .concat();
    for fault in Fault::ALL {
        assert!(tested.contains(fault), "{fault:?} has no test: add one to the `mutants!` of its protocol");
    }
}

#[test]
#[should_panic(expected = "no model saw")]
fn a_mutant_that_survives_fails_its_test() {
    common::must_fail(Fault::RingNoIntent, || common::check(|| ()));
}
