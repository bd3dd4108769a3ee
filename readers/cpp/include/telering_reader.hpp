// telering_reader.hpp: reads the telemetry files of Telering and of NIXL. C++17, POSIX, no dependency.
//
//     telering::Reader reader("/dev/shm/telemetry/agent");
//     while (auto item = reader.next())
//         if (item->kind == telering::ItemKind::event)
//             std::cout << item->event.name.view() << ' ' << item->event.value << '\n';
//
// It is written from FORMAT.md alone; "section N" below is a section of that text. It reads by `pread` into memory
// of its own, so a file that is truncated, replaced or unlinked meanwhile is an error and never a signal. It needs read
// permission only and changes nothing, unless it is asked to consume one of NIXL's own files.
//
// Errors: whatever goes wrong is thrown as telering::Error, and nothing else is but std::bad_alloc. Its kind() is for
// programs, its what() for people: which file, what happened, what to do. After an error a reader can be used further;
// the next call looks again.
//
// Threads: a reader belongs to one thread at a time. Any number of readers may read one file.
//
// In order: layout, errors, names, check words, files, batches, images, NIXL's rings, info, transfers, Reader, Follower.

#ifndef TELERING_READER_HPP
#define TELERING_READER_HPP

#if __cplusplus < 201703L
#error "telering_reader.hpp needs C++17"
#endif
#if !defined(__cpp_exceptions)
#error "telering_reader.hpp needs exceptions: its errors are thrown"
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(TELERING_NO_VECTORS)
#define TELERING_AVX2 1
#include <immintrin.h>
#endif

namespace telering {

// ---------------------------------------------------------------------------------------------------------------
// Layout. These types say where each field stands; their bytes are little-endian whatever the host is, so they are
// read by detail::u64_at and the like, never through these types. Only Record is used as one: in the host's order.

namespace layout {

struct Header {  // section 3
    std::uint64_t write_pos;
    std::uint64_t read_pos;
    std::uint32_t version;
    std::uint32_t expected_version;
    std::uint64_t capacity;
    std::uint64_t mask;
};
static_assert(sizeof(Header) == 40);
static_assert(offsetof(Header, write_pos) == 0 && offsetof(Header, read_pos) == 8 && offsetof(Header, version) == 16);
static_assert(offsetof(Header, expected_version) == 20 && offsetof(Header, capacity) == 24 && offsetof(Header, mask) == 32);

struct Head {  // section 6
    std::uint64_t magic;
    std::uint16_t major_version;
    std::uint16_t minor_version;
    std::uint32_t byte_order;
    std::uint64_t image_len;
    std::uint64_t capacity;
    std::uint32_t record_size;
    std::uint32_t record_kind;
    std::uint32_t max_batch;
    std::uint16_t part_count;
    std::uint16_t flags;
    std::uint64_t instance;
    std::uint64_t created;
};
static_assert(sizeof(Head) == 64);
static_assert(offsetof(Head, magic) == 0 && offsetof(Head, major_version) == 8 && offsetof(Head, minor_version) == 10);
static_assert(offsetof(Head, byte_order) == 12 && offsetof(Head, image_len) == 16 && offsetof(Head, capacity) == 24);
static_assert(offsetof(Head, record_size) == 32 && offsetof(Head, record_kind) == 36 && offsetof(Head, max_batch) == 40);
static_assert(offsetof(Head, part_count) == 44 && offsetof(Head, flags) == 46 && offsetof(Head, instance) == 48);
static_assert(offsetof(Head, created) == 56);

struct Control {  // section 7; its table counts from E, this from E + 64
    std::uint64_t intent;
    std::uint64_t committed;
    std::uint64_t metrics_generation;
    std::uint64_t metrics_time;
    std::uint64_t heartbeat;
    std::uint32_t state;
    std::uint32_t time_base;
    std::uint32_t boots;
    std::uint8_t reserved[12];
};
static_assert(sizeof(Control) == 64);
static_assert(offsetof(Control, intent) == 64 - 64 && offsetof(Control, committed) == 72 - 64);
static_assert(offsetof(Control, metrics_generation) == 80 - 64 && offsetof(Control, metrics_time) == 88 - 64);
static_assert(offsetof(Control, heartbeat) == 96 - 64 && offsetof(Control, state) == 104 - 64);
static_assert(offsetof(Control, time_base) == 108 - 64 && offsetof(Control, boots) == 112 - 64);

struct PartRow {  // section 8
    std::uint32_t kind;
    std::uint32_t version;
    std::uint64_t offset;
    std::uint64_t len;
};
static_assert(sizeof(PartRow) == 24);
static_assert(offsetof(PartRow, kind) == 0 && offsetof(PartRow, version) == 4 && offsetof(PartRow, offset) == 8);
static_assert(offsetof(PartRow, len) == 16);

struct Identity {  // section 9.1
    std::uint64_t pid;
    std::uint64_t process_start;
    std::uint8_t boot_id[16];
    std::uint64_t agent_instance;
    std::uint64_t uid;
    char writer[48];
    char hostname[128];
    char agent[256];
    char rank[64];
    std::uint8_t reserved[32];
};
static_assert(sizeof(Identity) == 576);
static_assert(offsetof(Identity, pid) == 0 && offsetof(Identity, process_start) == 8 && offsetof(Identity, boot_id) == 16);
static_assert(offsetof(Identity, agent_instance) == 32 && offsetof(Identity, uid) == 40 && offsetof(Identity, writer) == 48);
static_assert(offsetof(Identity, hostname) == 96 && offsetof(Identity, agent) == 224 && offsetof(Identity, rank) == 480);

struct Losses {  // section 9.2
    std::uint64_t recorded;
    std::uint64_t exported;
    std::uint64_t staging;
    std::uint64_t exporter;
    std::uint64_t interrupted;
    std::uint64_t backend;
    std::uint64_t closing;
    std::uint64_t reserved;
};
static_assert(sizeof(Losses) == 64);
static_assert(offsetof(Losses, recorded) == 0 && offsetof(Losses, exported) == 8 && offsetof(Losses, staging) == 16);
static_assert(offsetof(Losses, exporter) == 24 && offsetof(Losses, interrupted) == 32 && offsetof(Losses, backend) == 40);
static_assert(offsetof(Losses, closing) == 48);

struct Notices {  // section 9.3
    std::uint64_t names_changed;
    std::uint64_t dynamic_overflow;
    std::uint64_t refused;
    std::uint64_t file_trouble;
    std::uint64_t reserved[4];
};
static_assert(sizeof(Notices) == 64);
static_assert(offsetof(Notices, names_changed) == 0 && offsetof(Notices, dynamic_overflow) == 8);
static_assert(offsetof(Notices, refused) == 16 && offsetof(Notices, file_trouble) == 24);

struct Metrics {  // section 9.4, before its copies
    std::uint32_t entries;
    std::uint32_t histograms;
    std::uint32_t bounds;
    std::uint32_t statuses;
    std::uint64_t copy_size;
    std::uint64_t reserved;
    std::uint64_t bound[32];
    std::uint64_t padding[4];
};
static_assert(sizeof(Metrics) == 320);
static_assert(offsetof(Metrics, entries) == 0 && offsetof(Metrics, histograms) == 4 && offsetof(Metrics, bounds) == 8);
static_assert(offsetof(Metrics, statuses) == 12 && offsetof(Metrics, copy_size) == 16 && offsetof(Metrics, bound) == 32);

struct Dynamic {  // section 9.5, before its copies
    std::uint32_t room;
    std::uint32_t reserved;
    std::uint64_t copy_size;
    std::uint64_t padding[6];
};
static_assert(sizeof(Dynamic) == 64);
static_assert(offsetof(Dynamic, room) == 0 && offsetof(Dynamic, copy_size) == 8);

struct DynamicEntry {
    char name[32];
    std::int32_t category;
    std::uint32_t reserved;
    std::uint64_t sum;
    std::uint64_t count;
    std::uint64_t last;
    std::uint64_t last_time;
};
static_assert(sizeof(DynamicEntry) == 72);
static_assert(offsetof(DynamicEntry, name) == 0 && offsetof(DynamicEntry, category) == 32 && offsetof(DynamicEntry, sum) == 40);
static_assert(offsetof(DynamicEntry, count) == 48 && offsetof(DynamicEntry, last) == 56);
static_assert(offsetof(DynamicEntry, last_time) == 64);

struct Clock {  // section 9.6
    std::uint32_t source;
    std::uint32_t quality;
    std::uint64_t rate;
    std::uint64_t anchor_ticks;
    std::uint64_t anchor_us;
    std::uint64_t reserved[4];
};
static_assert(sizeof(Clock) == 64);
static_assert(offsetof(Clock, source) == 0 && offsetof(Clock, quality) == 4 && offsetof(Clock, rate) == 8);
static_assert(offsetof(Clock, anchor_ticks) == 16 && offsetof(Clock, anchor_us) == 24);

struct NixlRecord48 {  // section 20, L2a
    std::int32_t category;
    char name[32];
    std::uint32_t padding;
    std::uint64_t value;
};
static_assert(sizeof(NixlRecord48) == 48);
static_assert(offsetof(NixlRecord48, category) == 0 && offsetof(NixlRecord48, name) == 4 && offsetof(NixlRecord48, value) == 40);

inline constexpr std::uint64_t magic = 0x474e4952454c4554;
inline constexpr std::uint32_t byte_order = 0x01020304;
inline constexpr std::uint16_t major_version = 1;
inline constexpr std::uint64_t largest_capacity = 16777216;
inline constexpr std::uint16_t most_parts = 64;

// E: where the extension of an image begins (section 2).
constexpr std::uint64_t extension(std::uint64_t capacity) noexcept { return (40 + 56 * capacity + 63) / 64 * 64; }
static_assert(extension(2) == 192 && extension(64) == 3648 && extension(16777216) == 939524160);

constexpr std::uint64_t max_batch(std::uint64_t capacity) noexcept {
    return capacity / 16 < 1 ? 1 : capacity / 16 > 256 ? 256 : capacity / 16;
}

}  // namespace layout

// One record of a ring (section 4), in the host's byte order. In batches of NIXL's own files, whose records are
// shorter, what the layout lacks is 0; Batch says what that is.
struct Record {
    std::uint64_t timestamp_us;
    std::int32_t category;
    char name[32];
    std::uint32_t check;
    std::uint64_t value;

