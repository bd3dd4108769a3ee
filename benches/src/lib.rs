//! What telering costs, as ratios.
//!
//! Each number is the quotient of two short measurements made one right after the other: of the thing, and of a
//! reference loop that shows what the machine can do ([`harness`]). The command prints the table; how to read it
//! is in `README.md` beside this crate.

pub mod bars;
pub mod harness;
pub mod locks;
pub mod machine;
pub mod mutex_vector;
pub mod reference;
pub mod report;
pub mod rows;

use std::rc::Rc;

use harness::{Effort, Measured};
use report::Report;

/// Measures all rows whose name contains `filter`, or the one whose name it is.
///
/// # Errors
/// What went wrong before anything was measured: a file, a thread, or a filter that fits no row.
pub fn run(filter: Option<&str>, effort: Effort) -> Result<Report, Box<dyn std::error::Error>> {
    let measured = match filter {
        None => measure(&|_| true, effort)?,
        Some(filter) => measure_filtered(filter, effort)?,
    };
    Ok(report(&measured, effort))
}

/// The report of what was measured here.
fn report(measured: &[Measured], effort: Effort) -> Report {
    Report::new(measured, effort, machine::can_pin(), machine::processors())
}

fn measure_filtered(filter: &str, effort: Effort) -> Result<Vec<Measured>, Box<dyn std::error::Error>> {
    let names = rows::names()?;
    let exact = names.contains(&filter);
    if !names.iter().any(|name| name.contains(filter)) {
        let all = names.join(", ");
        return Err(format!("no benchmark has {filter:?} in its name; there are: {all}").into());
    }
    measure(&|name| name == filter || !exact && name.contains(filter), effort)
}

/// Measures the rows whose names are wanted, on a thread of its own: it is kept on one processor, and threads that
/// are started later must not be.
fn measure(
    wanted: &(dyn Fn(&str) -> bool + Sync),
    effort: Effort,
) -> Result<Vec<Measured>, Box<dyn std::error::Error>> {
    let work = || -> Result<Vec<Measured>, String> {
        // Agents first: their threads are free to run where they like, this one is not.
        let partner = Rc::new(machine::Partner::start().map_err(|error| error.to_string())?);
        let mut rows = rows::all(&partner, machine::processors() > 1).map_err(|error| error.to_string())?;
        rows.retain(|row| wanted(row.name));
        machine::pin(0);
        Ok(harness::measure(rows, effort, reference::reference))
    };
    let thread = std::thread::scope(|scope| scope.spawn(work).join());
    Ok(thread.map_err(|_| "the measuring thread ended with a panic")??)
}
