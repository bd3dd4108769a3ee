// NIXL's names for reading telemetry, so that a loop written for NIXL's own headers compiles with only its include lines
// changed:
//
//     sharedRingBuffer<nixlTelemetryEvent> buffer(path, false, TELEMETRY_VERSION);
//     nixlTelemetryEvent event;
//     while (running)
//         if (buffer.pop(event)) std::cout << event.eventName_ << ": " << event.value_ << '\n';
//
// A file of NIXL's own is consumed, as NIXL's class does: each pop() stores the read index, so write permission is
// needed and there may be one such reader at a time. A file of this project is read from its oldest event with a
// cursor that is this object's alone, and nothing is written. Any layout can be read whatever version is asked for; no
// file is ever unlinked.

#ifndef TELERING_NIXL_COMPAT_HPP
#define TELERING_NIXL_COMPAT_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "telering_reader.hpp"

inline constexpr std::uint32_t TELEMETRY_VERSION = 1;
inline constexpr std::size_t MAX_EVENT_NAME_LEN = 32;

enum class nixl_telemetry_category_t : std::int32_t {
    NIXL_TELEMETRY_MEMORY = 0,
    NIXL_TELEMETRY_TRANSFER = 1,
    NIXL_TELEMETRY_CONNECTION = 2,
    NIXL_TELEMETRY_BACKEND = 3,
    NIXL_TELEMETRY_ERROR = 4,
    NIXL_TELEMETRY_PERFORMANCE = 5,
    NIXL_TELEMETRY_SYSTEM = 6,
    NIXL_TELEMETRY_CUSTOM = 7,
};

struct nixlTelemetryEvent {
    // Unix microseconds; where the layout has no time (NIXL 1.1 and later), when the event was read.
    std::uint64_t timestampUs_ = 0;
    // Where the layout has no category, that of the event type.
    nixl_telemetry_category_t category_ = nixl_telemetry_category_t::NIXL_TELEMETRY_CUSTOM;
    // UTF-8 without control characters, NUL-terminated.
    char eventName_[MAX_EVENT_NAME_LEN] = {};
    std::uint64_t value_ = 0;
};

template <class Event>
class sharedRingBuffer {
    static_assert(std::is_same_v<Event, nixlTelemetryEvent>, "telering reads nixlTelemetryEvent");

public:
    // Opens a file. `create` must be false: this class only reads. Throws telering::Error.
    explicit sharedRingBuffer(const std::string& path, bool create = false, std::uint32_t version = TELEMETRY_VERSION)
        : version_(version), follower_(opened(path, create)) {}

    // The oldest event that was not popped yet; false when there is none now. Does not throw: while the file is truncated
    // or being made anew there is nothing, and when another file takes its name that one is read. trouble() says what
    // is wrong.
    bool pop(Event& event) {
        try {
            while (const auto item = follower_.next()) {
                if (item->kind != telering::ItemKind::event) continue;
                fill(event, item->event);
                follower_.reader().commit();
                trouble_.clear();
                return true;
            }
            trouble_.clear();
        } catch (const telering::Error& error) {
            trouble_ = error.what();
        }
        return false;
    }

    std::size_t capacity() const noexcept { return static_cast<std::size_t>(follower_.reader().capacity()); }
    std::uint32_t version() const noexcept { return version_; }

    // Not in NIXL's class: how many events were overwritten before they were popped, and what the last pop() met.
    std::uint64_t lost() const noexcept { return follower_.counts().lost; }
    const std::string& trouble() const noexcept { return trouble_; }

private:
    static telering::Follower opened(const std::string& path, bool create) {
        if (create) throw telering::Error(telering::ErrorKind::io, path, "cannot create it: this class only reads");
        const auto no_patience = std::chrono::milliseconds(0);
        telering::Options options;
        if (telering::Reader(path).layout() == telering::Layout::image) return telering::Follower(path, options, no_patience);
        options.consume = true;
        return telering::Follower(path, options, no_patience);
    }

    static void fill(Event& to, const telering::Event& from) {
        to.timestampUs_ = from.any_time_us();
        to.category_ = static_cast<nixl_telemetry_category_t>(
            from.known_category().value_or(static_cast<std::int32_t>(nixl_telemetry_category_t::NIXL_TELEMETRY_CUSTOM)));
        std::string_view name = from.name.view();
        // The last byte is the NUL: a name that fills all 32 is cut at a whole character.
        std::size_t size = std::min(name.size(), sizeof to.eventName_ - 1);
        while (size < name.size() && size > 0 && (static_cast<unsigned char>(name[size]) & 0xc0) == 0x80) --size;
        std::memset(to.eventName_, 0, sizeof to.eventName_);
        std::memcpy(to.eventName_, name.data(), size);
        to.value_ = from.value;
    }

    std::uint32_t version_;
    telering::Follower follower_;
    std::string trouble_;
};

#endif
