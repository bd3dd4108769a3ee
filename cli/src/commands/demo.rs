use super::Outcome;
use crate::args::DemoArguments;
pub(super) fn run(arguments: &DemoArguments) -> anyhow::Result<Outcome> {
    todo!()
}
