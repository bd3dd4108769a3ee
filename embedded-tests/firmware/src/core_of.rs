//! What differs between the cores: an interrupt that the program pends itself, and the reset.

#[cfg(target_arch = "arm")]
mod arm {
    use cortex_m::peripheral::SCB;

    pub use cortex_m_rt::entry;

    /// Lets the interrupt come: before anything after this.
    pub fn interrupt() {
        SCB::set_pendsv();
        cortex_m::asm::isb();
    }

    /// Nothing to be switched on: this interrupt is.
    pub fn listen() {}

    /// As the reset button.
    pub fn reset() -> ! {
        SCB::sys_reset()
    }
}
#[cfg(target_arch = "arm")]
pub use arm::*;

#[cfg(target_arch = "riscv32")]
mod riscv32 {
    use core::ptr;

    pub use riscv_rt::entry;

    /// The software interrupt's register of the one hart.
    const PENDING: *mut u32 = ptr::without_provenance_mut(0x0200_0000);
    /// The machine's switch.
    const SWITCH: *mut u32 = ptr::without_provenance_mut(0x0010_0000);
    const RESET: u32 = 0x7777;

    /// Lets the interrupt come, and waits until it was here.
    pub fn interrupt() {
        // SAFETY: the register stands there on this machine, and nothing of Rust's does.
        unsafe { PENDING.write_volatile(1) };
        // SAFETY: as above.
        while unsafe { PENDING.read_volatile() } != 0 {}
    }

    /// For the handler: it came.
    pub fn acknowledge() {
        // SAFETY: as above.
        unsafe { PENDING.write_volatile(0) };
    }

    /// Switches the interrupt on.
    pub fn listen() {
        // SAFETY: the handler is there, and no critical section is open while the program starts.
        unsafe {
            riscv::register::mie::set_msoft();
            riscv::interrupt::enable();
        }
    }

    /// As the reset button.
    pub fn reset() -> ! {
        // SAFETY: the register stands there on this machine.
        unsafe { SWITCH.write_volatile(RESET) };
        loop {}
    }
}
#[cfg(target_arch = "riscv32")]
pub use riscv32::*;
