//! Images of devices: static memory, one producer, taken up after a reset.

#![cfg(not(loom))]

use core::num::{NonZeroU32, NonZeroU64};
use core::sync::atomic::Ordering;

use telering_core::Name;
use telering_core::device::{BlackBox, Claim, Claimed, Clock, Found, Recorder, StaticImage, plan};
use telering_core::event::{Category, Record, Template};
use telering_core::image::{FormatError, Identity, TakeUpError};
use telering_core::layout::image::{Control, Head, State, TimeBase, control, head};
use telering_core::ring::{Cursor, Look};
use telering_core::sync::AtomicU64;

static EVENT: Template = Template::new(Category::CUSTOM, Name::from_static("irq_latency"));
const INSTANCE: NonZeroU64 = NonZeroU64::new(0x0123_4567_89ab_cdef).unwrap();

/// Ticks of 32768 a second; each look is one tick later.
fn ticks() -> u64 {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    TICKS.fetch_add(1, Ordering::Relaxed)
}

fn clock() -> Clock {
    Clock::new(NonZeroU32::new(32_768).expect("right numbers"), ticks)
}

fn memory(capacity: u64) -> Vec<AtomicU64> {
    (0..plan(capacity).expect("right numbers").words()).map(|word| AtomicU64::new(word as u64 * 0x9e37_79b9)).collect()
}

fn bytes(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
}

fn control_of(words: &[AtomicU64], capacity: u64) -> Control {
    let bytes = bytes(words);
    let extension = telering_core::layout::image::extension_offset(capacity).expect("right numbers") as usize;
    let head_bytes = bytes[extension..][..head::SIZE].try_into().expect("right numbers");
    let head = Head::parse(head_bytes, capacity, bytes.len() as u64).expect("right numbers");
    assert!(head.checks && head.part_count == 1 && head.created_us == 0);
    Control::parse(bytes[extension + control::START..][..control::SIZE].try_into().expect("right numbers"))
}

#[test]
fn an_image_in_static_memory_is_as_small_as_promised_and_all_zero() {
    static IMAGE: StaticImage<64> = StaticImage::new();
    assert!(size_of::<StaticImage<64>>() <= 4096, "{}", size_of::<StaticImage<64>>());
    assert!(size_of::<StaticImage<16>>() <= 1280, "{}", size_of::<StaticImage<16>>());
    // What the documentation says.
    assert_eq!((size_of::<StaticImage<64>>(), size_of::<StaticImage<16>>()), (3904, 1216));
    assert_eq!(size_of::<BlackBox<64>>(), size_of::<StaticImage<64>>());
    assert!(IMAGE.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    assert_eq!(size_of_val(IMAGE.words()), size_of::<StaticImage<64>>(), "the symbol is the file");
}

#[test]
fn an_image_has_one_producer_and_any_number_of_readers() {
    static IMAGE: StaticImage<16> = StaticImage::new();
    assert!(IMAGE.ring().is_none(), "nobody claimed it yet");
    let mut recorder = IMAGE.claim(INSTANCE, clock()).unwrap();
    assert_eq!(IMAGE.claim(INSTANCE, clock()).unwrap_err(), Claimed);
    let ring = IMAGE.ring().unwrap();
    let mut readers = [Cursor::oldest(&ring), Cursor::oldest(&ring)];
    for value in 0..20 {
        recorder.record(&EVENT, value);
    }
    assert_eq!(IMAGE.claim(INSTANCE, clock()).unwrap_err(), Claimed);
    for reader in &mut readers {
        assert_eq!(reader.look(&ring), Look::Lost(4));
        for value in 4..20 {
            let Look::Record(position, words) = reader.look(&ring) else { panic!("record {value} is there") };
            let record = Record::from_words(&words);
            assert_eq!((position, record.value, record.name.as_str()), (value, value, "irq_latency"));
            assert!(record.fits(position));
        }
        assert_eq!(reader.look(&ring), Look::Empty);
    }
}

#[test]
fn of_many_that_claim_at_once_one_is_the_producer() {
    static IMAGE: StaticImage<2> = StaticImage::new();
    static BOX: BlackBox<2> = BlackBox::new();
    static CLAIM: Claim = Claim::new();
    let claimed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| (IMAGE.claim(INSTANCE, clock()).is_ok(), BOX.attach(&CLAIM, INSTANCE, clock()).is_ok()))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(claimed.iter().filter(|claimed| claimed.0).count(), 1);
    assert_eq!(claimed.iter().filter(|claimed| claimed.1).count(), 1);
}

