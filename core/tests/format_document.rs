//! FORMAT.md says what the code does: its tables are held against the code's constants.

use std::mem::offset_of;

use telering_core::check::FACTORS;
use telering_core::event::RECORD_SIZE;
use telering_core::image::{ImagePlan, PartSet};
use telering_core::layout::image::{
    BYTE_ORDER, CAPACITY_MAX, CAPACITY_MIN, MAGIC, MAX_BATCH, PART_ROW_SIZE, PARTS_MAX, TimeBase, control,
    extension_offset, head, max_batch, nixl_header,
};
use telering_core::layout::nixl::NixlLayout;
use telering_core::layout::parts::{PartKind, clock, dynamic, identity, losses, metrics, notices};
use telering_core::names::{self, BUILT_IN};
use telering_core::status::Status;
use telering_core::{Category, Name, Record};

const FORMAT: &str = include_str!("../../FORMAT.md");

type Table = Vec<Vec<String>>;

/// The tables of the section whose heading starts so, without their header rows.
fn tables(heading: &str) -> Vec<Table> {
    let mut lines = FORMAT.lines().skip_while(|line| !line.starts_with(heading)).skip(1).peekable();
    assert!(lines.peek().is_some(), "FORMAT.md has no section '{heading}'");
    let mut tables: Vec<Table> = Vec::new();
    let mut inside = false;
    for line in lines.take_while(|line| !line.starts_with('#')) {
        let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix('|'));
        match row {
            Some(row) if inside => {
                let cells = row.split('|').map(|cell| cell.trim().to_owned()).collect();
                tables.last_mut().expect("begun").push(cells);
            }
            // The header row; the line of dashes has no blank behind its first bar.
            Some(_) => {
                inside = true;
                tables.push(Vec::new());
            }
            None => inside = inside && line.starts_with("|-"),
        }
    }
    tables
}

fn number(text: &str) -> u64 {
    let hexadecimal = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
    hexadecimal.unwrap_or_else(|| text.parse()).unwrap_or_else(|_| panic!("'{text}' is no number"))
}

/// Holds the offsets and field names of a table, all of them and in this order, against the code.
#[track_caller]
fn assert_fields(table: &Table, code: &[(usize, &str)]) {
    let document: Vec<(usize, &str)> = table.iter().map(|row| (number(&row[0]) as usize, row[2].as_str())).collect();
    assert_eq!(document, code);
}

#[test]
fn limits_and_lengths() {
    let found = tables("## 2.");
    let limit: Vec<&str> = found[0].iter().map(|row| row[1].as_str()).collect();
    assert_eq!([limit[0], limit[2], limit[4]].map(number), [CAPACITY_MIN, CAPACITY_MAX, PARTS_MAX as u64]);
    assert_eq!(limit[3], format!("capacity / 16, at least {} and at most {MAX_BATCH}", max_batch(2)));
    assert_eq!((max_batch(64), max_batch(CAPACITY_MAX)), (4, 256));
    assert_eq!(found[1].len(), 5);
    for row in &found[1] {
        let [capacity, extension, len] = [0, 1, 2].map(|column| number(&row[column]));
        assert_eq!(extension_offset(capacity), Some(extension));
        let plan = ImagePlan::new(capacity, PartSet::ALL, TimeBase::Unix).expect("a power of two");
        assert_eq!(plan.image_len(), len, "capacity {capacity}");
    }
}

#[test]
fn header_and_record() {
    use nixl_header as h;
    assert_fields(
        &tables("## 3.")[0],
        &[
            (h::WRITE_POS, "write_pos"),
            (h::READ_POS, "read_pos"),
            (h::VERSION, "version"),
            (h::EXPECTED_VERSION, "expected_version"),
            (h::CAPACITY, "capacity"),
            (h::MASK, "mask"),
        ],
    );
    let found = tables("## 4.");
    assert_fields(
        &found[0],
        &[
            (offset_of!(Record, timestamp_us), "timestamp_us"),
            (offset_of!(Record, category), "category"),
            (offset_of!(Record, name), "name"),
            (offset_of!(Record, check), "check"),
            (offset_of!(Record, value), "value"),
        ],
    );
    let (filler, words) = found[1].split_last().expect("rows");
    assert_eq!(filler[0], Category::FILLER.0.to_string());
    let words: Vec<_> = words.iter().map(|row| (number(&row[0]) as i32, row[1].as_str())).collect();
    let code: Vec<_> = Category::ALL.map(|category| (category.0, category.as_str().expect("a word"))).into();
    assert_eq!(words, code);
}

