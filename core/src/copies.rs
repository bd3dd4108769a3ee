//! Publishing a block of numbers in two copies, so that a reader never takes half of one for a whole.
//!
//! ```text
//! write  fence(Release); copy (generation + 1) & 1...; generation + 1 (Release)
//! read   generation (Acquire); copy...; fence(Acquire); generation unchanged, else again
//! ```

use crate::sync::{AtomicU64, Fault, Ordering, faulty, fence_unless, order};

/// Publishes the next generation: `write(generation, half)` stores the words of copy `half` (0 or 1).
/// Returns the new generation. One writer at a time; `current` is its own knowledge, never read back.
pub fn publish(generation: &AtomicU64, current: u64, write: impl FnOnce(u64, usize)) -> u64 {
    let next = current.wrapping_add(1);
    // ORDER copies-data: whoever sees a word of this copy also sees that the generation moved on before it.
    fence_unless(Fault::CopiesNoReleaseFence, Ordering::Release);
    write(next, half(next));
    // ORDER copies-gen: whoever sees this generation also sees its copy.
    generation.store(next.to_le(), order(Ordering::Release, Fault::CopiesRelaxedGeneration));
    next
}

/// Reads one copy: `read(half)` copies the words. Returns the generation and what `read` gave, or `None`
/// when nothing was published yet or the writer came around meanwhile: try again.
pub fn read<T>(generation: &AtomicU64, read: impl FnOnce(usize) -> T) -> Option<(u64, T)> {
    // ORDER copies-gen: pairs with the writer's release.
    let before = u64::from_le(generation.load(order(Ordering::Acquire, Fault::CopiesRelaxedGenerationLoad)));
    if before == 0 {
        return None;
    }
    let copy = read(half(before));
    // ORDER copies-data: pairs with the writer's fence.
    fence_unless(Fault::CopiesNoAcquireFence, Ordering::Acquire);
    let after = u64::from_le(generation.load(Ordering::Relaxed));
    (before == after).then_some((before, copy))
}

/// Which of the two copies a generation lives in.
#[must_use]
pub fn half(generation: u64) -> usize {
    if faulty(Fault::CopiesOneCopy) { 0 } else { (generation & 1) as usize }
}