    // The name's bytes before the first NUL, as they stand in the file: not fit for a terminal (see EventName).
    std::string_view stored_name() const noexcept {
        const void* end = std::memchr(name, 0, sizeof name);
        return {name, end == nullptr ? sizeof name : static_cast<std::size_t>(static_cast<const char*>(end) - name)};
    }
};
static_assert(sizeof(Record) == 56 && std::is_trivially_copyable_v<Record> && std::is_standard_layout_v<Record>);
static_assert(offsetof(Record, timestamp_us) == 0 && offsetof(Record, category) == 8 && offsetof(Record, name) == 12);
static_assert(offsetof(Record, check) == 44 && offsetof(Record, value) == 48);

namespace detail {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
inline constexpr bool big_endian = true;
#else
inline constexpr bool big_endian = false;
#endif

// Little-endian numbers, whatever the host is. Compilers make one load of each.
inline std::uint64_t u64_at(const unsigned char* at) noexcept {
    std::uint64_t value = 0;
    for (unsigned byte = 0; byte < 8; ++byte) value |= static_cast<std::uint64_t>(at[byte]) << (8 * byte);
    return value;
}
inline std::uint32_t u32_at(const unsigned char* at) noexcept {
    std::uint32_t value = 0;
    for (unsigned byte = 0; byte < 4; ++byte) value |= static_cast<std::uint32_t>(at[byte]) << (8 * byte);
    return value;
}
inline std::uint16_t u16_at(const unsigned char* at) noexcept {
    return static_cast<std::uint16_t>(at[0] | static_cast<unsigned>(at[1]) << 8);
}
inline std::int32_t i32_at(const unsigned char* at) noexcept { return static_cast<std::int32_t>(u32_at(at)); }

inline std::uint64_t swapped(std::uint64_t value) noexcept {
    std::uint64_t result = 0;
    for (unsigned byte = 0; byte < 8; ++byte) result = result << 8 | (value >> (8 * byte) & 0xff);
    return result;
}
inline std::uint32_t swapped(std::uint32_t value) noexcept {
    return static_cast<std::uint32_t>(swapped(static_cast<std::uint64_t>(value)) >> 32);
}

inline bool is_power_of_two(std::uint64_t number) noexcept { return number != 0 && (number & (number - 1)) == 0; }

inline std::uint64_t minus(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }
inline std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept {
    return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

inline std::uint64_t now_us() noexcept {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
    return us < 0 ? 0 : static_cast<std::uint64_t>(us);
}

// One character of UTF-8. Where the bytes are none, `size` is the longest piece that could have begun one, which is
// what one U+FFFD stands for.
struct Character {
    bool valid;
    std::size_t size;
    std::uint32_t code;
};
inline Character character_at(std::string_view text, std::size_t at) noexcept {
    const auto byte = [&](std::size_t place) { return static_cast<unsigned char>(text[place]); };
    const unsigned first = byte(at);
    if (first < 0x80) return {true, 1, first};
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4) return {false, 1, 0};
    std::uint32_t code = first & (0x7fU >> size);
    for (std::size_t more = 1; more < size; ++more) {
        if (at + more >= text.size()) return {false, more, 0};
        const unsigned next = byte(at + more);
        // The second byte's range leaves out what is too long, a surrogate, or behind U+10FFFF.
        unsigned low = 0x80;
        unsigned high = 0xbf;
        if (more == 1 && first == 0xe0) low = 0xa0;
        if (more == 1 && first == 0xed) high = 0x9f;
        if (more == 1 && first == 0xf0) low = 0x90;
        if (more == 1 && first == 0xf4) high = 0x8f;
        if (next < low || next > high) return {false, more, 0};
        code = code << 6 | (next & 0x3f);
    }
    return {true, size, code};
}
inline bool is_control(std::uint32_t code) noexcept { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

// A path as a message shows it: nothing in it can steer a terminal.
inline std::string shown(std::string_view path) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t at = 0; at < path.size();) {
        const Character next = character_at(path, at);
        if (next.valid && !is_control(next.code)) {
            text.append(path, at, next.size);
        } else {
            for (std::size_t more = 0; more < next.size; ++more) {
                const auto byte = static_cast<unsigned char>(path[at + more]);
                text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
            }
        }
        at += next.size;
    }
    return text;
}

// A text of the identity: bytes that are no UTF-8 become U+FFFD.
inline std::string text_of(const unsigned char* bytes, std::size_t room) {
    std::string_view raw(reinterpret_cast<const char*>(bytes), room);
    raw = raw.substr(0, raw.find('\0'));
    std::string text;
    for (std::size_t at = 0; at < raw.size();) {
        const Character next = character_at(raw, at);
        if (next.valid) text.append(raw, at, next.size);
        else text += "\xef\xbf\xbd";
        at += next.size;
    }
    return text;
}

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------------
// Errors

enum class ErrorKind {
    not_telemetry,        // something else: no telemetry header, a directory, a FIFO
    unsupported_version,  // a version that this reader doesn't know; the file was left alone
    wrong_byte_order,     // written on a machine of the other byte order, or by a broken producer there
    not_ready,            // being made: try again
    damaged,              // a telemetry file whose numbers don't agree
    resized,              // truncated or made longer since it was opened
    changed,              // it turned into something else since it was opened
    needs_write,          // consuming stores the read index, and this user may not write
    nothing_to_consume,   // consuming is for NIXL's own files
    no_transfers,         // the layout doesn't tell which events belong to one transfer
    io,                   // the system refused; code() says why
};

inline const char* to_string(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::not_telemetry: return "not_telemetry";
        case ErrorKind::unsupported_version: return "unsupported_version";
        case ErrorKind::wrong_byte_order: return "wrong_byte_order";
        case ErrorKind::not_ready: return "not_ready";
        case ErrorKind::damaged: return "damaged";
        case ErrorKind::resized: return "resized";
        case ErrorKind::changed: return "changed";
        case ErrorKind::needs_write: return "needs_write";
        case ErrorKind::nothing_to_consume: return "nothing_to_consume";
        case ErrorKind::no_transfers: return "no_transfers";
        case ErrorKind::io: return "io";
    }
    return "unknown";
}

// The one exception of this header.
class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, std::string path, const std::string& reason, std::error_code code = {})
        : std::runtime_error(detail::shown(path) + ": " + reason + advice(kind)), kind_(kind), path_(std::move(path)),
          reason_(reason), code_(code) {}

    ErrorKind kind() const noexcept { return kind_; }
    const std::string& path() const noexcept { return path_; }
    // What happened, without the file's name and the advice.
    const std::string& reason() const noexcept { return reason_; }
    // The system's answer where the kind is io or needs_write.
    std::error_code code() const noexcept { return code_; }

private:
    static const char* advice(ErrorKind kind) noexcept {
        switch (kind) {
            case ErrorKind::not_telemetry: return ". Name a file that an agent wrote into NIXL_TELEMETRY_DIR";
            case ErrorKind::unsupported_version: return ". The file was left alone; update this reader";
            case ErrorKind::wrong_byte_order: return ". Read it with the program that wrote it";
            case ErrorKind::not_ready: return ". Try again; if it stays so, start its producer anew";
            case ErrorKind::damaged: return ". Copy it again, or let its producer make a new one";
            case ErrorKind::resized: return ". Open it again to see what it is now";
            case ErrorKind::changed: return ". Open it again to see what it is now";
            case ErrorKind::needs_write: return ". Read without consuming, or as the producer's user";
            case ErrorKind::nothing_to_consume: return ". Read it without consuming";
            case ErrorKind::no_transfers: return ". Read its events instead";
            case ErrorKind::io: return "";
        }
        return "";
    }

    ErrorKind kind_;
    std::string path_;
    std::string reason_;
    std::error_code code_;
};

// ---------------------------------------------------------------------------------------------------------------
// Names (section 17)

enum class Category : std::int32_t {
    memory = 0,
    transfer = 1,
    connection = 2,
    backend = 3,
    error = 4,
    performance = 5,
    system = 6,
    custom = 7,
};

// The word for a category, its number for one that is not known here.
inline std::string category_name(std::int32_t category) {
    static constexpr const char* words[] = {"MEMORY", "TRANSFER", "CONNECTION", "BACKEND", "ERROR", "PERFORMANCE", "SYSTEM", "CUSTOM"};
    if (category >= 0 && category < 8) return words[category];
    return std::to_string(category);
}

// A row of the names table.
struct EventType {
    std::uint32_t id;
    std::string_view name;
    std::string_view record_name;
    Category category;
    std::string_view unit;
};

inline constexpr std::array<EventType, 27> event_types = {{
    {0, "agent_tx_bytes", "agent_tx_bytes", Category::transfer, "bytes"},
    {1, "agent_rx_bytes", "agent_rx_bytes", Category::transfer, "bytes"},
    {2, "agent_tx_requests_num", "agent_tx_requests_num", Category::transfer, "count"},
    {3, "agent_rx_requests_num", "agent_rx_requests_num", Category::transfer, "count"},
    {4, "agent_memory_registered", "agent_memory_registered", Category::memory, "bytes"},
    {5, "agent_memory_deregistered", "agent_memory_deregistered", Category::memory, "bytes"},
    {6, "agent_xfer_time", "agent_xfer_time", Category::performance, "us"},
    {7, "agent_xfer_post_time", "agent_xfer_post_time", Category::performance, "us"},
    {8, "agent_err_not_posted", "NIXL_ERR_NOT_POSTED", Category::error, "count"},
    {9, "agent_err_invalid_param", "NIXL_ERR_INVALID_PARAM", Category::error, "count"},
    {10, "agent_err_backend", "NIXL_ERR_BACKEND", Category::error, "count"},
    {11, "agent_err_not_found", "NIXL_ERR_NOT_FOUND", Category::error, "count"},
    {12, "agent_err_mismatch", "NIXL_ERR_MISMATCH", Category::error, "count"},
    {13, "agent_err_not_allowed", "NIXL_ERR_NOT_ALLOWED", Category::error, "count"},
    {14, "agent_err_repost_active", "NIXL_ERR_REPOST_ACTIVE", Category::error, "count"},
    {15, "agent_err_unknown", "NIXL_ERR_UNKNOWN", Category::error, "count"},
    {16, "agent_err_not_supported", "NIXL_ERR_NOT_SUPPORTED", Category::error, "count"},
    {17, "agent_err_remote_disconnect", "NIXL_ERR_REMOTE_DISCONNECT", Category::error, "count"},
    {18, "agent_err_canceled", "NIXL_ERR_CANCELED", Category::error, "count"},
    {19, "agent_err_no_telemetry", "NIXL_ERR_NO_TELEMETRY", Category::error, "count"},
    {20, "agent_telemetry_events_dropped", "agent_telemetry_events_dropped", Category::error, "count"},
    {1000, "agent_started", "agent_started", Category::system, "count"},
    {1001, "agent_stopped", "agent_stopped", Category::system, "count"},
    {1002, "agent_metadata_sent", "agent_metadata_sent", Category::connection, "bytes"},
    {1003, "agent_metadata_received", "agent_metadata_received", Category::connection, "bytes"},
    {1004, "agent_connected", "agent_connected", Category::connection, "count"},
    {1005, "agent_disconnected", "agent_disconnected", Category::connection, "count"},
}};

// The row of an id; nullptr for one that is not in the table.
inline const EventType* event_type(std::uint32_t id) noexcept {
    for (const EventType& row : event_types)
        if (row.id == id) return &row;
    return nullptr;
}
// The row of a name, in either form.
inline const EventType* event_type(std::string_view name) noexcept {
    for (const EventType& row : event_types)
        if (row.name == name || row.record_name == name) return &row;
    return nullptr;
}

// The name of an event: UTF-8 without control characters, at most 32 bytes, never empty.
class EventName {
public:
    EventName() noexcept = default;

    // A name as it stands in a file. Control characters become `_`; what is no UTF-8 ends it.
    static EventName of_file(std::string_view stored) noexcept {
        EventName name;
        name.size_ = 0;
        stored = stored.substr(0, sizeof name.text_);
        for (std::size_t at = 0; at < stored.size();) {
            const detail::Character next = detail::character_at(stored, at);
            if (!next.valid || next.code == 0) break;
            if (detail::is_control(next.code)) {
                name.text_[name.size_++] = '_';
            } else {
                std::memcpy(name.text_ + name.size_, stored.data() + at, next.size);
                name.size_ = static_cast<std::uint8_t>(name.size_ + next.size);
            }
            at += next.size;
        }
        if (name.size_ == 0) name.set("_");
        return name;
    }

    // The name of an event type; `unknown(21)` for one that is not in the table.
    static EventName of_type(std::uint32_t id) {
        EventName name;
        if (const EventType* row = event_type(id)) name.set(row->name);
        else name.set("unknown(" + std::to_string(id) + ")");
        return name;
    }

    std::string_view view() const noexcept { return {text_, size_}; }
    std::string str() const { return std::string(view()); }

    friend bool operator==(const EventName& a, std::string_view b) noexcept { return a.view() == b; }
    friend bool operator!=(const EventName& a, std::string_view b) noexcept { return a.view() != b; }

private:
    void set(std::string_view text) noexcept {
        size_ = static_cast<std::uint8_t>(std::min(text.size(), sizeof text_));
        std::memcpy(text_, text.data(), size_);
    }

    char text_[32] = {'_'};
    std::uint8_t size_ = 1;
};

// ---------------------------------------------------------------------------------------------------------------
// Check words (section 5)

namespace detail {

inline constexpr std::array<std::uint32_t, 15> factors = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b, 0x510e527f, 0x9b05688d, 0x1f83d9ab, 0x5be0cd19,
    0xcbbb9d5d, 0x629a292b, 0x9159015b, 0x152fecd9, 0x67332667, 0x8eb44a87, 0xdb0c2e0d};

// The factor of each 32-bit word of a record; 0 for the check word itself.
inline constexpr std::array<std::uint32_t, 14> word_factors = {
    factors[2], factors[3], factors[4], factors[5],  factors[6],  factors[7], factors[8],
    factors[9], factors[10], factors[11], factors[12], 0,         factors[13], factors[14]};

constexpr std::uint32_t term(std::uint32_t word, std::uint32_t factor) noexcept { return (word ^ word >> 16) * factor; }
constexpr std::uint32_t low(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word); }
constexpr std::uint32_t high(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }

inline void swap_record(Record& record) noexcept {
    record.timestamp_us = swapped(record.timestamp_us);
    record.category = static_cast<std::int32_t>(swapped(static_cast<std::uint32_t>(record.category)));
    record.check = swapped(record.check);
    record.value = swapped(record.value);
}

}  // namespace detail

// The check word of a record at a position.
inline std::uint32_t check_word(std::uint64_t position, const Record& record) noexcept {
    Record stored = record;
    if constexpr (detail::big_endian) detail::swap_record(stored);
    unsigned char bytes[sizeof(Record)];
    std::memcpy(bytes, &stored, sizeof bytes);
    std::uint32_t sum = detail::term(detail::low(position), detail::factors[0]) + detail::term(detail::high(position), detail::factors[1]);
    for (std::size_t word = 0; word < detail::word_factors.size(); ++word)
        sum += detail::term(detail::u32_at(bytes + 4 * word), detail::word_factors[word]);
    return sum == 0 ? 1 : sum;
}

