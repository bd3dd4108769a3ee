//! What telering costs, as ratios.
//!
//! Each number is the quotient of two short measurements made one right after the other: of the thing, and of a
//! reference loop that shows what the machine can do ([`harness`]). The command prints the table; how to read it
//! is in `README.md` beside this crate.

pub mod harness;
pub mod machine;
pub mod mutex_vector;
pub mod reference;
pub mod report;
pub mod rows;

use std::rc::Rc;

use harness::Effort;
use report::Report;

/// Measures all rows whose name contains `filter`, or the one whose name it is.
///
/// # Errors
/// What went wrong before anything was measured: a file, a thread, or a filter that fits no row.
pub fn run(filter: Option<&str>, effort: Effort) -> Result<Report, Box<dyn std::error::Error>> {
    // Agents first: their threads are free to run where they like, this one is not.
    let processors = machine::processors();
    let partner = Rc::new(machine::Partner::start()?);
    let mut rows = rows::all(&partner, processors > 1)?;
    if let Some(filter) = filter {
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        let unknown = format!("no benchmark has {filter:?} in its name; there are: {}", names.join(", "));
        let exact = names.contains(&filter);
        rows.retain(|row| row.name == filter || !exact && row.name.contains(filter));
        if rows.is_empty() {
            return Err(unknown.into());
        }
    }
    let pinned = machine::pin(0);
    let measured = harness::measure(rows, effort, reference::reference);
    Ok(Report::new(&measured, effort, pinned, processors))
}
