//! The image in memory that a test owns: formatted, written, read back by the table of its parts.

mod image_material;

use image_material::*;
use telering_core::image::{FormatError, Identity, Image, ImagePlan, PartSet, TakeUpError};
use telering_core::layout::image::{
    CAPACITY_MAX, Head, PART_ROW_SIZE, State, TimeBase, control, extension_offset, head, nixl_header, u32_at, u64_at,
};
use telering_core::layout::parts::{CopyCheck, PartKind, PartRow, clock, dynamic, identity, losses, metrics, notices};
use telering_core::snapshot::{ClockInfo, DynamicTotal, Flow, Losses, Notices, Snapshot, Total};
use telering_core::sync::Ordering;
use telering_core::{Category, Name, names};

/// The bytes of a part, found as a reader finds it.
fn part(image: &[u8], kind: PartKind) -> Option<&[u8]> {
    let capacity = u64_at(image, nixl_header::CAPACITY);
    let start = extension_offset(capacity)? as usize;
    let head = Head::parse(image[start..start + head::SIZE].try_into().ok()?, capacity, image.len() as u64).ok()?;
    let rows = image[start + control::PART_TABLE..].chunks(PART_ROW_SIZE).take(head.part_count);
    let row = rows.map(|row| PartRow::parse(row.try_into().expect("a row"))).find(|row| row.kind == kind as u32)?;
    assert!(row.version == PartKind::VERSION && row.lies_inside(image.len() as u64) && row.offset % 64 == 0);
    Some(&image[row.offset as usize..][..row.len as usize])
}

#[test]
fn every_capacity_that_is_a_power_of_two_works_over_several_laps() {
    for capacity in (1..=12).map(|power| 1_u64 << power) {
        let (memory, mut state) = formatted(capacity, PartSet::NONE);
        let mut image = state.on(&memory).expect("the same memory");
        let largest = image.max_batch();
        let mut written = 0;
        while written < 3 * capacity + 1 {
            image.push(event(written));
            image.push_batch(largest, |position| event(position).sealed(position).to_words());
            written += 1 + largest;
        }
        assert_eq!(state.written(), written);
        for position in written - capacity..written {
            let record = record_at(&memory, capacity, position);
            assert!(record.fits(position) && record.value == position, "capacity {capacity}, position {position}");
        }
        let seen = control_of(&memory, capacity);
        assert_eq!((seen.intent, seen.committed, seen.state), (written, written, State::Open));
    }
}

#[test]
fn every_other_capacity_is_an_error_that_names_it() {
    for capacity in [0, 1, 3, 5, 1000, 4095, CAPACITY_MAX + 1, 1 << 25, (1 << 63) + 1, 1 << 63, u64::MAX] {
        let error = ImagePlan::new(capacity, PartSet::ALL, TimeBase::Unix).expect_err("no power of two in range");
        assert_eq!(error, FormatError::Capacity { capacity });
        assert!(error.to_string().contains(&capacity.to_string()), "{error}");
    }
}

#[test]
fn memory_of_a_wrong_length_is_refused_and_not_touched() {
    let plan = plan(4, PartSet::ALL);
    for words in [0, 1, plan.words() - 1, plan.words() + 1] {
        let memory = memory(words);
        let error = plan.format(&memory, false, INSTANCE, 7, &who(), &[]).expect_err("a wrong length");
        assert_eq!(error, FormatError::Length { needed: plan.image_len(), found: words as u64 * 8 });
        assert!(memory.iter().all(|word| word.load(Ordering::Relaxed) == !0), "touched");
    }
    let memory = memory(plan.words());
    assert_eq!(plan.format(&memory, false, 0, 7, &who(), &[]).err(), Some(FormatError::Instance));
    assert_eq!(
        plan.format(&memory, false, INSTANCE, 7, &who(), &[1; 33]).err(),
        Some(FormatError::Bounds { bounds: 33 })
    );
    assert!(memory.iter().all(|word| word.load(Ordering::Relaxed) == !0), "touched");
    let mut state = plan.format(&memory, false, INSTANCE, 7, &who(), &[]).expect("the right length");
    assert!(state.on(&memory[1..]).is_none());
}

#[test]
fn memory_cut_anywhere_is_never_taken_up() {
    let (memory, _) = formatted(2, PartSet::ALL);
    for words in 0..memory.len() {
        assert!(Image::take_up(&memory[..words]).is_err(), "{words} of {} words", memory.len());
    }
    assert!(Image::take_up(&memory).is_ok());
}