// Whether a record is the one of a position.
inline bool fits(std::uint64_t position, const Record& record) noexcept { return check_word(position, record) == record.check; }

// Why a place of a batch holds no event.
enum class GapKind : std::uint8_t {
    lost,         // overwritten: what a copy of a live file holds there is of another lap
    interrupted,  // its producer was reset while it wrote
    unverified,   // its check word belongs to other bytes or to another position
};

// A place of a batch that holds no event.
struct Gap {
    std::size_t place;  // index among the batch's records
    GapKind kind;
};

namespace detail {

inline void judge(std::uint64_t position, const Record& record, std::size_t place, std::vector<Gap>& gaps) {
    if (!fits(position, record)) gaps.push_back({place, GapKind::unverified});
    else if (record.category == -1) gaps.push_back({place, GapKind::interrupted});
}

#ifdef TELERING_AVX2
#define TELERING_WITH_AVX2 __attribute__((target("avx2")))

struct alignas(32) Factors {
    std::uint32_t front[8];
    std::uint32_t back[8];
};
// A record is 14 words: vectors of its first eight and its last eight, which share two.
inline constexpr Factors vector_factors = {
    {word_factors[0], word_factors[1], word_factors[2], word_factors[3], word_factors[4], word_factors[5], word_factors[6], word_factors[7]},
    {0, 0, word_factors[8], word_factors[9], word_factors[10], 0, word_factors[12], word_factors[13]}};

TELERING_WITH_AVX2 inline __m256i load(const void* at) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
TELERING_WITH_AVX2 inline __m256i terms(__m256i words, __m256i with) noexcept {
    return _mm256_mullo_epi32(_mm256_xor_si256(words, _mm256_srli_epi32(words, 16)), with);
}

// Whether eight records are events that fit the positions from `first` on. May say no where it is hard to tell; they are
// then judged one by one.
TELERING_WITH_AVX2 inline bool eight_fit(std::uint64_t first, const Record* records) noexcept {
    if (low(first) > std::numeric_limits<std::uint32_t>::max() - 7) return false;
    const __m256i front_factors = load(vector_factors.front);
    const __m256i back_factors = load(vector_factors.back);
    const __m256i zero = _mm256_setzero_si256();
    const __m256i ones = _mm256_set1_epi32(-1);
    // Lane 2 of the front is the category, lane 5 of the back the check word.
    __m256i strange = zero;
    __m256i sums[8];
    for (std::size_t at = 0; at < 8; ++at) {
        const char* bytes = reinterpret_cast<const char*>(records + at);
        const __m256i front = load(bytes);
        const __m256i back = load(bytes + 24);
        const __m256i filler = _mm256_and_si256(_mm256_cmpeq_epi32(front, ones), _mm256_setr_epi32(0, 0, -1, 0, 0, 0, 0, 0));
        const __m256i never = _mm256_and_si256(_mm256_cmpeq_epi32(back, zero), _mm256_setr_epi32(0, 0, 0, 0, 0, -1, 0, 0));
        strange = _mm256_or_si256(strange, _mm256_or_si256(filler, never));
        const __m256i check = _mm256_and_si256(back, _mm256_setr_epi32(0, 0, 0, 0, 0, -1, 0, 0));
        // The check word is taken off the sum that it should be, so that 0 remains.
        sums[at] = _mm256_sub_epi32(_mm256_add_epi32(terms(front, front_factors), terms(back, back_factors)), check);
    }
    // Four halves, two halves, one: lane k becomes the sum over record k.
    const __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    const __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[4], sums[5]), _mm256_hadd_epi32(sums[6], sums[7]));
    const __m256i records_sum = _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
    const __m256i lows = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(low(first))), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i positions = _mm256_add_epi32(terms(lows, _mm256_set1_epi32(static_cast<int>(factors[0]))),
                                               _mm256_set1_epi32(static_cast<int>(term(high(first), factors[1]))));
    const __m256i rest = _mm256_add_epi32(records_sum, positions);
    return _mm256_testz_si256(rest, rest) == 1 && _mm256_testz_si256(strange, strange) == 1;
}

TELERING_WITH_AVX2 inline void judge_avx2(std::uint64_t first, const Record* records, std::size_t count, std::vector<Gap>& gaps) {
    std::size_t place = 0;
    for (; place + 8 <= count; place += 8) {
        if (eight_fit(first + place, records + place)) continue;
        for (std::size_t one = place; one < place + 8; ++one) judge(first + one, records[one], one, gaps);
    }
    for (; place < count; ++place) judge(first + place, records[place], place, gaps);
}
#undef TELERING_WITH_AVX2
#endif

// Adds the places that hold no event, in order. `first` is the position of the first record.
inline void judge_all(std::uint64_t first, const Record* records, std::size_t count, bool verify, std::vector<Gap>& gaps) {
    if (!verify) {
        for (std::size_t place = 0; place < count; ++place)
            if (records[place].category == -1) gaps.push_back({place, GapKind::interrupted});
        return;
    }
#ifdef TELERING_AVX2
    static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
    if (has_avx2) return judge_avx2(first, records, count, gaps);
#endif
    for (std::size_t place = 0; place < count; ++place) judge(first + place, records[place], place, gaps);
}

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------------
// Files

