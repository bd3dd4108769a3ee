//! Exporters by name: those that a program linked in.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::{AgentContext, Event, ExportError, Exporter, OpenError, Totals};

/// Makes an exporter for an agent.
type Factory = dyn Fn(&AgentContext) -> Result<Box<dyn Exporter>, OpenError> + Send + Sync;

/// The longest name of an exporter in bytes.
const NAME_MAX: usize = 64;

/// Names that this library gave away, whether they are built in here or not.
const RESERVED: [&str; 7] = ["BUFFER", "NOP", "buffer", "nop", "prometheus", "prometheus_mp", "doca"];

/// Why an exporter was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// A name is 1 to 64 of the characters `A-Z a-z 0-9 _ -`.
    #[error("{0} is no name for an exporter: take 1 to 64 of the characters A-Z a-z 0-9 _ -")]
    Name(String),
    /// The name is one of those that come with the library, or of NIXL's.
    #[error("the name {0:?} is reserved: choose another")]
    Reserved(String),
    /// An exporter of this name is there already; it stays.
    #[error("an exporter of the name {0:?} is registered already")]
    Taken(String),
}

/// A list that only grows: nobody who reads it waits for a lock, not even in a forked child.
struct Node {
    name: String,
    factory: Box<Factory>,
    next: Link,
}

type Link = OnceLock<Box<Node>>;

static FIRST: Link = OnceLock::new();

fn nodes() -> impl Iterator<Item = &'static Node> {
    std::iter::successors(FIRST.get(), |node| node.next.get()).map(Box::as_ref)
}

/// Whether a text may be the name of an exporter: no path ever comes of one.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

/// Makes an exporter known by a name, for the whole process: agents whose `NIXL_TELEMETRY_EXPORTER` or
/// [`Builder::exporter_name`](crate::Builder::exporter_name) is that name get one from `factory`, which runs on the
/// agent's flush thread. Upper and lower case differ. Call it before the first agent starts.
///
/// ```
/// use telering::exporter::{AgentContext, Nop, register};
/// register("nowhere", |agent: &AgentContext| {
///     if agent.name.is_empty() {
///         return Err("nowhere: an agent needs a name".into());
///     }
///     Ok(Box::new(Nop))
/// })?;
/// assert!(register("nowhere", |_: &AgentContext| Ok(Box::new(Nop))).is_err());
/// # Ok::<(), telering::exporter::RegisterError>(())
/// ```
///
/// # Errors
/// [`RegisterError`] for a name that can't be used, is reserved, or is taken: the first one stays.
pub fn register(
    name: &str,
    factory: impl Fn(&AgentContext) -> Result<Box<dyn Exporter>, OpenError> + Send + Sync + 'static,
) -> Result<(), RegisterError> {
    if !is_name(name) {
        return Err(RegisterError::Name(crate::warn::shown(name)));
    }
    if RESERVED.contains(&name) {
        return Err(RegisterError::Reserved(name.to_owned()));
    }
    let mut node = Box::new(Node { name: name.to_owned(), factory: Box::new(factory), next: OnceLock::new() });
    let mut link = &FIRST;
    loop {
        match link.set(node) {
            Ok(()) => return Ok(()),
            Err(back) => node = back,
        }
        let Some(there) = link.get() else { unreachable!("a link that can't be set is set") };
        if there.name == name {
            return Err(RegisterError::Taken(name.to_owned()));
        }
        link = &there.next;
    }
}

/// Names of the exporters that were registered, in their order.
#[must_use]
pub fn registered() -> Vec<String> {
    nodes().map(|node| node.name.clone()).collect()
}

/// The exporter of a name.
pub(crate) fn find(name: &str) -> Option<&'static Factory> {
    nodes().find(|node| node.name == name).map(|node| node.factory.as_ref())
}

/// A registered exporter, which is made when it is opened: on the flush thread.
pub(crate) struct Linked {
    factory: &'static Factory,
    exporter: Option<Box<dyn Exporter>>,
}

impl Linked {
    pub(crate) fn new(factory: &'static Factory) -> Linked {
        Linked { factory, exporter: None }
    }
}

impl Exporter for Linked {
    fn open(&mut self, agent: &AgentContext) -> Result<(), OpenError> {
        let mut exporter = (self.factory)(agent)?;
        exporter.open(agent)?;
        self.exporter = Some(exporter);
        Ok(())
    }

    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        match &mut self.exporter {
            Some(exporter) => exporter.export(events),
            None => Err(ExportError::new(events.len() as u64, "the exporter is not open")),
        }
    }

    fn publish(&mut self, totals: &Totals<'_>) {
        self.exporter.iter_mut().for_each(|exporter| exporter.publish(totals));
    }

    fn housekeep(&mut self, now_us: u64) {
        self.exporter.iter_mut().for_each(|exporter| exporter.housekeep(now_us));
    }

    fn close(&mut self, now_us: u64) {
        self.exporter.iter_mut().for_each(|exporter| exporter.close(now_us));
    }

    fn path(&self) -> Option<PathBuf> {
        self.exporter.as_ref().and_then(|exporter| exporter.path())
    }

    fn file_trouble(&self) -> u64 {
        self.exporter.as_ref().map_or(0, |exporter| exporter.file_trouble())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exporter::Nop;

    fn add(name: &str) -> Result<(), RegisterError> {
        register(name, |_: &AgentContext| Ok(Box::new(Nop)))
    }

    #[test]
    fn a_name_is_taken_once_and_is_never_a_path() {
        assert_eq!(add("one-of-tests"), Ok(()));
        assert_eq!(add("one-of-tests"), Err(RegisterError::Taken("one-of-tests".into())));
        assert_eq!(add("ONE-OF-TESTS"), Ok(()));
        assert!(find("one-of-tests").is_some() && find("two").is_none());
        for name in ["BUFFER", "prometheus", "nop"] {
            assert_eq!(add(name), Err(RegisterError::Reserved(name.into())));
        }
        for name in ["", "a/b", "..", "a.b", "a b", "\u{e9}", "a\n", &"x".repeat(65)] {
            assert!(matches!(add(name), Err(RegisterError::Name(_))), "{name:?}");
        }
    }

    #[test]
    fn one_of_many_threads_gets_the_name_and_all_names_are_kept() {
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    scope.spawn(move || {
                        add(&format!("own-{number}")).expect("nobody else's");
                        u32::from(add("wanted-by-all").is_ok())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<u32>()
        });
        assert_eq!(won, 1);
        let names = registered();
        assert!((0..8).all(|number| names.contains(&format!("own-{number}"))), "{names:?}");
    }
}