#[test]
fn parts_stand_where_the_table_says() {
    let (memory, mut state) = formatted(4, PartSet::ALL);
    let mut image = state.on(&memory).expect("the same memory");
    image.set_flow(&Flow {
        recorded: 21,
        exported: 6,
        lost: Losses { staging: 1, exporter: 2, interrupted: 3, backend: 4, closing: 5 },
    });
    image.set_notices(&Notices { names_changed: 1, dynamic_overflow: 2, refused: 3, file_trouble: 4 });
    image.set_clock(&ClockInfo { source: 2, quality: 1, rate: 1_000_000_007, anchor_ticks: 5, anchor_us: 6 });
    let bytes = bytes(&memory);

    let who_part = part(&bytes, PartKind::Identity).expect("all parts are there");
    let text = |(start, size): (usize, usize)| {
        let field = &who_part[start..start + size];
        std::str::from_utf8(field.split(|&byte| byte == 0).next().expect("one piece")).expect("UTF-8").to_owned()
    };
    assert_eq!(u64_at(who_part, identity::PID), 4711);
    assert_eq!(u64_at(who_part, identity::PROCESS_START), 99);
    assert_eq!(&who_part[identity::BOOT_ID..][..16], b"0123456789abcdef");
    assert_eq!((u64_at(who_part, identity::AGENT_INSTANCE), u64_at(who_part, identity::UID)), (3, 1000));
    assert_eq!(text(identity::WRITER), "telering test");
    assert_eq!(text(identity::HOSTNAME), "node-1");
    assert_eq!(text(identity::AGENT), "prefill é");
    assert_eq!(text(identity::RANK), "12");

    let flow = part(&bytes, PartKind::Losses).expect("all parts are there");
    let causes = losses::CAUSES.map(|(at, _)| u64_at(flow, at));
    assert_eq!((u64_at(flow, losses::RECORDED), u64_at(flow, losses::EXPORTED), causes), (21, 6, [1, 2, 3, 4, 5]));

    let seen = part(&bytes, PartKind::Notices).expect("all parts are there");
    let fields = [notices::NAMES_CHANGED, notices::DYNAMIC_OVERFLOW, notices::REFUSED, notices::FILE_TROUBLE];
    assert_eq!(fields.map(|at| u64_at(seen, at)), [1, 2, 3, 4]);

    let info = part(&bytes, PartKind::Clock).expect("all parts are there");
    assert_eq!((u32_at(info, clock::SOURCE), u32_at(info, clock::QUALITY)), (2, 1));
    assert_eq!([clock::RATE, clock::ANCHOR_TICKS, clock::ANCHOR_US].map(|at| u64_at(info, at)), [1_000_000_007, 5, 6]);

    let numbers = part(&bytes, PartKind::Metrics).expect("all parts are there");
    assert_eq!((u64_at(numbers, metrics::BOUNDS), u64_at(numbers, metrics::BOUNDS + 8)), (10, 100));
    assert_eq!(u64_at(numbers, metrics::COPY_SIZE_AT), metrics::COPY_SIZE as u64);
}

#[test]
fn a_part_that_an_image_does_not_have_is_not_written() {
    let (memory, mut state) = formatted(4, PartSet::NONE.with(PartKind::Notices));
    let mut image = state.on(&memory).expect("the same memory");
    image.set_flow(&Flow { recorded: 1, ..Flow::default() });
    image.publish(&Snapshot::default(), &[], 5);
    let bytes = bytes(&memory);
    assert!(part(&bytes, PartKind::Losses).is_none() && part(&bytes, PartKind::Metrics).is_none());
    assert!(part(&bytes, PartKind::Notices).is_some_and(|part| part.iter().all(|&byte| byte == 0)));
}