namespace detail {

// What is read by one call is not older than what the call before it read: that order is what makes a copy of a live ring
// trustworthy (section 11). The thread sanitizer knows no fences and needs none here: no memory is shared.
inline void read_in_order() noexcept {
#if defined(__SANITIZE_THREAD__)
#elif defined(__has_feature)
#if !__has_feature(thread_sanitizer)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

enum class Lock { held, free, unknown };

// An open file.
class File {
public:
    File(std::string path, bool write) : path_(std::move(path)) {
        // The system would look at what stands before it, and find another file.
        if (path_.find('\0') != std::string::npos) throw Error(ErrorKind::not_telemetry, path_, "not a telemetry file: a NUL is in no file's name");
        struct stat seen {};
        // Looked at before it is opened: opening a device can do things.
        if (::stat(path_.c_str(), &seen) != 0) fail("look at it");
        check_kind(seen.st_mode);
        do {
            descriptor_ = ::open(path_.c_str(), (write ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        } while (descriptor_ < 0 && errno == EINTR);
        if (descriptor_ < 0) {
            if (write && (errno == EACCES || errno == EPERM || errno == EROFS)) {
                const std::error_code code(errno, std::system_category());
                throw Error(ErrorKind::needs_write, path_, "consuming needs write permission: " + code.message(), code);
            }
            fail("open it");
        }
        // And again: the name may lead elsewhere by now. Nothing but this destructor will close it if that throws.
        const bool known = ::fstat(descriptor_, &seen) == 0;
        if (!known || !S_ISREG(seen.st_mode)) {
            const int code = errno;
            ::close(std::exchange(descriptor_, -1));
            errno = code;
            if (!known) fail("look at it");
            check_kind(seen.st_mode);
        }
        device_ = seen.st_dev;
        inode_ = seen.st_ino;
    }
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    File(File&& other) noexcept
        : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), device_(other.device_), inode_(other.inode_) {}
    File& operator=(File&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(descriptor_, other.descriptor_);
        std::swap(device_, other.device_);
        std::swap(inode_, other.inode_);
        return *this;
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    const std::string& path() const noexcept { return path_; }

    std::uint64_t size() const {
        struct stat seen {};
        if (::fstat(descriptor_, &seen) != 0) fail("ask for its length");
        return seen.st_size < 0 ? 0 : static_cast<std::uint64_t>(seen.st_size);
    }

    // Copies `size` bytes from `offset` on. False if the file ends before.
    bool read(std::uint64_t offset, void* into, std::size_t size) const {
        auto* to = static_cast<unsigned char*>(into);
        read_in_order();
        while (size > 0) {
            if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return false;
            const ssize_t got = ::pread(descriptor_, to, size, static_cast<off_t>(offset));
            if (got == 0) return false;
            if (got < 0) {
                if (errno == EINTR) continue;
                fail("read it");
            }
            to += got;
            offset += static_cast<std::uint64_t>(got);
            size -= static_cast<std::size_t>(got);
        }
        read_in_order();
        return true;
    }

    void write_u64(std::uint64_t offset, std::uint64_t value) const {
        unsigned char bytes[8];
        for (unsigned byte = 0; byte < 8; ++byte) bytes[byte] = static_cast<unsigned char>(value >> (8 * byte));
        while (::pwrite(descriptor_, bytes, sizeof bytes, static_cast<off_t>(offset)) < 0)
            if (errno != EINTR) fail("write the read index");
    }

    // Whether somebody holds the lock that a live producer keeps (section 14). The question has a descriptor of its own,
    // closed at once; nothing is ever unlocked.
    Lock lock() const {
        const std::string same = "/proc/self/fd/" + std::to_string(descriptor_);
        int own = ::open(same.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own < 0) own = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own < 0) return Lock::unknown;
        struct stat seen {};
        Lock state = Lock::unknown;
        if (::fstat(own, &seen) == 0 && seen.st_dev == device_ && seen.st_ino == inode_) {
            if (::flock(own, LOCK_SH | LOCK_NB) == 0) state = Lock::free;
            else if (errno == EWOULDBLOCK) state = Lock::held;
        }
        ::close(own);
        return state;
    }

    // Whether the path leads to another file by now, or to none.
    bool replaced() const noexcept {
        struct stat seen {};
        return ::stat(path_.c_str(), &seen) != 0 || seen.st_dev != device_ || seen.st_ino != inode_;
    }

private:
    [[noreturn]] void fail(const char* what) const {
        const std::error_code code(errno, std::system_category());
        throw Error(ErrorKind::io, path_, std::string("cannot ") + what + ": " + code.message(), code);
    }
    void check_kind(mode_t mode) const {
        if (S_ISREG(mode)) return;
        const char* kind = S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
        throw Error(ErrorKind::not_telemetry, path_, std::string("not a telemetry file: ") + kind);
    }

    std::string path_;
    int descriptor_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------------
// Batches

enum class From {
    oldest,  // from the oldest record that is there
    newest,  // only what comes from now on
};

struct Options {
    From from = From::oldest;
    // Store the read index, as NIXL's own reader does. For NIXL's own files only; needs write permission.
    bool consume = false;
    // Verify check words. Without, records of a copy or of a stranger may be taken for events.
    bool verify = true;
};

// How a file lays out its bytes: the image of this project, or one of NIXL's five (section 20).
enum class Layout { image, l1, l2a, l2b, l3, l4 };

inline const char* to_string(Layout layout) noexcept {
    static constexpr const char* words[] = {"image", "L1", "L2a", "L2b", "L3", "L4"};
    return words[static_cast<unsigned>(layout)];
}

// Positions that were passed. events + lost + unverified + interrupted is the number of positions between where reading
// started and where it stands.
struct Counts {
    std::uint64_t events = 0;
    std::uint64_t lost = 0;         // overwritten before they were read
    std::uint64_t unverified = 0;   // failed their check
    std::uint64_t interrupted = 0;  // of a producer that was reset while it wrote

    std::uint64_t total() const noexcept { return events + lost + unverified + interrupted; }
    Counts& operator+=(const Counts& more) noexcept {
        events = detail::plus(events, more.events);
        lost = detail::plus(lost, more.lost);
        unverified = detail::plus(unverified, more.unverified);
        interrupted = detail::plus(interrupted, more.interrupted);
        return *this;
    }
};

// Records one after another, and what is missing before and among them. They are a copy in the reader's memory: nothing
// changes them until the reader is used again, or destroyed.
class Batch {
public:
    // Nothing new.
    bool empty() const noexcept { return !reset && lost == 0 && count == 0; }
    const Record* begin() const noexcept { return records; }
    const Record* end() const noexcept { return records + count; }
    std::size_t size() const noexcept { return count; }
    const Record& operator[](std::size_t place) const noexcept { return records[place]; }

    // Calls `take(position, record)` for each event, and for nothing else.
    template <class Take>
    void for_each_event(Take&& take) const {
        std::size_t place = 0;
        for (const Gap& gap : gaps) {
            for (; place < gap.place; ++place) take(first + place, records[place]);
            ++place;
        }
        for (; place < count; ++place) take(first + place, records[place]);
    }

    // What this batch adds to the reader's counts.
    Counts counts() const noexcept {
        Counts counts;
        counts.lost = lost;
        counts.events = count - gaps.size();
        for (const Gap& gap : gaps) {
            if (gap.kind == GapKind::lost) ++counts.lost;
            if (gap.kind == GapKind::interrupted) ++counts.interrupted;
            if (gap.kind == GapKind::unverified) ++counts.unverified;
        }
        return counts;
    }

    bool reset = false;              // the file started over before this batch: another run of the producer
    std::uint64_t lost = 0;          // events overwritten between the batch before and this one
    std::uint64_t first = 0;         // position of the first record
    std::uint64_t instance = 0;      // the producer's run; 0 in NIXL's own files
    const Record* records = nullptr; // those at the gaps included
    std::size_t count = 0;           // at most 4096
    std::vector<Gap> gaps;           // places without an event, in order; mostly none
    bool has_time = true;            // whether the layout has timestamps
    bool has_category = true;        // whether the layout has categories
    bool has_type = false;           // whether the layout has event types instead of names: see types
    std::uint64_t observed_us = 0;   // without timestamps: when the batch was read, Unix microseconds
    std::vector<std::uint32_t> types;  // the stored event types, one for each record, where has_type
};

namespace detail {

inline constexpr std::uint64_t most_records = 4096;

struct RingHeader {
    std::uint64_t write_pos = 0;
    std::uint64_t read_pos = 0;
    std::uint32_t version = 0;
    std::uint64_t capacity = 0;
    std::uint64_t mask = 0;

    static RingHeader parse(const unsigned char* bytes) noexcept {
        using layout::Header;
        return {u64_at(bytes + offsetof(Header, write_pos)), u64_at(bytes + offsetof(Header, read_pos)),
                u32_at(bytes + offsetof(Header, version)), u64_at(bytes + offsetof(Header, capacity)),
                u64_at(bytes + offsetof(Header, mask))};
    }
    bool belongs_together() const noexcept { return is_power_of_two(capacity) && mask == capacity - 1; }
};

// ---------------------------------------------------------------------------------------------------------------
// Images (sections 6 to 12)

struct ImageHead {
    std::uint64_t extension = 0;
    std::uint64_t capacity = 0;
    std::uint64_t image_len = 0;
    std::uint64_t instance = 0;
    std::uint64_t created = 0;
    std::uint16_t major_version = 0;
    std::uint16_t minor_version = 0;
    std::uint16_t part_count = 0;
    bool checks = false;

    // nullopt: the magic number is another one. Throws what else is wrong.
    static std::optional<ImageHead> parse(const unsigned char* bytes, std::uint64_t capacity, std::uint64_t len, const std::string& path) {
        using layout::Head;
        const std::uint64_t magic = u64_at(bytes);
        const std::uint32_t order = u32_at(bytes + offsetof(Head, byte_order));
        const auto wrong_order = [&] {
            return Error(ErrorKind::wrong_byte_order, path, "wrong byte order: its numbers are big-endian");
        };
        if (magic == 0) throw Error(ErrorKind::not_ready, path, "not ready: the file is being created");
        if (magic == swapped(layout::magic)) throw wrong_order();
        if (magic != layout::magic) return std::nullopt;
        if (order == swapped(layout::byte_order)) throw wrong_order();
        const auto damaged = [&](const char* what) { return Error(ErrorKind::damaged, path, std::string("damaged: ") + what); };
        if (order != layout::byte_order) throw damaged("the byte-order mark is none");

        ImageHead head;
        head.major_version = u16_at(bytes + offsetof(Head, major_version));
        head.minor_version = u16_at(bytes + offsetof(Head, minor_version));
        if (head.major_version != layout::major_version)
            throw Error(ErrorKind::unsupported_version, path,
                        "unsupported version " + std::to_string(head.major_version) + "." + std::to_string(head.minor_version) +
                            " of the image (known 1.x)");
        head.capacity = capacity;
        head.extension = layout::extension(capacity);
        head.image_len = u64_at(bytes + offsetof(Head, image_len));
        head.part_count = u16_at(bytes + offsetof(Head, part_count));
        head.checks = (u16_at(bytes + offsetof(Head, flags)) & 1) != 0;
        head.instance = u64_at(bytes + offsetof(Head, instance));
        head.created = u64_at(bytes + offsetof(Head, created));
        if (u64_at(bytes + offsetof(Head, capacity)) != capacity) throw damaged("two capacities that differ");
        if (head.image_len != len)
            throw damaged(("its head says " + std::to_string(head.image_len) + " bytes, it has " + std::to_string(len)).c_str());
        if (u32_at(bytes + offsetof(Head, record_size)) != sizeof(Record)) throw damaged("records of another size");
        if (u32_at(bytes + offsetof(Head, record_kind)) != 1) throw damaged("records of another kind");
        if (u32_at(bytes + offsetof(Head, max_batch)) != layout::max_batch(capacity)) throw damaged("another largest batch than its capacity has");
        if (head.part_count > layout::most_parts || head.extension + 128 + 24 * std::uint64_t{head.part_count} > len)
            throw damaged("more parts than it has room for");
        if (head.instance == 0) throw damaged("the instance is 0");
        return head;
    }

    // The head of the image in a file; nullopt if there is none.
    static std::optional<ImageHead> probe(const File& file, const RingHeader& header, std::uint64_t len) {
        if (header.version != 1 || !is_power_of_two(header.capacity) || header.capacity < 2 || header.capacity > layout::largest_capacity)
            return std::nullopt;
        const std::uint64_t at = layout::extension(header.capacity);
        unsigned char bytes[sizeof(layout::Head)];
        if (at + sizeof bytes > len || !file.read(at, bytes, sizeof bytes)) return std::nullopt;
        return parse(bytes, header.capacity, len, file.path());
    }
};

struct ControlWords {
    std::uint64_t intent = 0;
    std::uint64_t committed = 0;
    std::uint64_t metrics_generation = 0;
    std::uint64_t metrics_time = 0;
    std::uint64_t heartbeat = 0;
    std::uint32_t state = 0;
    std::uint32_t time_base = 0;
    std::uint32_t boots = 0;
};

}  // namespace detail

// What is known about a file's producer (section 14).
enum class Liveness {
    alive,               // holds its lock
    alive_by_heartbeat,  // there are no locks here; its heartbeat is less than 10 s old
    dead,                // killed, or this is a copy
    closed,              // closed the file in good order
    unknown,             // can't be known, as with NIXL's own files
};

inline const char* to_string(Liveness liveness) noexcept {
    static constexpr const char* words[] = {"alive", "alive (by heartbeat)", "dead", "closed", "unknown"};
    return words[static_cast<unsigned>(liveness)];
}
inline bool is_alive(Liveness liveness) noexcept { return liveness == Liveness::alive || liveness == Liveness::alive_by_heartbeat; }

namespace detail {

inline Liveness liveness_of(Lock lock, const ControlWords& control, std::uint64_t now) noexcept {
    const std::uint64_t age = now > control.heartbeat ? now - control.heartbeat : control.heartbeat - now;
    if (lock == Lock::held) return Liveness::alive;
    if (control.state == 2) return Liveness::closed;
    if (lock == Lock::free) return Liveness::dead;
    return control.time_base == 0 && age < 10'000'000 ? Liveness::alive_by_heartbeat : Liveness::unknown;
}

class ImageRing {
public:
    ImageRing(const File& file, const ImageHead& head, const Options& options) : head_(head), from_(options.from), verify_(options.verify) {
        // Positions that make no sense are the first read's trouble, so that such a file can still be looked at.
        try {
            begin(positions(file));
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::damaged) throw;
        }
    }

    const ImageHead& head() const noexcept { return head_; }
    std::uint64_t start() const noexcept { return start_; }
    // The position up to which everything was passed.
    std::uint64_t position() const noexcept { return next_; }
    void rewind() noexcept {
        begun_ = false;
        from_ = From::oldest;
    }

    // The next records, into an empty batch.
    void read(const File& file, Batch& batch) {
        const std::uint64_t len = file.size();
        if (len != head_.image_len) throw resized(file, len);
        const std::optional<Positions> seen = look(file, len, batch);
        if (!seen) return;
        Positions now = *seen;
        if (!begun_) begin(now);
        if (now.intent < next_) {
            // Once may be a look between two stores of a repair; twice is another run.
            now = positions(file);
            if (now.intent < next_) {
                batch.reset = true;
                batch.instance = head_.instance;
                from_ = From::oldest;
                begin(now);
            }
        }
        batch.instance = head_.instance;
        // In a file that nobody writes: are records missing for which earlier ones may be there? (Section 12, step 1) What
        // one pass takes shows that by itself; more is looked through before the first of it is handed over.
        const bool looks = std::exchange(look_for_laps_, false);
        if (looks && minus(now.committed, next_) > piece() && !alive(file) && holds_strangers(file, now.committed)) begin_laps();
        if (next_ < laps_until_ && read_laps(file, batch)) return;
        pass(file, now, batch);
        if (looks && laps_until_ == 0 && batch.lost == 0 && has_strangers(batch.gaps) && !alive(file)) {
            batch.records = nullptr;
            batch.count = 0;
            batch.gaps.clear();
            begin_laps();
            if (!read_laps(file, batch)) pass(file, now, batch);
        }
    }

    ControlWords control(const File& file) const {
        using layout::Control;
        unsigned char bytes[sizeof(Control)];
        if (!file.read(head_.extension + sizeof(layout::Head), bytes, sizeof bytes)) throw resized(file, file.size());
        return {u64_at(bytes + offsetof(Control, intent)),        u64_at(bytes + offsetof(Control, committed)),
                u64_at(bytes + offsetof(Control, metrics_generation)), u64_at(bytes + offsetof(Control, metrics_time)),
                u64_at(bytes + offsetof(Control, heartbeat)),     u32_at(bytes + offsetof(Control, state)),
                u32_at(bytes + offsetof(Control, time_base)),     u32_at(bytes + offsetof(Control, boots))};
    }

    struct Positions {
        std::uint64_t committed;
        std::uint64_t intent;
    };
    // committed, intent, and committed again, each by a read of its own, until they agree.
    Positions positions(const File& file) const {
        Positions last{};
        for (int look = 0; look < 3; ++look) {
            last.committed = word(file, offsetof(layout::Control, committed));
            last.intent = word(file, offsetof(layout::Control, intent));
            const std::uint64_t again = word(file, offsetof(layout::Control, committed));
            if (last.committed <= last.intent && last.intent <= plus(again, layout::max_batch(head_.capacity))) return last;
        }
        // A plain copy takes intent first. What it says too little is guarded by the check words.
        if (head_.checks && last.committed > last.intent && last.committed - last.intent <= head_.capacity && !alive(file))
            return {last.committed, last.committed};
        throw Error(ErrorKind::damaged, file.path(),
                    "damaged: " + std::to_string(last.committed) + " records finished but " + std::to_string(last.intent) + " announced");
    }

    Error resized(const File& file, std::uint64_t len) const {
        return Error(ErrorKind::resized, file.path(),
                     "the file has " + std::to_string(len) + " bytes, its head says " + std::to_string(head_.image_len) +
                         ": it was truncated or made longer");
    }

private:
    std::uint64_t word(const File& file, std::size_t at) const {
        unsigned char bytes[8];
        if (!file.read(head_.extension + sizeof(layout::Head) + at, bytes, sizeof bytes)) throw resized(file, file.size());
        return u64_at(bytes);
    }

    bool alive(const File& file) const { return is_alive(liveness_of(file.lock(), control(file), now_us())); }

    void begin(Positions now) noexcept {
        next_ = from_ == From::oldest ? minus(now.intent, head_.capacity) : now.committed;
        start_ = next_;
        laps_until_ = 0;
        found_ = false;
        look_for_laps_ = from_ == From::oldest && verify_ && head_.checks;
        begun_ = true;
    }

    // One look that tells whether the image is still the one that was opened, and where it stands; nullopt while it is being
    // formatted.
    std::optional<Positions> look(const File& file, std::uint64_t len, Batch& batch) {
        using layout::Control;
        // The head, and the control line behind it.
        unsigned char bytes[sizeof(layout::Head) + sizeof(Control)];
        if (!file.read(head_.extension, bytes, sizeof bytes)) throw resized(file, file.size());
        std::optional<ImageHead> head;
        try {
            head = ImageHead::parse(bytes, head_.capacity, len, file.path());
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::not_ready) return std::nullopt;
            throw Error(ErrorKind::changed, file.path(), "the file changed while it was read: " + error.reason());
        }
        if (!head) throw Error(ErrorKind::changed, file.path(), "the file changed while it was read: it is no image any more");
        if (head->instance == head_.instance) {
            // One read may take the two words in any order. committed only grows and never passes intent, so where they agree
            // this way round, committed was true, and intent at most too old: then a little more is found lost after the copy.
            const Positions now = {u64_at(bytes + sizeof(layout::Head) + offsetof(Control, committed)),
                                   u64_at(bytes + sizeof(layout::Head) + offsetof(Control, intent))};
            if (now.committed <= now.intent && now.intent - now.committed <= layout::max_batch(head_.capacity)) return now;
        } else {
            head_ = *head;
            batch.reset = true;
            from_ = From::oldest;
            begun_ = false;
        }
        return positions(file);
    }

    static bool has_strangers(const std::vector<Gap>& gaps) noexcept {
        return std::any_of(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.kind == GapKind::unverified; });
    }

    bool holds_strangers(const File& file, std::uint64_t committed) {
        std::vector<Gap> gaps;
        for (std::uint64_t first = next_; first < committed;) {
            const std::uint64_t count = std::min(committed - first, piece());
            copy(file, first, count);
            judge_all(first, room_.data(), static_cast<std::size_t>(count), true, gaps);
            if (has_strangers(gaps)) return true;
            gaps.clear();
            first += count;
        }
        return false;
    }

    void begin_laps() noexcept {
        laps_until_ = start_;
        next_ = minus(start_, 2 * head_.capacity);
    }

    // A piece of the earlier laps that gives something. Before the first record found nothing is known; behind it, what is
    // missing is lost. (Section 12, step 2)
    bool read_laps(const File& file, Batch& batch) {
        while (next_ < laps_until_) {
            const std::uint64_t first = next_;
            const std::uint64_t count = std::min(laps_until_ - first, piece());
            copy(file, first, count);
            batch.gaps.clear();
            judge_all(first, room_.data(), static_cast<std::size_t>(count), true, batch.gaps);
            std::size_t skip = 0;
            if (!found_)
                while (skip < batch.gaps.size() && batch.gaps[skip].place == skip && batch.gaps[skip].kind == GapKind::unverified) ++skip;
            next_ = first + count;
            if (skip == count) {
                batch.gaps.clear();
                continue;
            }
            batch.gaps.erase(batch.gaps.begin(), batch.gaps.begin() + static_cast<std::ptrdiff_t>(skip));
            for (Gap& gap : batch.gaps) {
                gap.place -= skip;
                if (gap.kind == GapKind::unverified) gap.kind = GapKind::lost;
            }
            if (!found_) start_ = first + skip;
            found_ = true;
            batch.first = first + skip;
            batch.records = room_.data() + skip;
            batch.count = static_cast<std::size_t>(count) - skip;
            return true;
        }
        if (!found_) start_ = laps_until_;
        batch.gaps.clear();
        return false;
    }

    // Section 11, "A pass".
    void pass(const File& file, Positions now, Batch& batch) {
        for (int attempt = 0; attempt < 8 && now.committed > next_; ++attempt) {
            const std::uint64_t first = std::max(next_, minus(now.committed, head_.capacity));
            const std::uint64_t count = std::min(now.committed - first, piece());
            copy(file, first, count);
            const std::uint64_t intent = word(file, offsetof(layout::Control, intent));
            const std::uint64_t valid = std::max(first, minus(intent, head_.capacity));
            batch.lost += valid - next_;
            next_ = std::max(first + count, valid);
            if (valid < first + count) {
                batch.first = valid;
                batch.records = room_.data() + (valid - first);
                batch.count = static_cast<std::size_t>(first + count - valid);
                judge_all(valid, batch.records, batch.count, verify_ && head_.checks, batch.gaps);
                return;
            }
            now = positions(file);
        }
    }

    std::uint64_t piece() const noexcept { return std::min(most_records, head_.capacity); }

    // Copies records into the room, in two reads around the end of the ring. At most piece() of them.
    void copy(const File& file, std::uint64_t first, std::uint64_t count) {
        const std::uint64_t slot = first & (head_.capacity - 1);
        const std::uint64_t until_end = std::min(count, head_.capacity - slot);
        if (room_.size() < count) room_.resize(static_cast<std::size_t>(piece()));
        const auto bytes = [](std::uint64_t records) { return static_cast<std::size_t>(records) * sizeof(Record); };
        if (!file.read(sizeof(layout::Header) + slot * sizeof(Record), room_.data(), bytes(until_end)) ||
            !file.read(sizeof(layout::Header), room_.data() + until_end, bytes(count - until_end)))
            throw resized(file, file.size());
        if constexpr (big_endian)
            for (std::size_t at = 0; at < count; ++at) swap_record(room_[at]);
    }

    ImageHead head_;
    From from_;
    bool verify_;
    bool begun_ = false;
    std::uint64_t next_ = 0;
    std::uint64_t start_ = 0;
    bool look_for_laps_ = false;
    // While next_ is below it, places may hold records of earlier laps.
    std::uint64_t laps_until_ = 0;
    bool found_ = false;
    std::vector<Record> room_;
};

// ---------------------------------------------------------------------------------------------------------------
// NIXL's own rings (section 20)

struct Geometry {
    Layout layout = Layout::l1;
    std::uint64_t capacity = 2;

    static std::size_t record_size(Layout layout) noexcept { return layout == Layout::l1 ? 56 : layout == Layout::l2a ? 48 : 16; }
    std::size_t record_size() const noexcept { return record_size(layout); }
    std::uint64_t length() const noexcept { return sizeof(layout::Header) + capacity * record_size(); }
    std::uint64_t waiting(std::uint64_t from, std::uint64_t to) const noexcept { return (to - from) & (capacity - 1); }
    std::uint64_t ahead(std::uint64_t index, std::uint64_t count) const noexcept { return (index + count) & (capacity - 1); }
    bool operator==(const Geometry& other) const noexcept { return layout == other.layout && capacity == other.capacity; }
    bool operator!=(const Geometry& other) const noexcept { return !(*this == other); }

    // What a file that is no image is. Throws if it is none of NIXL's.
    static Geometry probe(const RingHeader& header, std::uint64_t len, const std::string& path) {
        const auto damaged = [&](const std::string& what) { return Error(ErrorKind::damaged, path, "damaged: " + what); };
        const auto number = [](std::uint64_t value) { return std::to_string(value); };
        if (header.version == 0) {
            if ((header.capacity == 0 && header.mask == 0) || header.belongs_together())
                throw Error(ErrorKind::not_ready, path, "not ready: version 0, the file is being created or its producer failed");
            if (header.mask == header.capacity - 1) throw damaged("capacity " + number(header.capacity) + " is no power of two");
        }
        if (header.version < 1 || header.version > 4) {
            if (header.version != 0 && (header.version <= 0xff || header.belongs_together()))
                throw Error(ErrorKind::unsupported_version, path, "unsupported version " + number(header.version) + " (known 1 to 4)");
            RingHeader other = header;
            other.version = swapped(header.version);
            other.capacity = swapped(header.capacity);
            other.mask = swapped(header.mask);
            if (other.belongs_together() && other.version != 0 && other.version <= 0xff)
                throw Error(ErrorKind::wrong_byte_order, path, "wrong byte order: its numbers are big-endian");
            throw Error(ErrorKind::not_telemetry, path, "not a telemetry file: no telemetry header");
        }
        if (!is_power_of_two(header.capacity)) throw damaged("capacity " + number(header.capacity) + " is no power of two");
        if (header.mask != header.capacity - 1) throw damaged("mask " + number(header.mask) + " doesn't belong to capacity " + number(header.capacity));
        for (const Layout layout : {Layout::l1, Layout::l2a, Layout::l2b, Layout::l3, Layout::l4}) {
            const std::uint32_t version = layout == Layout::l1 ? 1 : layout == Layout::l3 ? 3 : layout == Layout::l4 ? 4 : 2;
            // Compared by division: no product that could be too large.
            const std::uint64_t size = record_size(layout);
            if (version != header.version || len < sizeof(layout::Header) || (len - sizeof(layout::Header)) / size != header.capacity ||
                (len - sizeof(layout::Header)) % size != 0)
                continue;
            if (header.write_pos >= header.capacity || header.read_pos >= header.capacity) throw damaged("a position outside the ring");
            return {layout, header.capacity};
        }
        throw damaged(number(len) + " bytes don't fit version " + number(header.version) + " with capacity " + number(header.capacity));
    }
};

class NixlRing {
public:
    NixlRing(const File& file, const Options& options) : consume_(options.consume) {
        const Look look = look_once(file);
        geometry_ = look.geometry;
        seen_ = look.header;
        next_ = options.from == From::oldest ? seen_.read_pos : seen_.write_pos;
        handed_ = next_;
        stored_ = seen_.read_pos;
    }

    Layout layout() const noexcept { return geometry_.layout; }
    const Geometry& geometry() const noexcept { return geometry_; }
    std::uint64_t returned() const noexcept { return returned_; }

    struct Look {
        Geometry geometry;
        RingHeader header;
    };
    static Look look_once(const File& file) {
        const std::uint64_t len = file.size();
        unsigned char bytes[sizeof(layout::Header)];
        if (len < sizeof bytes || !file.read(0, bytes, sizeof bytes))
            throw Error(ErrorKind::not_telemetry, file.path(),
                        len == 0 ? "not a telemetry file: it is empty"
                                 : "not a telemetry file: " + std::to_string(len) + " bytes are too few for a header");
        const RingHeader header = RingHeader::parse(bytes);
        return {Geometry::probe(header, len, file.path()), header};
    }

    // The next records, into an empty batch.
    void read(const File& file, Batch& batch) {
        store(file);
        const std::optional<Look> look = look_again(file);
        if (!look) {
            remade_ = true;
            return;
        }
        const RingHeader header = look->header;
        if (remade_ || look->geometry != geometry_ || started_over(file, header)) {
            batch.reset = true;
            remade_ = false;
            geometry_ = look->geometry;
            jump(header.read_pos);
        }
        seen_ = header;
        stored_ = header.read_pos;
        if (outside(header)) {
            // Another consumer took them. By how many rounds of the ring it is ahead can't be known.
            batch.lost = geometry_.waiting(next_, header.read_pos);
            jump(header.read_pos);
        }
        const std::uint64_t count = std::min(geometry_.waiting(next_, header.write_pos), most_records);
        if (count == 0) return;
        const std::size_t size = geometry_.record_size();
        bytes_.resize(static_cast<std::size_t>(count) * size);
        if (!copy(file, next_, bytes_)) return;
        Look after;
        try {
            after = look_once(file);
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::io) throw;
            return;  // remade meanwhile: the copy is worth nothing, the next read finds out
        }
        if (after.geometry != geometry_) return;
        // Nothing is overwritten until it was consumed. What another consumer took meanwhile may be.
        const std::uint64_t before = geometry_.waiting(header.read_pos, next_);
        const std::uint64_t taken = geometry_.waiting(header.read_pos, after.header.read_pos);
        const std::uint64_t skip = std::min(minus(taken, before), count);
        batch.lost += skip;
        decode(static_cast<std::size_t>(skip), batch);
        remember(size);
        next_ = geometry_.ahead(next_, count);
        // Lost ones are handed over by saying so.
        handed_ = geometry_.ahead(handed_, skip);
    }

    // `count` records of the last batch were handed to the caller.
    void handed(std::uint64_t count) noexcept { handed_ = geometry_.ahead(handed_, count); }

    // Stores the read index behind what was handed over, if this reader consumes.
    void store(const File& file) {
        if (!consume_ || handed_ == stored_) return;
        Look look;
        try {
            look = look_once(file);
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::io) throw;
            return;
        }
        // Otherwise the ring was made anew or has another consumer: the next read finds out.
        if (look.geometry != geometry_ || look.header.read_pos != stored_) return;
        file.write_u64(offsetof(layout::Header, read_pos), handed_);
        stored_ = handed_;
        seen_.read_pos = handed_;
    }

private:
    // Records before the cursor that must still be what they were.
    static constexpr std::uint64_t remembered = 16;

