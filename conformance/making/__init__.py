"""Makes telemetry files from FORMAT.md's rules, with what a right reader makes of each."""