/// The recorder of a device takes another way to the same bytes as the image of a file.
#[test]
fn a_recorder_writes_what_an_image_writes() {
    for capacity in [2, 4, 8, 16, 64] {
        let (one, other) = (memory(capacity), memory(capacity));
        let mut recorder = Recorder::format(&one, capacity, INSTANCE, clock()).unwrap();
        let plan = plan(capacity).unwrap();
        let mut state = plan.format(&other, false, INSTANCE.get(), 0, &Identity::default(), &[]).unwrap();
        let info = telering_core::snapshot::ClockInfo { source: 4, quality: 2, rate: 32_768, ..Default::default() };
        state.on(&other).unwrap().set_clock(&info);
        for number in 0..capacity * 3 + 1 {
            assert_eq!(bytes(&one), bytes(&other), "capacity {capacity}, {number} records");
            recorder.record_at(&EVENT, number * 32_768, number);
            let record = Record::new(number * 1_000_000, Category::CUSTOM, Name::from_static("irq_latency"), number);
            state.on(&other).unwrap().push(record);
        }
        recorder.close();
        let control = control_of(&one, capacity);
        assert_eq!((control.state, control.time_base), (State::Closed, TimeBase::Boot));
        assert!(control.heartbeat < 60_000_000, "time since boot");
    }
}

#[test]
fn memory_of_the_wrong_size_is_refused_and_left_alone() {
    let words = memory(4);
    let before = bytes(&words);
    for (capacity, len) in [(4, words.len() - 1), (2, words.len()), (8, words.len()), (4, 0)] {
        let wrong = Recorder::format(&words[..len], capacity, INSTANCE, clock()).unwrap_err();
        assert!(matches!(wrong, FormatError::Length { found, .. } if found == len as u64 * 8), "{wrong}");
    }
    for capacity in [0, 1, 3, 1 << 25, u64::MAX] {
        let wrong = Recorder::format(&words, capacity, INSTANCE, clock()).unwrap_err();
        assert_eq!(wrong, FormatError::Capacity { capacity });
        assert_eq!(Recorder::attach(&words, capacity, clock()).unwrap_err(), TakeUpError::OtherPlan);
    }
    assert_eq!(bytes(&words), before);
}

/// The words that a producer stores for one record, in their order, so that a reset may come between any two.
fn pushed_until_the_reset(words: &[AtomicU64], capacity: u64, stores: usize) {
    let start = telering_core::layout::image::extension_offset(capacity).expect("a power of two") as usize / 8;
    let (intent, committed) = (&words[start + control::INTENT / 8], &words[start + control::COMMITTED / 8]);
    let next = u64::from_le(committed.load(Ordering::Relaxed));
    let record = Record::new(9, Category::CUSTOM, Name::from_static("never_finished"), next).sealed(next).to_words();
    let slot = 5 + 7 * (next % capacity) as usize;
    let mut writes = vec![(intent, next + 1)];
    writes.extend(words[slot..slot + 7].iter().zip(record));
    writes.push((committed, next + 1));
    for (word, value) in writes.into_iter().take(stores) {
        word.store(value.to_le(), Ordering::Relaxed);
    }
}

#[test]
fn a_reset_in_the_middle_of_a_push_costs_that_record_and_no_other() {
    for written in [0, 1, 3, 4, 5, 11] {
        for stores in 0..=9 {
            let words = memory(4);
            let mut recorder = Recorder::format(&words, 4, INSTANCE, clock()).unwrap();
            for value in 0..written {
                recorder.record(&EVENT, value);
            }
            pushed_until_the_reset(&words, 4, stores);
            let (mut recorder, interrupted) = Recorder::attach(&words, 4, clock()).unwrap();
            // Only announced: interrupted. Before and after that nothing is lost.
            assert_eq!(interrupted, u64::from((1..9).contains(&stores)), "{written} {stores}");
            let then = written + u64::from(stores > 0);
            assert_eq!((recorder.written(), recorder.boots()), (then, 1));
            recorder.record(&EVENT, 1000);
            let control = control_of(&words, 4);
            assert_eq!((control.intent, control.committed, control.boots), (then + 1, then + 1, 1));
            assert_eq!((control.state, control.time_base), (State::Open, TimeBase::Boot));
            // Every place of the ring holds the record of its position.
            for position in control.committed.saturating_sub(4)..control.committed {
                let slot = 5 + 7 * (position % 4) as usize;
                let record = Record::from_words(&core::array::from_fn(|at| {
                    u64::from_le(words[slot + at].load(Ordering::Relaxed))
                }));
                assert!(record.fits(position), "{written} {stores} {position}");
                let expected = if position == then {
                    1000
                } else if position == written && interrupted == 1 {
                    assert!(record.is_filler());
                    0
                } else {
                    position
                };
                assert_eq!(record.value, expected, "{written} {stores} {position}");
            }
        }
    }
}