    void jump(std::uint64_t to) {
        next_ = to;
        handed_ = to;
        tail_.clear();
    }

    // Whether the cursor is not among the records that wait.
    bool outside(const RingHeader& header) const noexcept {
        return geometry_.waiting(header.read_pos, next_) > geometry_.waiting(header.read_pos, header.write_pos);
    }

    // Whether a ring of the same size was begun anew: an agent that starts again uses the same inode and clears nothing.
    // A new run that reached the same place with the same events goes unnoticed.
    bool started_over(const File& file, const RingHeader& header) const {
        const std::uint64_t waited = geometry_.waiting(seen_.read_pos, seen_.write_pos);
        const std::uint64_t waits = geometry_.waiting(header.read_pos, header.write_pos);
        if (header.read_pos == seen_.read_pos && waits < waited) return true;
        if (header.read_pos == 0 && (outside(header) || (consume_ && stored_ != 0))) return true;
        if (outside(header)) return false;
        const std::size_t size = geometry_.record_size();
        const std::uint64_t still = std::min<std::uint64_t>(geometry_.waiting(header.read_pos, next_), tail_.size() / size);
        if (still == 0) return false;
        std::vector<unsigned char> now(static_cast<std::size_t>(still) * size);
        return copy(file, geometry_.ahead(next_, 0 - still), now) && !std::equal(now.rbegin(), now.rend(), tail_.rbegin());
    }