#[test]
fn check_word() {
    let found = tables("## 5.");
    let factors: Vec<u64> = found[0].iter().map(|row| number(&row[2])).collect();
    assert_eq!(factors, FACTORS.map(u64::from));
    assert_eq!(found[1].len(), 3);
    for row in &found[1] {
        let name = if row[3] == "(empty)" { Name::from_bytes([0; 32]) } else { Name::new(&row[3]).0 };
        let record = Record::new(number(&row[1]), Category(number(&row[2]) as i32), name, number(&row[4]));
        assert_eq!(u64::from(record.sealed(number(&row[0])).check), number(&row[5]));
    }
}

#[test]
fn head_and_control_line() {
    let found = &tables("## 6.")[0];
    assert_fields(
        found,
        &[
            (head::MAGIC, "magic"),
            (head::VERSION, "major"),
            (head::VERSION + 2, "minor"),
            (head::VERSION + 4, "byte_order"),
            (head::IMAGE_LEN, "image_len"),
            (head::CAPACITY, "capacity"),
            (head::RECORD, "record_size"),
            (head::RECORD + 4, "record_kind"),
            (head::BATCH, "max_batch"),
            (head::BATCH + 4, "part_count"),
            (head::BATCH + 6, "flags"),
            (head::INSTANCE, "instance"),
            (head::CREATED, "created"),
        ],
    );
    assert!(found[0][3].starts_with(&format!("{MAGIC:#x},")));
    assert_eq!((number(&found[3][3]), found[6][3].clone()), (BYTE_ORDER.into(), RECORD_SIZE.to_string()));
    assert_fields(
        &tables("## 7.")[0],
        &[
            (control::INTENT, "intent"),
            (control::COMMITTED, "committed"),
            (control::METRICS_GENERATION, "metrics_generation"),
            (control::METRICS_TIME, "metrics_time"),
            (control::HEARTBEAT, "heartbeat"),
            (control::STATE, "state"),
            (control::STATE + 4, "time_base"),
            (control::BOOTS, "boots"),
            (control::BOOTS + 4, "reserved"),
        ],
    );
    assert!(FORMAT.contains(&format!("At E + {}: part_count rows", control::PART_TABLE)));
}

#[test]
fn kinds_and_sizes_of_parts() {
    let found = tables("## 8.");
    let row = &found[0];
    assert_eq!(number(&row[3][0]) as usize + 8, PART_ROW_SIZE);
    assert_eq!(found[1].len(), PartKind::ALL.len());
    for (row, kind) in found[1].iter().zip(PartKind::ALL) {
        assert_eq!((number(&row[0]), number(&row[2])), (kind as u64, kind.size()), "{}", row[1]);
    }
}

#[test]
fn fields_of_parts() {
    let found = &tables("### 9.1")[0];
    assert_fields(
        found,
        &[
            (identity::PID, "pid"),
            (identity::PROCESS_START, "process_start"),
            (identity::BOOT_ID, "boot_id"),
            (identity::AGENT_INSTANCE, "agent_instance"),
            (identity::UID, "uid"),
            (identity::WRITER.0, "writer"),
            (identity::HOSTNAME.0, "hostname"),
            (identity::AGENT.0, "agent"),
            (identity::RANK.0, "rank"),
        ],
    );
    for (row, size) in found[5..].iter().zip([identity::WRITER, identity::HOSTNAME, identity::AGENT, identity::RANK]) {
        assert_eq!(row[1], format!("{} bytes", size.1));
    }
    let mut counts = vec![(losses::RECORDED, "recorded"), (losses::EXPORTED, "exported")];
    counts.extend(losses::CAUSES);
    assert_fields(&tables("### 9.2")[0], &counts);
    assert_fields(
        &tables("### 9.3")[0],
        &[
            (notices::NAMES_CHANGED, "names_changed"),
            (notices::DYNAMIC_OVERFLOW, "dynamic_overflow"),
            (notices::REFUSED, "refused"),
            (notices::FILE_TROUBLE, "file_trouble"),
        ],
    );
    assert_fields(
        &tables("### 9.6")[0],
        &[
            (clock::SOURCE, "source"),
            (clock::QUALITY, "quality"),
            (clock::RATE, "rate"),
            (clock::ANCHOR_TICKS, "anchor_ticks"),
            (clock::ANCHOR_US, "anchor_us"),
        ],
    );
}