#[test]
fn a_black_box_goes_on_after_a_reset_and_starts_anew_after_power_was_lost() {
    static BOX: BlackBox<16> = BlackBox::new();
    static BOOTS: [Claim; 4] = [const { Claim::new() }; 4];
    let (mut recorder, found) = BOX.attach(&BOOTS[0], INSTANCE, clock()).unwrap();
    assert!(matches!(found, Found::Nothing(_)));
    recorder.record(&EVENT, 7);
    assert!(BOX.attach(&BOOTS[0], INSTANCE, clock()).is_err());
    for (boots, claim) in (1..).zip(&BOOTS[1..3]) {
        let (mut recorder, found) = BOX.attach(claim, INSTANCE, clock()).unwrap();
        assert_eq!(found, Found::Image { interrupted: 0, boots });
        recorder.record(&EVENT, 7);
    }
    BOX.words().iter().for_each(|word| word.store(0xa5a5_5a5a_a5a5_5a5a, Ordering::Relaxed));
    let (recorder, found) = BOX.attach(&BOOTS[3], INSTANCE, clock()).unwrap();
    let Found::Nothing(why) = found else { panic!("there was nothing") };
    assert!(why.to_string().contains("image"), "{why}");
    assert_eq!((recorder.written(), recorder.boots()), (0, 0));
    assert_eq!(control_of(BOX.words(), 16).committed, 0);
}

#[test]
fn an_image_of_another_shape_or_with_impossible_positions_is_formatted_anew() {
    let words = memory(4);
    Recorder::format(&words, 4, INSTANCE, clock()).unwrap();
    assert_eq!(Recorder::attach(&words, 2, clock()).unwrap_err(), TakeUpError::OtherPlan);
    let start = telering_core::layout::image::extension_offset(4).unwrap() as usize / 8;
    for (intent, committed) in [(2, 0), (0, 1), (u64::MAX, u64::MAX), (1 << 63, 1 << 63)] {
        words[start + control::INTENT / 8].store(u64::to_le(intent), Ordering::Relaxed);
        words[start + control::COMMITTED / 8].store(u64::to_le(committed), Ordering::Relaxed);
        let wrong = Recorder::attach(&words, 4, clock()).unwrap_err();
        assert!(matches!(wrong, TakeUpError::Positions(_)), "{wrong}");
    }
    for word in 0..words.len() {
        // Whatever single word is damaged: it is taken up, or refused, and never a panic.
        let words = memory(4);
        Recorder::format(&words, 4, INSTANCE, clock()).unwrap();
        words[word].store(0xdead_beef_dead_beef, Ordering::Relaxed);
        let _ = Recorder::attach(&words, 4, clock());
    }
}

#[test]
fn what_is_pushed_with_a_wrong_check_word_fits_nowhere() {
    static IMAGE: StaticImage<2> = StaticImage::new();
    let mut recorder = IMAGE.claim(INSTANCE, clock()).unwrap();
    let record = Record::new(1, Category::CUSTOM, Name::from_static("mine"), 2);
    recorder.push(record.to_words());
    recorder.push(record.sealed(recorder.written()).to_words());
    let ring = IMAGE.ring().unwrap();
    let mut cursor = Cursor::oldest(&ring);
    let fits = [(); 2].map(|()| match cursor.look(&ring) {
        Look::Record(position, words) => Record::from_words(&words).fits(position),
        other => panic!("{other:?}"),
    });
    assert_eq!(fits, [false, true]);
}

#[test]
fn a_count_of_boots_that_is_full_stays_so() {
    let words = memory(4);
    Recorder::format(&words, 4, INSTANCE, clock()).unwrap();
    let start = telering_core::layout::image::extension_offset(4).unwrap() as usize / 8;
    words[start + control::BOOTS / 8].store(u64::to_le(u64::from(u32::MAX) - 1), Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(Recorder::attach(&words, 4, clock()).unwrap().0.boots(), u32::MAX, "never back to none");
    }
}

#[test]
fn positions_wrap_without_a_panic() {
    let words: [_; 16] = core::array::from_fn(|_| [const { AtomicU64::new(0) }; 7]);
    let (intent, committed) = (AtomicU64::new(0), AtomicU64::new(0));
    let ring = telering_core::ring::Ring::new(&intent, &committed, &words).unwrap();
    let mut producer = telering_core::ring::Producer::resume(ring, u64::MAX - 1);
    for _ in 0..4 {
        producer.push_batch(1, |position| [position; 7]);
        producer.push([producer.position(); 7]);
    }
    assert_eq!(producer.position(), 6);
    assert_eq!(u64::from_le(words[5][0].load(Ordering::Relaxed)), 5);
}