    void remember(std::size_t size) {
        const std::size_t most = static_cast<std::size_t>(remembered) * size;
        tail_.insert(tail_.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(bytes_.size() - std::min(bytes_.size(), most)), bytes_.end());
        if (tail_.size() > most) tail_.erase(tail_.begin(), tail_.end() - static_cast<std::ptrdiff_t>(most));
    }

    // nullopt while the ring is being made. A producer that starts again resizes the file a moment before it writes the
    // header, so a header that doesn't fit is looked at for 20 ms before it is an error.
    std::optional<Look> look_again(const File& file) const {
        for (int looks = 1;; ++looks) {
            try {
                return look_once(file);
            } catch (const Error& error) {
                if (error.kind() == ErrorKind::not_ready) return std::nullopt;
                if (error.kind() == ErrorKind::io) throw;
                const bool passing = error.kind() == ErrorKind::damaged;
                if (passing && looks < 20) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    continue;
                }
                const std::uint64_t len = file.size();
                if (len != geometry_.length())
                    throw Error(ErrorKind::resized, file.path(),
                                "the file has " + std::to_string(len) + " bytes, its ring needs " + std::to_string(geometry_.length()) +
                                    ": it was truncated or remade");
                throw Error(ErrorKind::changed, file.path(), "the file changed while it was read: " + error.reason());
            }
        }
    }

    // False if the file ends before.
    bool copy(const File& file, std::uint64_t index, std::vector<unsigned char>& into) const {
        const std::size_t size = geometry_.record_size();
        const std::uint64_t until_end = (geometry_.capacity - index) * size;
        const std::size_t first = into.size() < until_end ? into.size() : static_cast<std::size_t>(until_end);
        return file.read(sizeof(layout::Header) + index * size, into.data(), first) &&
               file.read(sizeof(layout::Header), into.data() + first, into.size() - first);
    }

    void decode(std::size_t skip, Batch& batch) {
        const Layout layout = geometry_.layout;
        const std::size_t size = geometry_.record_size();
        records_.clear();
        batch.has_time = layout == Layout::l1;
        batch.has_category = layout != Layout::l3 && layout != Layout::l4;
        batch.has_type = layout != Layout::l1 && layout != Layout::l2a;
        batch.observed_us = batch.has_time ? 0 : now_us();
        for (std::size_t at = skip * size; at < bytes_.size(); at += size) {
            const unsigned char* bytes = bytes_.data() + at;
            Record record{};
            if (layout == Layout::l1) {
                record.timestamp_us = u64_at(bytes + offsetof(Record, timestamp_us));
                record.category = i32_at(bytes + offsetof(Record, category));
                std::memcpy(record.name, bytes + offsetof(Record, name), sizeof record.name);
                record.value = u64_at(bytes + offsetof(Record, value));
            } else if (layout == Layout::l2a) {
                record.category = i32_at(bytes + offsetof(layout::NixlRecord48, category));
                std::memcpy(record.name, bytes + offsetof(layout::NixlRecord48, name), sizeof record.name);
                record.value = u64_at(bytes + offsetof(layout::NixlRecord48, value));
            } else {
                const bool with_category = layout == Layout::l2b;
                const std::uint32_t type = u32_at(bytes + (with_category ? 4 : 0));
                const EventType* row = event_type(type);
                // Without a category of its own, that of the type may be shown.
                record.category = with_category ? i32_at(bytes) : row != nullptr ? static_cast<std::int32_t>(row->category) : 7;
                const EventName name = EventName::of_type(type);
                std::memcpy(record.name, name.view().data(), name.view().size());
                record.value = u64_at(bytes + 8);
                batch.types.push_back(type);
            }
            records_.push_back(record);
        }
        batch.first = returned_;
        batch.records = records_.data();
        batch.count = records_.size();
        returned_ += records_.size();
    }

    Geometry geometry_;
    RingHeader seen_;
    std::uint64_t next_ = 0;    // index of the next record to read
    std::uint64_t handed_ = 0;  // index behind what was handed to the caller
    std::uint64_t stored_ = 0;  // what was last known to stand in the file's read_pos
    bool consume_;
    bool remade_ = false;
    std::uint64_t returned_ = 0;
    std::vector<unsigned char> tail_;
    std::vector<unsigned char> bytes_;
    std::vector<Record> records_;
};

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------------
// What a file says about itself (sections 6 to 9, 13, 14)

struct Identity {
    std::uint64_t pid = 0;
    std::uint64_t process_start = 0;  // clock ticks since boot; 0 unknown
    std::string boot_id;              // 32 hexadecimal digits; all 0: unknown
    std::uint64_t agent_instance = 0;
    std::uint64_t uid = 0;
    // UTF-8, control characters included: not fit for a terminal as they are.
    std::string writer;
    std::string hostname;
    std::string agent;
    std::string rank;
};

// Running totals of the application's events, and of those that the producer lost, by cause.
struct Losses {
    std::uint64_t recorded = 0;
    std::uint64_t exported = 0;
    std::uint64_t staging = 0;
    std::uint64_t exporter = 0;
    std::uint64_t interrupted = 0;
    std::uint64_t backend = 0;
    std::uint64_t closing = 0;

    std::uint64_t lost() const noexcept { return staging + exporter + interrupted + backend + closing; }
};

struct Notices {
    std::uint64_t names_changed = 0;
    std::uint64_t dynamic_overflow = 0;
    std::uint64_t refused = 0;
    std::uint64_t file_trouble = 0;
};

struct Metric {
    std::uint64_t id = 0;
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    std::uint64_t last = 0;
    std::uint64_t last_time = 0;
};

struct Histogram {
    std::uint64_t id = 0;
    std::uint64_t sum = 0;
    std::vector<std::uint64_t> counts;  // one for each bound in use, and one for all larger values; not cumulative
};

struct ErrorCount {
    std::uint64_t id = 0;
    std::uint64_t count = 0;
};

struct DynamicMetric {
    EventName name;
    std::int32_t category = 0;
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    std::uint64_t last = 0;
    std::uint64_t last_time = 0;
};

// Running totals as of the last flush, exact also where records were lost.
struct Metrics {
    std::uint64_t generation = 0;
    std::vector<std::uint64_t> bounds;  // of the histograms, inclusive, microseconds
    std::vector<Metric> entries;
    std::vector<Histogram> histograms;
    std::vector<ErrorCount> errors;

    // The entry of an event type; nullptr if there is none.
    const Metric* find(std::uint32_t id) const noexcept {
        for (const Metric& entry : entries)
            if (entry.id == id) return &entry;
        return nullptr;
    }
};

struct ClockInfo {
    std::uint32_t source = 0;
    std::uint32_t quality = 0;
    std::uint64_t rate = 0;
    std::uint64_t anchor_ticks = 0;
    std::uint64_t anchor_us = 0;
};

struct Part {
    std::uint32_t kind = 0;
    std::uint32_t version = 0;
    std::uint64_t offset = 0;
    std::uint64_t len = 0;
};

// A fresh look at a file. Members that the layout doesn't have are 0 or nullopt.
struct Info {
    std::string path;
    Layout layout = Layout::image;
    std::uint64_t len = 0;
    std::uint64_t capacity = 0;
    Liveness liveness = Liveness::unknown;

    // Of NIXL's own files.
    std::uint32_t version = 0;
    std::uint64_t write_pos = 0;
    std::uint64_t read_pos = 0;
    std::uint64_t waiting = 0;

    // Of images.
    std::uint16_t major_version = 0;
    std::uint16_t minor_version = 0;
    std::uint64_t instance = 0;
    std::uint64_t created = 0;
    bool checks = false;
    std::uint64_t intent = 0;
    std::uint64_t committed = 0;
    std::uint64_t metrics_time = 0;
    std::uint64_t heartbeat = 0;
    std::uint32_t state = 0;      // 0 being made, 1 open, 2 closed in good order
    std::uint32_t time_base = 0;  // 0 Unix microseconds, 1 microseconds since boot
    std::uint32_t boots = 0;
    std::vector<Part> parts;      // every row of the table, also those of kinds that this reader skips
    std::optional<Identity> identity;
    std::optional<Losses> losses;
    std::optional<Notices> notices;
    std::optional<Metrics> metrics;
    std::optional<std::vector<DynamicMetric>> dynamic;
    std::optional<ClockInfo> clock;
};

namespace detail {

// Both parts of the metrics: copies of one generation where there are such.
struct AllMetrics {
    std::optional<Metrics> metrics;
    std::optional<std::vector<DynamicMetric>> dynamic;
};

class Parts {
public:
    Parts(const File& file, const ImageRing& ring) : file_(file), ring_(ring) {
        const ImageHead& head = ring.head();
        std::vector<unsigned char> table(std::size_t{head.part_count} * sizeof(layout::PartRow));  // at most 64 rows
        if (!file.read(head.extension + 128, table.data(), table.size())) return;
        for (std::size_t at = 0; at < table.size(); at += sizeof(layout::PartRow)) {
            const unsigned char* row = table.data() + at;
            rows_.push_back({u32_at(row + offsetof(layout::PartRow, kind)), u32_at(row + offsetof(layout::PartRow, version)),
                             u64_at(row + offsetof(layout::PartRow, offset)), u64_at(row + offsetof(layout::PartRow, len))});
        }
    }

    const std::vector<Part>& rows() const noexcept { return rows_; }

    std::optional<Identity> identity() const {
        using layout::Identity;
        const auto bytes = part(1, sizeof(Identity));
        if (!bytes) return std::nullopt;
        const unsigned char* at = bytes->data();
        telering::Identity identity;
        identity.pid = u64_at(at + offsetof(Identity, pid));
        identity.process_start = u64_at(at + offsetof(Identity, process_start));
        for (std::size_t byte = 0; byte < sizeof Identity::boot_id; ++byte) {
            static constexpr char digits[] = "0123456789abcdef";
            const unsigned char value = at[offsetof(Identity, boot_id) + byte];
            identity.boot_id += {digits[value >> 4], digits[value & 15]};
        }
        identity.agent_instance = u64_at(at + offsetof(Identity, agent_instance));
        identity.uid = u64_at(at + offsetof(Identity, uid));
        identity.writer = text_of(at + offsetof(Identity, writer), sizeof Identity::writer);
        identity.hostname = text_of(at + offsetof(Identity, hostname), sizeof Identity::hostname);
        identity.agent = text_of(at + offsetof(Identity, agent), sizeof Identity::agent);
        identity.rank = text_of(at + offsetof(Identity, rank), sizeof Identity::rank);
        return identity;
    }

    std::optional<Losses> losses() const {
        using layout::Losses;
        const auto bytes = part(2, sizeof(Losses));
        if (!bytes) return std::nullopt;
        const auto at = [&](std::size_t offset) { return u64_at(bytes->data() + offset); };
        return telering::Losses{at(offsetof(Losses, recorded)), at(offsetof(Losses, exported)),    at(offsetof(Losses, staging)),
                                at(offsetof(Losses, exporter)), at(offsetof(Losses, interrupted)), at(offsetof(Losses, backend)),
                                at(offsetof(Losses, closing))};
    }

    std::optional<Notices> notices() const {
        using layout::Notices;
        const auto bytes = part(3, sizeof(Notices));
        if (!bytes) return std::nullopt;
        const auto at = [&](std::size_t offset) { return u64_at(bytes->data() + offset); };
        return telering::Notices{at(offsetof(Notices, names_changed)), at(offsetof(Notices, dynamic_overflow)),
                                 at(offsetof(Notices, refused)), at(offsetof(Notices, file_trouble))};
    }

    std::optional<ClockInfo> clock() const {
        using layout::Clock;
        const auto bytes = part(6, sizeof(Clock));
        if (!bytes) return std::nullopt;
        const unsigned char* at = bytes->data();
        return ClockInfo{u32_at(at + offsetof(Clock, source)), u32_at(at + offsetof(Clock, quality)), u64_at(at + offsetof(Clock, rate)),
                         u64_at(at + offsetof(Clock, anchor_ticks)), u64_at(at + offsetof(Clock, anchor_us))};
    }

