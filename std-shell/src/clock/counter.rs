//! The processor's counter: the time stamp counter of x86-64, the virtual counter of AArch64.
//!
//! It is used only if it runs at one rate in every state of the processor *and* the kernel itself
//! keeps time with it, which it stops doing when it finds the processors out of step. NIXL decides alike.

/// How fast the counter runs.
pub(super) struct Rate {
    pub(super) hertz: u64,
    /// Told by the processor, not measured.
    pub(super) told: bool,
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use core::arch::x86_64::{__cpuid, _rdtsc};

    /// The counter's reading.
    #[inline(always)]
    pub(in super::super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has this instruction. A kernel that forbids it to programs
        // does not keep time with it either, and then `rate` gives `None`.
        unsafe { _rdtsc() }
    }

    pub(super) fn is_trusted() -> bool {
        const INVARIANT: u32 = 1 << 8;
        let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & INVARIANT != 0;
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        invariant && std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc")
    }

    /// Leaf 0x15: a ratio to the core crystal clock, where the processor tells both.
    pub(super) fn told_hertz() -> Option<u64> {
        if __cpuid(0).eax < 0x15 {
            return None;
        }
        let leaf = __cpuid(0x15);
        let (denominator, numerator, crystal) = (u64::from(leaf.eax), u64::from(leaf.ebx), u64::from(leaf.ecx));
        (denominator != 0 && numerator != 0 && crystal != 0).then(|| crystal * numerator / denominator)
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    /// The counter's reading.
    #[inline(always)]
    pub(in super::super) fn read() -> u64 {
        let ticks: u64;
        // SAFETY: Linux lets every program read the virtual counter; the instruction touches no memory.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }

    pub(super) fn is_trusted() -> bool {
        true
    }

    pub(super) fn told_hertz() -> Option<u64> {
        let hertz: u64;
        // SAFETY: as above; the register holds the rate that the firmware wrote, 0 if it wrote none.
        unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack)) };
        (hertz != 0).then_some(hertz)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    /// Never called: `rate` gives `None`.
    #[inline(always)]
    pub(in super::super) fn read() -> u64 {
        0
    }

    pub(super) fn is_trusted() -> bool {
        false
    }

    pub(super) fn told_hertz() -> Option<u64> {
        None
    }
}

pub(super) use arch::read;

/// The counter's rate, or `None` where it can't be trusted.
pub(super) fn rate() -> Option<Rate> {
    if !arch::is_trusted() {
        return None;
    }
    let measured = measure();
    let plausible = |hertz: u64| (1_000_001..=20_000_000_000).contains(&hertz);
    match arch::told_hertz() {
        // A virtual machine may tell the rate of another host: believe it only if it fits the measurement.
        Some(told) if plausible(told) && told.abs_diff(measured) < told / 1000 => {
            Some(Rate { hertz: told, told: true })
        }
        _ => plausible(measured).then_some(Rate { hertz: measured, told: false }),
    }
}

/// Ticks per second, over 10 ms of the monotonic clock. Each end is the tightest of several pairs of
/// readings, so a preemption between two readings does no harm.
fn measure() -> u64 {
    let (start_ticks, start_ns) = pair();
    std::thread::sleep(std::time::Duration::from_millis(10));
    let (end_ticks, end_ns) = pair();
    let ns = u128::from(end_ns.saturating_sub(start_ns).max(1));
    (u128::from(end_ticks.saturating_sub(start_ticks)) * 1_000_000_000 / ns).min(u128::from(u64::MAX)) as u64
}

fn pair() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..16 {
        let before = read();
        let ns = super::system_ticks();
        let gap = read().saturating_sub(before);
        if gap < best.0 {
            best = (gap, before + gap / 2, ns);
        }
    }
    (best.1, best.2)
}