#[test]
fn copies_of_the_metrics() {
    use metrics as m;
    let found = tables("### 9.4");
    let numbers = |table: &Table| table.iter().map(|row| number(&row[0]) as usize).collect::<Vec<_>>();
    let (counts, statuses) = (m::COUNTS, m::BOUNDS_AND_STATUSES);
    assert_eq!(numbers(&found[0]), [counts, counts + 4, statuses, statuses + 4, m::COPY_SIZE_AT, m::BOUNDS, m::COPIES]);
    assert!(found[0][4][3].ends_with(&m::COPY_SIZE.to_string()));
    let histograms = m::COPY_ENTRIES + m::ENTRIES * m::ENTRY_SIZE;
    let errors = histograms + m::HISTOGRAMS * m::HISTOGRAM_SIZE;
    assert_eq!(numbers(&found[1]), [0, m::COPY_ENTRIES, histograms, errors, m::COPY_SIZE - 8]);
    let sizes = [(m::ENTRIES, m::ENTRY_SIZE), (m::HISTOGRAMS, m::HISTOGRAM_SIZE), (Status::ALL.len(), m::ERROR_SIZE)];
    for (row, (count, size)) in found[1][1..4].iter().zip(sizes) {
        assert_eq!(row[1], format!("{count} x {size}"));
    }

    use dynamic as d;
    let found = tables("### 9.5");
    assert_eq!(numbers(&found[0]), [d::ROOM_AT, d::COPY_SIZE_AT, d::COPIES]);
    assert!(found[0][0][3].ends_with(&d::ROOM.to_string()) && found[0][1][3].ends_with(&d::COPY_SIZE.to_string()));
    assert_eq!(numbers(&found[1]), [0, d::COPY_USED, d::COPY_ENTRIES, d::COPY_SIZE - 8]);
    assert_eq!(found[1][2][1], format!("{} x {}", d::ROOM, d::ENTRY_SIZE));
}

#[test]
fn the_table_of_names() {
    let document = &tables("## 17.")[0];
    let code: Table = BUILT_IN
        .iter()
        .map(|row| {
            let category = row.category.as_str().expect("a word");
            let (gauge, histogram) = (row.gauge.unwrap_or_default(), row.histogram.unwrap_or_default());
            let texts = [row.name, row.file_name(), category, row.unit.as_str(), row.counter, gauge, histogram];
            std::iter::once(row.id.to_string()).chain(texts.map(str::to_owned)).collect()
        })
        .collect();
    assert_eq!(*document, code);
}

#[test]
fn the_table_of_status_codes() {
    let code: Table = Status::ALL
        .iter()
        .map(|&status| {
            let id = names::error_id(status).to_string();
            vec![status.code().to_string(), status.text().to_owned(), status.label().to_owned(), id]
        })
        .collect();
    assert_eq!(tables("## 18.")[0], code);
}

#[test]
fn layouts_of_nixl() {
    let code: Table = NixlLayout::ALL
        .iter()
        .map(|layout| {
            let (version, size) = (layout.version().to_string(), layout.record_size().to_string());
            vec![layout.as_str().to_owned(), layout.releases().to_owned(), version, size]
        })
        .collect();
    assert_eq!(tables("## 20.")[0], code);
}
