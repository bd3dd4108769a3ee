//! An exporter plug-in that panics in the call that its agent's name says. Tests load it.

use telering::exporter::{AgentContext, Event, ExportError, Exporter, OpenError, Totals};

/// Panics where it is told to.
struct Panics(String);

impl Panics {
    fn at(&self, place: &str) {
        assert!(self.0 != format!("panic-{place}"), "planted in {place}");
    }
}

impl Exporter for Panics {
    fn open(&mut self, _agent: &AgentContext) -> Result<(), OpenError> {
        self.at("open");
        Ok(())
    }

    fn export(&mut self, _events: &[Event]) -> Result<(), ExportError> {
        self.at("export");
        Ok(())
    }

    fn publish(&mut self, _totals: &Totals<'_>) {
        self.at("publish");
    }

    fn housekeep(&mut self, _now_us: u64) {
        self.at("housekeep");
    }

    fn close(&mut self, _now_us: u64) {
        self.at("close");
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        self.at("drop");
    }
}

fn make(agent: &AgentContext) -> Result<Box<dyn Exporter>, OpenError> {
    assert!(agent.name != "panic-make", "planted in make");
    if agent.name == "refuse" {
        return Err("panics: refused on purpose".into());
    }
    Ok(Box::new(Panics(agent.name.clone())))
}

telering::exporter_plugin!("panics", make);