    // Section 13.
    AllMetrics metrics() const {
        for (int look = 0; look < 8; ++look) {
            const std::uint64_t generation = ring_.control(file_).metrics_generation;
            if (generation == 0) return {};
            const auto fixed = part(4, sizeof(layout::Metrics), longest);
            const auto named = part(5, sizeof(layout::Dynamic), longest);
            if (ring_.control(file_).metrics_generation != generation) continue;
            AllMetrics all;
            if (fixed) all.metrics = newest<Metrics>(*fixed, generation, offsetof(layout::Metrics, copy_size), sizeof(layout::Metrics), metrics_of);
            const std::uint64_t wanted = all.metrics ? all.metrics->generation : generation;
            if (named)
                all.dynamic = newest<std::vector<DynamicMetric>>(*named, wanted, offsetof(layout::Dynamic, copy_size), sizeof(layout::Dynamic), dynamic_of);
            return all;
        }
        return {};
    }

private:
    using Bytes = std::vector<unsigned char>;
    // No part that this reader knows is longer; what is behind is a later version's.
    static constexpr std::uint64_t longest = 1 << 20;

    // The first `most` bytes of a part that has `least` at the least. The first row that is not skipped counts.
    std::optional<Bytes> part(std::uint32_t kind, std::uint64_t least, std::uint64_t most) const {
        const std::uint64_t image_len = ring_.head().image_len;
        const bool has_copies = kind == 4 || kind == 5;
        for (const Part& row : rows_) {
            if (row.kind != kind || row.version != 1 || row.offset % 8 != 0 || row.offset < ring_.head().extension + 128 ||
                row.offset > image_len || row.len > image_len - row.offset || (row.len < least && !has_copies))
                continue;
            Bytes bytes(static_cast<std::size_t>(std::min(row.len, most)));
            if (row.len < least || !file_.read(row.offset, bytes.data(), bytes.size())) return std::nullopt;
            return bytes;
        }
        return std::nullopt;
    }
    std::optional<Bytes> part(std::uint32_t kind, std::uint64_t size) const { return part(kind, size, size); }

    template <class Result, class Parse>
    static std::optional<Result> newest(const Bytes& part, std::uint64_t generation, std::size_t copy_size_at, std::size_t copies_at, Parse parse) {
        const std::uint64_t size = u64_at(part.data() + copy_size_at);
        if (size < 16 || size % 8 != 0 || size > (part.size() - copies_at) / 2) return std::nullopt;
        const auto copy = [&](std::uint64_t which) { return part.data() + copies_at + (which & 1) * size; };
        if (u64_at(copy(generation)) == generation)
            if (auto result = parse(part.data(), copy(generation), size)) return result;
        // A copy of a live file: its parts are newer than its control line.
        const bool second_is_newer = u64_at(copy(1)) > u64_at(copy(0));
        if (auto result = parse(part.data(), copy(second_is_newer ? 1 : 0), size)) return result;
        return parse(part.data(), copy(second_is_newer ? 0 : 1), size);
    }

    static std::uint64_t checksum(const unsigned char* bytes, std::uint64_t size) noexcept {
        std::uint32_t sum = 0x6a09e667;
        for (std::uint64_t at = 0; at < size; at += 4) sum = ((sum << 5 | sum >> 27) ^ u32_at(bytes + at)) * 0x9e3779b1;
        return sum == 0 ? 1 : sum;
    }

    static std::optional<Metrics> metrics_of(const unsigned char* part, const unsigned char* copy, std::uint64_t size) {
        const std::uint64_t entries = u32_at(part + offsetof(layout::Metrics, entries));
        const std::uint64_t histograms = u32_at(part + offsetof(layout::Metrics, histograms));
        const std::uint64_t statuses = u32_at(part + offsetof(layout::Metrics, statuses));
        const std::uint64_t bounds = std::min<std::uint64_t>(u32_at(part + offsetof(layout::Metrics, bounds)), 32);
        // Products of 32-bit numbers and small factors: their sum stays far below 2^64.
        if (entries * 40 + histograms * 280 + statuses * 16 + 16 > size) return std::nullopt;
        if (checksum(copy, size - 8) != u64_at(copy + size - 8)) return std::nullopt;
        Metrics metrics;
        metrics.generation = u64_at(copy);
        for (std::uint64_t bound = 0; bound < bounds; ++bound)
            metrics.bounds.push_back(u64_at(part + offsetof(layout::Metrics, bound) + 8 * bound));
        const unsigned char* at = copy + 8;
        // No event type is that large: it must not pass for the one that its low half is.
        const auto skipped = [](const unsigned char* id) { return u64_at(id) > 0xffffffff; };
        for (std::uint64_t entry = 0; entry < entries; ++entry, at += 40) {
            if (skipped(at)) continue;
            metrics.entries.push_back({u64_at(at), u64_at(at + 8), u64_at(at + 16), u64_at(at + 24), u64_at(at + 32)});
        }
        for (std::uint64_t which = 0; which < histograms; ++which, at += 280) {
            if (skipped(at)) continue;
            Histogram histogram{u64_at(at), u64_at(at + 8), {}};
            for (std::uint64_t count = 0; count <= bounds; ++count) histogram.counts.push_back(u64_at(at + 16 + 8 * count));
            metrics.histograms.push_back(std::move(histogram));
        }
        for (std::uint64_t which = 0; which < statuses; ++which, at += 16) {
            if (!skipped(at)) metrics.errors.push_back({u64_at(at), u64_at(at + 8)});
        }
        return metrics;
    }

    static std::optional<std::vector<DynamicMetric>> dynamic_of(const unsigned char* part, const unsigned char* copy, std::uint64_t size) {
        using layout::DynamicEntry;
        const std::uint64_t room = u32_at(part + offsetof(layout::Dynamic, room));
        const std::uint64_t used = u64_at(copy + 8);
        if (room * sizeof(DynamicEntry) + 24 > size || used > room) return std::nullopt;
        const std::uint64_t end = 16 + used * sizeof(DynamicEntry);
        if (checksum(copy, end) != u64_at(copy + size - 8)) return std::nullopt;
        std::vector<DynamicMetric> metrics;
        for (const unsigned char* at = copy + 16; at < copy + end; at += sizeof(DynamicEntry)) {
            std::string_view name(reinterpret_cast<const char*>(at), sizeof DynamicEntry::name);
            metrics.push_back({EventName::of_file(name), i32_at(at + offsetof(DynamicEntry, category)), u64_at(at + offsetof(DynamicEntry, sum)),
                               u64_at(at + offsetof(DynamicEntry, count)), u64_at(at + offsetof(DynamicEntry, last)),
                               u64_at(at + offsetof(DynamicEntry, last_time))});
        }
        return metrics;
    }

    const File& file_;
    const ImageRing& ring_;
    std::vector<Part> rows_;
};

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------------
// Items and transfers

// One event, whatever layout it came from.
struct Event {
    // Written out, here and in Item, so that nothing clears all the bytes first: that took longer than the rest of next().
    Event() noexcept {}

    std::uint64_t seq = 0;       // its position within one instance; in NIXL's own files a count of what this reader returned
    std::uint64_t instance = 0;  // the producer's run; 0 in NIXL's own files
    std::optional<std::uint64_t> timestamp_us;  // in the image's time base; nullopt where the layout has no time
    std::optional<std::uint64_t> observed_us;   // where it has none: when this reader saw the event, Unix microseconds
    std::optional<std::int32_t> category;       // as it is stored; nullopt where the layout has none
    std::optional<std::uint32_t> id;            // the event type: stored, or found by the name; nullopt for another name
    EventName name;
    std::uint64_t value = 0;     // bytes, a count, or microseconds

    // The stored category, else the one of the event type.
    std::optional<std::int32_t> known_category() const noexcept {
        if (category || !id) return category;
        const EventType* row = event_type(*id);
        return row == nullptr ? std::nullopt : std::optional<std::int32_t>(static_cast<std::int32_t>(row->category));
    }
    // The event's time, or the time it was seen where the layout has none.
    std::uint64_t any_time_us() const noexcept { return timestamp_us ? *timestamp_us : observed_us.value_or(0); }
};

enum class ItemKind {
    event,
    lost,         // `count` events were overwritten before this reader came to them
    interrupted,  // `count` positions of a producer that was reset while it wrote
    unverified,   // `count` records failed their check
    reset,        // the file started over: what follows begins at the oldest event of another run
};

struct Item {
    Item() noexcept {}

    ItemKind kind = ItemKind::event;
    std::uint64_t count = 0;     // of lost, interrupted, unverified
    std::uint64_t instance = 0;  // the producer's run
    Event event;                 // of an event
};

enum class Operation { write, read };

inline const char* to_string(Operation operation) noexcept { return operation == Operation::write ? "write" : "read"; }

// One finished transfer.
struct Transfer {
    std::uint64_t seq = 0;  // of its first event
    std::uint64_t instance = 0;
    std::uint64_t start_us = 0;  // end_us - xfer_us
    std::uint64_t end_us = 0;
    Operation operation = Operation::write;
    std::uint64_t bytes = 0;
    std::uint64_t post_us = 0;  // from its start until the backend had it
    std::uint64_t xfer_us = 0;
    std::string agent;  // UTF-8, control characters included
    std::string rank;
};

namespace detail {

// Puts events together to transfers (section 4): four events behind each other. Those of which one is missing are counted and
// not guessed.
class Assembler {
public:
    // `one_time`: the four carry one timestamp, as in an image. NIXL takes one for each.
    explicit Assembler(bool one_time) : one_time_(one_time) {}

    void add(const Event& event, std::vector<Transfer>& out) {
        unsigned place = 4;
        Operation operation = Operation::write;
        switch (event.id.value_or(0xffffffff)) {
            case 7: place = 0; break;
            case 6: place = 1; break;
            case 0: place = 2; break;
            case 1: place = 2, operation = Operation::read; break;
            case 2: place = 3; break;
            case 3: place = 3, operation = Operation::read; break;
            default: return gap();
        }
        const std::uint64_t time = event.timestamp_us.value_or(0);
        const bool in_time = one_time_ ? time == pending_.end_us : time >= pending_.end_us;
        if (places_ >> place != 0 || !in_time) gap();
        if (places_ == 0) {
            pending_.seq = event.seq;
            pending_.instance = event.instance;
        }
        places_ |= 1U << place;
        pending_.end_us = time;
        if (place == 0) pending_.post_us = event.value;
        if (place == 1) pending_.xfer_us = event.value;
        if (place == 2) {
            pending_.bytes = event.value;
            pending_.operation = operation;
        }
        if (place != 3) return;
        if (places_ != 0xf || operation != pending_.operation) return gap();
        pending_.start_us = minus(time, pending_.xfer_us);
        out.push_back(std::move(pending_));
        places_ = 0;
        pending_ = Transfer{};
    }

    // Something is missing here: what is open can't be completed.
    void gap() {
        if (places_ != 0) ++incomplete_;
        places_ = 0;
        pending_ = Transfer{};
    }

    std::uint64_t incomplete() const noexcept { return incomplete_; }

private:
    bool one_time_;
    // Bit 0 the post time, then the transfer's time, the bytes, the requests.
    unsigned places_ = 0;
    std::uint64_t incomplete_ = 0;
    Transfer pending_;
};

// Names seen lately, cleaned and looked up once: a file holds few, a reader sees millions. The events of a transfer follow each
// other, so the name that stood behind this one last time is tried first.
class NameCache {
public:
    struct Row {
        std::array<std::uint64_t, 4> stored = {};
        EventName name;
        std::optional<std::uint32_t> id;
        std::size_t next = 0;
    };
    const Row& look_up(const Record& record) {
        std::array<std::uint64_t, 4> stored;
        std::memcpy(stored.data(), record.name, sizeof record.name);
        std::size_t at = rows_[last_].next;
        if (!same(rows_[at].stored, stored)) {
            std::uint64_t hash = 0;
            for (const std::uint64_t word : stored) hash = ((hash << 5 | hash >> 59) ^ word) * 0x9e3779b97f4a7c15U;
            at = static_cast<std::size_t>(hash >> 58);
            rows_[last_].next = at;
            if (!same(rows_[at].stored, stored)) take(rows_[at], stored, record);
        }
        last_ = at;
        return rows_[at];
    }

private:
    static bool same(const std::array<std::uint64_t, 4>& a, const std::array<std::uint64_t, 4>& b) noexcept {
        return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
    }
    static void take(Row& row, const std::array<std::uint64_t, 4>& stored, const Record& record) {
        row.stored = stored;
        row.name = EventName::of_file(record.stored_name());
        const EventType* type = event_type(record.stored_name());
        row.id = type == nullptr ? std::nullopt : std::optional<std::uint32_t>(type->id);
    }

