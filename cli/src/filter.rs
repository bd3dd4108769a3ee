//! Which events a user wants to see.

use telering::fnmatch;
use telering::reader::Event;
use telering_core::Category;

/// All conditions must hold; an empty list is no condition.
#[derive(Default)]
pub(crate) struct Filter {
    pub(crate) categories: Vec<Category>,
    /// Patterns of names; one of them must match.
    pub(crate) events: Vec<String>,
    pub(crate) times: TimeSpan,
}

impl Filter {
    pub(crate) fn takes(&self, event: &Event) -> bool {
        self.takes_category(event.known_category())
            && self.takes_name(event.name.as_str(), event.id)
            && self.times.holds(event.any_time_us())
    }

    fn takes_category(&self, category: Option<Category>) -> bool {
        self.categories.is_empty() || category.is_some_and(|category| self.categories.contains(&category))
    }

    /// An error event has two names, `NIXL_ERR_CANCELED` and `agent_err_canceled`; either will do.
    fn takes_name(&self, name: &str, id: Option<u32>) -> bool {
        let other = id.and_then(telering_core::names::by_id).map(|row| row.name);
        let status = id.and_then(telering_core::names::error_status).map(telering_core::Status::text);
        self.events.is_empty()
            || self.events.iter().any(|pattern| {
                [Some(name), other, status]
                    .into_iter()
                    .flatten()
                    .any(|name| fnmatch(pattern.as_bytes(), name.as_bytes()))
            })
    }
}

/// From `since` on, and before `until`. Unix microseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct TimeSpan {
    pub(crate) since: Option<u64>,
    pub(crate) until: Option<u64>,
}

impl TimeSpan {
    pub(crate) fn is_everything(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// Whether the span holds a time; one that has none is in no span but everything.
    pub(crate) fn holds(&self, us: Option<u64>) -> bool {
        let Some(us) = us else { return self.is_everything() };
        self.since.is_none_or(|since| us >= since) && self.until.is_none_or(|until| us < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_starts_with_since_and_ends_before_until() {
        let span = TimeSpan { since: Some(10), until: Some(20) };
        assert_eq!([9, 10, 19, 20].map(|us| span.holds(Some(us))), [false, true, true, false]);
        assert!(!span.holds(None));
        assert!(TimeSpan::default().holds(None));
    }

    #[test]
    fn an_error_is_found_by_either_of_its_names() {
        let filter = |pattern: &str| Filter { events: vec![pattern.to_owned()], ..Filter::default() };
        let id = telering_core::names::by_name(b"NIXL_ERR_CANCELED").map(|row| row.id);
        assert!(filter("agent_err_*").takes_name("NIXL_ERR_CANCELED", id));
        assert!(filter("NIXL_ERR_*").takes_name("agent_err_canceled", id));
        assert!(!filter("agent_tx*").takes_name("NIXL_ERR_CANCELED", id));
        assert!(filter("my_*").takes_name("my_event", None));
    }
}