#[test]
fn texts_that_are_too_long_are_cut_at_a_letter_and_always_end() {
    let plan = plan(2, PartSet::NONE.with(PartKind::Identity));
    let memory = memory(plan.words());
    let (long, odd) = ("é".repeat(300), format!("x{}", "é".repeat(300)));
    let who = Identity { agent: &long, hostname: &odd, rank: &odd, writer: &long, ..who() };
    plan.format(&memory, false, INSTANCE, 7, &who, &[]).expect("memory of the right size");
    let bytes = bytes(&memory);
    let part = part(&bytes, PartKind::Identity).expect("it is there");
    for (start, size) in [identity::AGENT, identity::HOSTNAME, identity::RANK, identity::WRITER] {
        let text = part[start..start + size].split(|&byte| byte == 0).next().expect("one piece");
        assert!(text.len() == size - 2 || text.len() == size - 1, "{} of {size}", text.len());
        assert!(std::str::from_utf8(text).is_ok());
    }
}

#[test]
fn both_copies_of_the_metrics_verify_and_carry_their_generation() {
    let (memory, mut state) = formatted(4, PartSet::ALL);
    for generation in 1..=3_u64 {
        let mut snapshot = Snapshot::default();
        *snapshot.entry_mut(names::TX_BYTES).expect("a built-in event") =
            Total { sum: generation * 100, count: generation, last: 50, last_us: 9 };
        let named = vec![
            DynamicTotal {
                name: Name::from_static("cache_hit"),
                category: Category::CUSTOM,
                total: Total { sum: generation, ..Total::default() },
            };
            // Over the room of 64: the rest is left out.
            [1, 64, 70][generation as usize - 1]
        ];
        state.on(&memory).expect("the same memory").publish(&snapshot, &named, 1000 + generation);
        let bytes = bytes(&memory);
        let seen = control_of(&memory, 4);
        assert_eq!((seen.metrics_generation, seen.metrics_time), (generation, 1000 + generation));

        let half = (generation & 1) as usize;
        let built_in = &part(&bytes, PartKind::Metrics).expect("it is there")[metrics::COPIES..];
        let copy = &built_in[half * metrics::COPY_SIZE..][..metrics::COPY_SIZE];
        let (body, check) = copy.split_at(metrics::COPY_SIZE - 8);
        assert_eq!(u64_at(check, 0), CopyCheck::of_bytes(body));
        assert_eq!(u64_at(copy, 0), generation);
        let entry = &copy[metrics::COPY_ENTRIES..];
        let entry = entry.chunks(metrics::ENTRY_SIZE).find(|entry| u64_at(entry, 0) == u64::from(names::TX_BYTES));
        assert_eq!(entry.map(|entry| (u64_at(entry, 8), u64_at(entry, 16))), Some((generation * 100, generation)));

        let named_part = &part(&bytes, PartKind::Dynamic).expect("it is there")[dynamic::COPIES..];
        let copy = &named_part[half * dynamic::COPY_SIZE..][..dynamic::COPY_SIZE];
        let used = u64_at(copy, dynamic::COPY_USED) as usize;
        assert_eq!((u64_at(copy, 0), used), (generation, named.len().min(dynamic::ROOM)));
        let body = &copy[..dynamic::COPY_ENTRIES + used * dynamic::ENTRY_SIZE];
        assert_eq!(u64_at(copy, dynamic::COPY_SIZE - 8), CopyCheck::of_bytes(body));
        assert!(copy[dynamic::COPY_ENTRIES..].starts_with(b"cache_hit\0"));
    }
}

#[test]
fn a_part_of_another_shape_is_not_taken_up() {
    // Its numbers would go on being shown as current, since nobody writes them any more.
    let (memory, _) = formatted(4, PartSet::ALL);
    let table = (extension_offset(4).expect("a capacity") as usize + control::PART_TABLE) / 8;
    let length_of_first = &memory[table + 2];
    let whole = length_of_first.load(Ordering::Relaxed);
    length_of_first.store(whole - 64, Ordering::Relaxed);
    assert!(matches!(Image::take_up(&memory), Err(TakeUpError::Head(_))));
    length_of_first.store(whole, Ordering::Relaxed);
    assert!(Image::take_up(&memory).is_ok());
}

#[test]
fn a_device_without_a_wall_clock_starts_with_no_heartbeat() {
    let plan = ImagePlan::new(4, PartSet::NONE, TimeBase::Boot).expect("a capacity");
    let memory = memory(plan.words());
    plan.format(&memory, false, INSTANCE, 1_736_951_425_000_000, &who(), &[]).expect("the right length");
    let heartbeat = (extension_offset(4).expect("a capacity") as usize + control::HEARTBEAT) / 8;
    assert_eq!(memory[heartbeat].load(Ordering::Relaxed), 0);
}
