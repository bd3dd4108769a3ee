//! Several streams, each in its own order, merged by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Something that hands out items in its own order, a batch at a time.
pub(crate) trait Stream {
    type Item;

    /// Appends what is there now; 0 means nothing new for the moment.
    fn fill(&mut self, into: &mut Vec<Self::Item>) -> anyhow::Result<usize>;

    /// The time of an item; `None` for one that has none, which then goes with the item after it.
    fn time(item: &Self::Item) -> Option<u64>;
}

/// Merges streams. Within a stream the order is kept, whatever its times say.
///
/// A *round* hands out what is there until every stream has said once that it has nothing new. The merge is
/// right by time for everything that was there when the round began; what a stream gives after that follows.
pub(crate) struct Merge<S: Stream> {
    lanes: Vec<Option<Lane<S>>>,
    /// Lanes with items, by the time of their first.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Lanes without items that have not said in this round that there is nothing new.
    hungry: Vec<usize>,
    failures: Vec<Failure<S>>,
    batch: Vec<S::Item>,
}

struct Lane<S: Stream> {
    stream: S,
    items: VecDeque<(u64, S::Item)>,
    /// The time of the last item, for those that have none and no successor.
    time: u64,
    /// The stream failed; said when its items are handed out.
    error: Option<anyhow::Error>,
}

/// A stream that failed. It is out of the merge; what it gave before was handed out.
pub(crate) struct Failure<S> {
    pub(crate) stream: S,
    pub(crate) error: anyhow::Error,
}

