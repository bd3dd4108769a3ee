//! Beside real NIXL: asks the program that installs and drives it.

use std::process::{Command, Stdio};

use serde_json::Value as Json;

use super::{Value, quick};
use crate::harness::Effort;

pub(super) fn measure(effort: Effort) -> Result<Value, String> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/nixl-tax/tax");
    let rounds = if quick(effort) { 1 } else { (effort.rounds / 2).clamp(5, 45) };
    let mut command = Command::new(program);
    command.args(["--json", "--rounds", &rounds.to_string()]).stderr(Stdio::inherit()).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{program} does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("benches/nixl-tax/tax ended with {}; it says above why", output.status));
    }
    let result: Json =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("benches/nixl-tax/tax: {error}"))?;
    let number = |name: &str| result[name].as_f64();
    let (Some(ratio), Some(ours), Some(theirs)) = (number("ratio"), number("ours_ns"), number("theirs_ns")) else {
        return Err("too noisy: NIXL's own telemetry seems to cost nothing; try again on an idle machine".into());
    };
    if ours <= 0.0 {
        return Err("too noisy: telering seems to cost nothing; try again on an idle machine".into());
    }
    let counted = |mode: &str| {
        let mode = &result["modes"][mode];
        mode["counted"].as_f64().unwrap_or_default() * 100.0 / mode["made"].as_f64().unwrap_or(f64::NAN)
    };
    let note = format!(
        "{ours:+.0} ns beside {theirs:+.0} ns, {rounds} rounds; counted of those made: ours {:.0} %, NIXL for \
         Prometheus {:.1} %",
        counted("telering on"),
        counted("nixl prometheus")
    );
    Ok(Value::new(ratio, note))
}