    std::vector<Row> rows_ = std::vector<Row>(64);
    std::size_t last_ = 0;
};

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------------
// Reader

// Reads one file. All that throws throws Error.
class Reader {
public:
    explicit Reader(const std::string& path, const Options& options = {}) : file_(path, options.consume) {
        const std::uint64_t len = file_.size();
        unsigned char bytes[sizeof(layout::Header)];
        if (len >= sizeof bytes && file_.read(0, bytes, sizeof bytes)) {
            if (const auto head = detail::ImageHead::probe(file_, detail::RingHeader::parse(bytes), len)) {
                if (options.consume)
                    throw Error(ErrorKind::nothing_to_consume, path, "consuming is for NIXL's own files; this one keeps the newest events by itself");
                image_ = std::make_unique<detail::ImageRing>(file_, *head, options);
            }
        }
        if (!image_) nixl_ = std::make_unique<detail::NixlRing>(file_, options);
        assembler_ = std::make_unique<detail::Assembler>(image_ != nullptr);
    }
    // A consuming reader stores the read index behind what it handed over.
    ~Reader() {
        try {
            if (nixl_) commit();
        } catch (...) {
            // The events come again to whoever reads next.
        }
    }
    Reader(Reader&&) = default;
    Reader& operator=(Reader&&) = delete;

    // The next records in bulk: at most 4096; an empty batch when nothing is new now. Never waits. The batch is valid
    // until the reader is used again. What next() has left of a batch comes first.
    const Batch& read_batch() {
        if (left_) trim();
        else read_more();
        left_ = false;
        counts_ += batch_.counts();
        hand_over(batch_.count);
        return batch_;
    }

    // The next item; nullopt when nothing is new now. Never waits. Items come out of a batch that was copied and checked at once,
    // when the one before it was used up: an event was in the file then, and may be overwritten there by now. It counts as read, and
    // what was overwritten before the copy was sound as lost, once: counts() say what was handed over.
    std::optional<Item> next() {
        // One variable for every return: so the item is made where the caller wants it.
        std::optional<Item> result;
        if (!left_) read_more();
        if (batch_.empty()) return result;
        Item& item = result.emplace();
        item.instance = batch_.instance;
        if (batch_.reset) {
            batch_.reset = false;
            item.kind = ItemKind::reset;
        } else if (batch_.lost > 0 || at_gap()) {
            take_missing(item);
        } else {
            fill(item.event, place_++);
            ++counts_.events;
            hand_over(1);
        }
        left_ = batch_.reset || batch_.lost > 0 || place_ < batch_.count;
        return result;
    }

    // The transfers that finished since the last call, in the file's order. Those of which an event is missing are left out and
    // counted. Throws Error no_transfers where the layout has no times (NIXL 1.1 and later): nothing says there which events
    // belong together.
    std::vector<Transfer> transfers() {
        if (nixl_ && nixl_->layout() != Layout::l1)
            throw Error(ErrorKind::no_transfers, path(),
                        std::string("no transfers: layout ") + to_string(layout()) + " has no timestamps, so its events can't be put together");
        std::vector<Transfer> transfers;
        // What is there now: a producer that is faster than this reader must not keep it here.
        const std::uint64_t until = image_ ? image_->positions(file_).committed : 0;
        std::uint64_t most = 4 * capacity() + 2 * detail::most_records;
        try {
            while (const auto item = next()) {
                if (item->kind == ItemKind::event) assembler_->add(item->event, transfers);
                else assembler_->gap();
                if (image_ ? item->kind == ItemKind::event && item->event.seq + 1 == until : --most == 0) break;
            }
        } catch (const Error&) {
            // What came before the trouble is handed over first; the next call meets the trouble again.
            if (transfers.empty()) throw;
        }
        if (image_) {
            if (const auto identity = detail::Parts(file_, *image_).identity()) {
                for (Transfer& transfer : transfers) {
                    transfer.agent = identity->agent;
                    transfer.rank = identity->rank;
                }
            }
        }
        return transfers;
    }

    // Transfers that transfers() left out so far, because an event of theirs was missing.
    std::uint64_t incomplete_transfers() const noexcept { return assembler_->incomplete(); }

    // What was handed over since the file was opened, over resets.
    const Counts& counts() const noexcept { return counts_; }
    std::uint64_t lost() const noexcept { return counts_.lost; }
    std::uint64_t unverified() const noexcept { return counts_.unverified; }
    std::uint64_t interrupted() const noexcept { return counts_.interrupted; }
    // The first position that is counted since the last reset; 0 for NIXL's own files. In a copy of a live file it is
    // known after the first read.
    std::uint64_t start() const noexcept { return image_ ? image_->start() : 0; }

    const std::string& path() const noexcept { return file_.path(); }
    Layout layout() const noexcept { return image_ ? Layout::image : nixl_->layout(); }
    std::uint64_t capacity() const noexcept { return image_ ? image_->head().capacity : nixl_->geometry().capacity; }
    // The producer's run; 0 for NIXL's own files.
    std::uint64_t instance() const noexcept { return image_ ? image_->head().instance : 0; }
    // Whether the path leads to another file by now, or to none.
    bool replaced() const noexcept { return file_.replaced(); }

    // A fresh look at all that the file says about itself.
    Info info() const {
        Info info;
        info.path = path();
        info.layout = layout();
        info.capacity = capacity();
        if (nixl_) {
            const auto look = detail::NixlRing::look_once(file_);
            info.layout = look.geometry.layout;
            info.capacity = look.geometry.capacity;
            info.len = look.geometry.length();
            info.version = look.header.version;
            info.write_pos = look.header.write_pos;
            info.read_pos = look.header.read_pos;
            info.waiting = look.geometry.waiting(info.read_pos, info.write_pos);
            return info;
        }
        const detail::ImageHead& head = image_->head();
        info.len = file_.size();
        if (info.len != head.image_len) throw image_->resized(file_, info.len);
        const auto positions = image_->positions(file_);
        const auto control = image_->control(file_);
        info.liveness = detail::liveness_of(file_.lock(), control, detail::now_us());
        info.major_version = head.major_version;
        info.minor_version = head.minor_version;
        info.instance = head.instance;
        info.created = head.created;
        info.checks = head.checks;
        info.intent = positions.intent;
        info.committed = positions.committed;
        info.metrics_time = control.metrics_time;
        info.heartbeat = control.heartbeat;
        info.state = control.state;
        info.time_base = control.time_base;
        info.boots = control.boots;
        const detail::Parts parts(file_, *image_);
        info.parts = parts.rows();
        info.identity = parts.identity();
        info.losses = parts.losses();
        info.notices = parts.notices();
        auto all = parts.metrics();
        info.metrics = std::move(all.metrics);
        info.dynamic = std::move(all.dynamic);
        info.clock = parts.clock();
        return info;
    }

    // The running totals as of the last flush; nullopt where the file has none.
    std::optional<Metrics> metrics() const {
        if (!image_) return std::nullopt;
        return detail::Parts(file_, *image_).metrics().metrics;
    }

    // Begins again at the oldest record of an image; counts go on.
    void rewind() {
        if (image_) image_->rewind();
        forget();
    }

    // Stores a consuming reader's read index behind what was handed over. Each further read does that too.
    void commit() {
        if (nixl_) nixl_->store(file_);
    }

private:
    void forget() {
        batch_.reset = false;
        batch_.lost = 0;
        batch_.first = 0;
        batch_.records = nullptr;
        batch_.count = 0;
        batch_.gaps.clear();
        batch_.types.clear();
        batch_.instance = 0;
        left_ = false;
        place_ = 0;
        gap_ = 0;
    }

    bool at_gap() const noexcept { return gap_ < batch_.gaps.size() && batch_.gaps[gap_].place == place_; }

    // What is missing here: neighbouring positions with the same reason are one item.
    void take_missing(Item& item) {
        GapKind kind = GapKind::lost;
        if (batch_.lost > 0) item.count = std::exchange(batch_.lost, 0);
        else kind = batch_.gaps[gap_].kind;
        for (; at_gap() && batch_.gaps[gap_].kind == kind; ++gap_, ++place_) ++item.count;
        item.kind = kind == GapKind::lost ? ItemKind::lost : kind == GapKind::interrupted ? ItemKind::interrupted : ItemKind::unverified;
        Counts counts;
        (kind == GapKind::lost ? counts.lost : kind == GapKind::interrupted ? counts.interrupted : counts.unverified) = item.count;
        counts_ += counts;
    }

    void fill(Event& event, std::size_t place) {
        const Record& record = batch_.records[place];
        event.seq = batch_.first + place;
        event.instance = batch_.instance;
        if (batch_.has_time) event.timestamp_us = record.timestamp_us;
        else event.observed_us = batch_.observed_us;
        if (batch_.has_category) event.category = record.category;
        if (batch_.has_type) {
            event.id = batch_.types[place];
            event.name = EventName::of_type(batch_.types[place]);
        } else {
            const auto& row = names_.look_up(record);
            event.id = row.id;
            event.name = row.name;
        }
        event.value = record.value;
    }

    // Takes off the batch what next() handed over already.
    void trim() {
        batch_.records += place_;
        batch_.count -= place_;
        batch_.first += place_;
        batch_.gaps.erase(batch_.gaps.begin(), batch_.gaps.begin() + static_cast<std::ptrdiff_t>(gap_));
        for (Gap& gap : batch_.gaps) gap.place -= place_;
        if (batch_.has_type) batch_.types.erase(batch_.types.begin(), batch_.types.begin() + static_cast<std::ptrdiff_t>(place_));
        place_ = 0;
        gap_ = 0;
    }

    void read_more() {
        forget();
        try {
            if (image_) image_->read(file_, batch_);
            else nixl_->read(file_, batch_);
        } catch (...) {
            // What came before the trouble is handed over first; the next call meets the trouble again.
            if (batch_.empty()) throw;
        }
    }

    void hand_over(std::uint64_t events) noexcept {
        if (nixl_) nixl_->handed(events);
    }

    detail::File file_;
    std::unique_ptr<detail::ImageRing> image_;
    std::unique_ptr<detail::NixlRing> nixl_;
    std::unique_ptr<detail::Assembler> assembler_;
    detail::NameCache names_;
    Batch batch_;
    bool left_ = false;      // next() has handed over a part of the batch
    std::size_t place_ = 0;  // so many records of it,
    std::size_t gap_ = 0;    // and so many gaps
    Counts counts_;
};

// ---------------------------------------------------------------------------------------------------------------
// Follower

// Reads a name for as long as it lives: through restarts of the producer, and through files that are truncated,
// replaced or unlinked. When the name leads to a new file, the old one is read to its end first.
class Follower {
public:
    // `patience`: how long a file may be broken before that is an error. A producer whose file was truncated is back
    // within 2 s.
    explicit Follower(std::string path, const Options& options = {}, std::chrono::milliseconds patience = std::chrono::seconds(5))
        : path_(std::move(path)), options_(options), patience_(patience), reader_(std::make_unique<Reader>(path_, options)) {
        // A file that takes the name later is always read from its oldest event.
        options_.from = From::oldest;
    }

    // The next item; nullopt when nothing is new now. Never waits. Throws Error when the file stays broken and its name
    // leads to no other.
    std::optional<Item> next() {
        try {
            auto item = reader_->next();
            if (!item && reader_->replaced()) {
                // The producer may have written between the two looks.
                item = reader_->next();
                if (!item) item = move_on();
            }
            broken_since_.reset();
            return item;
        } catch (const Error&) {
            if (auto item = move_on()) return item;
            const auto now = std::chrono::steady_clock::now();
            if (!broken_since_) broken_since_ = now;
            if (now - *broken_since_ < patience_) return std::nullopt;
            throw;
        }
    }

    // The reader of the file that is read now.
    Reader& reader() noexcept { return *reader_; }
    const Reader& reader() const noexcept { return *reader_; }
    // What was handed over, over all files.
    Counts counts() const noexcept {
        Counts counts = before_;
        counts += reader_->counts();
        return counts;
    }
    const std::string& path() const noexcept { return path_; }

private:
    // Opens what the name leads to now; nullopt while that is nothing readable.
    std::optional<Item> move_on() {
        std::unique_ptr<Reader> opened;
        try {
            try {
                opened = std::make_unique<Reader>(path_, options_);
            } catch (const Error& error) {
                // A ring that was consumed gave way to an image, which needs none to do so.
                if (error.kind() != ErrorKind::nothing_to_consume) throw;
                options_.consume = false;
                opened = std::make_unique<Reader>(path_, options_);
            }
            // The same broken file, opened again, would be broken again.
            opened->info();
        } catch (const Error&) {
            return std::nullopt;
        }
        before_ += reader_->counts();
        reader_ = std::move(opened);
        broken_since_.reset();
        Item item;
        item.kind = ItemKind::reset;
        item.instance = reader_->instance();
        return item;
    }

    std::string path_;
    Options options_;
    std::chrono::milliseconds patience_;
    std::unique_ptr<Reader> reader_;
    Counts before_;
    std::optional<std::chrono::steady_clock::time_point> broken_since_;
};

}  // namespace telering

#ifdef TELERING_AVX2
#undef TELERING_AVX2
#endif

#endif
