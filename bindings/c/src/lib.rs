//! Telering for C: the functions of `include/telering.h`, which says what each one does.
//!
//! Nothing that a caller hands over leads to undefined behaviour, but for a pointer that is neither null nor what the
//! header asks for. Handles are numbers with a generation: one of an object that is gone, or of another kind, is
//! told by a status. No panic leaves a function.
//!
//! Recording a transfer takes no lock: its numbers stand in a [slab](transfers) of atomic words, and what the agent
//! wants recorded stands beside the agent's handle, so that neither needs the agent itself.

pub mod agents;
pub mod exports;
mod handle;
mod pointer;
pub mod status;
mod transfers;

pub use status::Status;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function of the interface: no panic leaves it.
#[inline(always)]
fn guarded(run: impl FnOnce() -> Result<(), Status>) -> Status {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Status::OK,
        Ok(Err(status)) => status,
        Err(panic) => {
            // What was thrown may throw again when dropped.
            std::mem::forget(panic);
            Status::INTERNAL
        }
    }
}
