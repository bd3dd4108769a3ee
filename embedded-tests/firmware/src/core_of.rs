//! What differs between the cores: an interrupt that the program pends itself, and the reset.

#[cfg(target_arch = "arm")]
mod arm {
    use cortex_m::peripheral::SCB;
    use cortex_m::peripheral::syst::SystClkSource;

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

    /// Starts the timer, whose interrupt comes at another place of the program each time; `false` the second time.
    pub fn start_timer() -> bool {
        let Some(mut peripherals) = cortex_m::Peripherals::take() else { return false };
        peripherals.SYST.set_clock_source(SystClkSource::Core);
        peripherals.SYST.set_reload(1999);
        peripherals.SYST.clear_current();
        peripherals.SYST.enable_counter();
        peripherals.SYST.enable_interrupt();
        true
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
    /// The timer of the one hart: halves of the time, and of when its interrupt comes. 10 MHz.
    const TIME: *mut u32 = ptr::without_provenance_mut(0x0200_bff8);
    const ALARM: [*mut u32; 2] = [ptr::without_provenance_mut(0x0200_4000), ptr::without_provenance_mut(0x0200_4004)];
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

    /// Starts the timer, whose interrupt comes at another place of the program each time.
    pub fn start_timer() -> bool {
        acknowledge_timer();
        // SAFETY: the handler is there, and no critical section is open while the program starts.
        unsafe {
            riscv::register::mie::set_mtimer();
            riscv::interrupt::enable();
        }
        true
    }

    /// For the handler of the timer: the next one, please. The program ends before 32 bits of time are over.
    pub fn acknowledge_timer() {
        // SAFETY: the registers stand there on this machine, and nothing of Rust's does.
        unsafe {
            ALARM[0].write_volatile(TIME.read_volatile().wrapping_add(161));
            ALARM[1].write_volatile(0);
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