impl<S: Stream> Merge<S> {
    pub(crate) fn new() -> Merge<S> {
        Merge {
            lanes: Vec::new(),
            heads: BinaryHeap::new(),
            hungry: Vec::new(),
            failures: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// Takes a stream in, from the next round on.
    pub(crate) fn add(&mut self, stream: S) {
        let lane = Lane { stream, items: VecDeque::new(), time: 0, error: None };
        match self.lanes.iter_mut().find(|lane| lane.is_none()) {
            Some(free) => *free = Some(lane),
            None => self.lanes.push(Some(lane)),
        }
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = &S> {
        self.lanes.iter().flatten().map(|lane| &lane.stream)
    }

    pub(crate) fn streams_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.lanes.iter_mut().flatten().map(|lane| &mut lane.stream)
    }

    /// Whether the next look asks a stream for more.
    pub(crate) fn is_hungry(&self) -> bool {
        !self.hungry.is_empty()
    }

    /// Asks every stream again that had nothing new.
    pub(crate) fn begin_round(&mut self) {
        self.hungry.clear();
        for (at, lane) in self.lanes.iter().enumerate() {
            if lane.as_ref().is_some_and(|lane| lane.items.is_empty()) {
                self.hungry.push(at);
            }
        }
    }

    /// The next item by time and the stream that it came from; `None` ends the round.
    pub(crate) fn next(&mut self) -> Option<(S::Item, &mut S)> {
        while let Some(at) = self.hungry.pop() {
            self.refill(at);
        }
        let Reverse((_, at)) = self.heads.pop()?;
        let lane = self.lanes[at].as_mut()?;
        let (_, item) = lane.items.pop_front()?;
        match lane.items.front() {
            Some((time, _)) => self.heads.push(Reverse((*time, at))),
            None => self.hungry.push(at),
        }
        Some((item, &mut lane.stream))
    }

    /// The streams that failed since this was asked last.
    pub(crate) fn take_failures(&mut self) -> Vec<Failure<S>> {
        std::mem::take(&mut self.failures)
    }

    fn refill(&mut self, at: usize) {
        let Some(mut lane) = self.lanes[at].take() else { return };
        if lane.error.is_none() {
            lane.error = lane.stream.fill(&mut self.batch).err();
        }
        // An item without a time takes that of the next one, so that it doesn't overtake other streams.
        let mut next = None;
        let mut keys: Vec<_> = self
            .batch
            .iter()
            .rev()
            .map(|item| {
                next = S::time(item).or(next);
                next
            })
            .collect();
        keys.reverse();
        for (item, key) in self.batch.drain(..).zip(keys) {
            lane.time = key.unwrap_or(lane.time);
            lane.items.push_back((lane.time, item));
        }
        match (lane.items.front(), lane.error.take()) {
            (None, Some(error)) => self.failures.push(Failure { stream: lane.stream, error }),
            (None, None) => self.lanes[at] = Some(lane),
            (Some((time, _)), error) => {
                self.heads.push(Reverse((*time, at)));
                lane.error = error;
                self.lanes[at] = Some(lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (time, number)
    type Thing = (Option<u64>, u32);

    /// Batches; an empty one is "nothing new", `None` an error.
    struct Script(VecDeque<Option<Vec<Thing>>>);

    impl Stream for Script {
        type Item = Thing;

        fn fill(&mut self, into: &mut Vec<Self::Item>) -> anyhow::Result<usize> {
            match self.0.pop_front() {
                Some(Some(batch)) => {
                    into.extend(&batch);
                    Ok(batch.len())
                }
                Some(None) => anyhow::bail!("broken"),
                None => Ok(0),
            }
        }

        fn time(item: &Self::Item) -> Option<u64> {
            item.0
        }
    }

    fn script(batches: &[Option<&[(u64, u32)]>]) -> Script {
        let timed = |batch: &[(u64, u32)]| batch.iter().map(|&(time, n)| ((time > 0).then_some(time), n)).collect();
        Script(batches.iter().map(|batch| batch.map(timed)).collect())
    }

    fn round(merge: &mut Merge<Script>) -> Vec<u32> {
        merge.begin_round();
        std::iter::from_fn(|| merge.next().map(|(item, _)| item.1)).collect()
    }

    #[test]
    fn streams_are_merged_by_time_across_their_batches() {
        let mut merge = Merge::new();
        merge.add(script(&[Some(&[(1, 1), (5, 5)]), Some(&[(6, 6)])]));
        merge.add(script(&[Some(&[(2, 2)]), Some(&[(3, 3)]), Some(&[(7, 7)])]));
        assert_eq!(round(&mut merge), [1, 2, 3, 5, 6, 7]);
        assert!(round(&mut merge).is_empty());
    }

    #[test]
    fn a_stream_keeps_its_own_order() {
        let mut merge = Merge::new();
        merge.add(script(&[Some(&[(9, 1), (2, 2)])]));
        merge.add(script(&[Some(&[(5, 3)])]));
        assert_eq!(round(&mut merge), [3, 1, 2]);
    }

    #[test]
    fn an_item_without_a_time_stands_before_the_next_of_its_stream() {
        let mut merge = Merge::new();
        merge.add(script(&[Some(&[(1, 1), (0, 2), (9, 3), (0, 4)])]));
        merge.add(script(&[Some(&[(5, 5)])]));
        assert_eq!(round(&mut merge), [1, 5, 2, 3, 4]);
    }

    #[test]
    fn a_round_ends_when_all_have_said_that_nothing_is_new() {
        let mut merge = Merge::new();
        merge.add(script(&[Some(&[(1, 1)]), Some(&[]), Some(&[(2, 2)])]));
        assert_eq!(round(&mut merge), [1]);
        assert_eq!(round(&mut merge), [2]);
    }

    #[test]
    fn what_a_stream_gave_before_it_failed_is_handed_out() {
        let mut merge = Merge::new();
        merge.add(script(&[Some(&[(1, 1)]), None]));
        merge.add(script(&[Some(&[(2, 2)])]));
        assert_eq!(round(&mut merge), [1, 2]);
        assert_eq!(merge.take_failures().len(), 1);
        assert_eq!(merge.streams().count(), 1);
    }
}
