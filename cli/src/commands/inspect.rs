use super::Outcome;
use crate::args::InspectArguments;
pub(super) fn run(arguments: &InspectArguments) -> anyhow::Result<Outcome> {
    todo!()
}
