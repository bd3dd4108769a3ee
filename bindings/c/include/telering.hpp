// Telering for programs in C++17: agents, transfers and backends that close themselves, over telering.h.
//
//     telering::producer::Options options;
//     options.captureTelemetry = true;
//     telering::producer::Agent agent("prefill-0", options);
//     auto transfer = agent.beginTransfer(telering::producer::Operation::Write, 65536, 1);
//     transfer.posted();
//     transfer.finish();
//
//     telering::producer::TransferTelemetry telem;
//     if (agent.getXferTelemetry(transfer, telem) == telering::producer::Status::Success)
//         std::cout << "Transfer took " << telem.xferDuration.count() << " us\n";
//
// Nothing here throws but std::bad_alloc, where a function returns text. Threads, fork and waiting: see telering.h. A
// moved-from or closed object is safe to use: its calls return Status::InvalidHandle.
#ifndef TELERING_HPP
#define TELERING_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "telering.h"

namespace telering::producer {

/// What a call, or an operation of the engine, ended with. The values are those of telering.h.
enum class Status : std::int32_t {
    Success = TELERING_OK,
    InProgress = TELERING_IN_PROGRESS,
    NotPosted = TELERING_NIXL_ERR_NOT_POSTED,
    InvalidParam = TELERING_NIXL_ERR_INVALID_PARAM,
    Backend = TELERING_NIXL_ERR_BACKEND,
    NotFound = TELERING_NIXL_ERR_NOT_FOUND,
    Mismatch = TELERING_NIXL_ERR_MISMATCH,
    NotAllowed = TELERING_NIXL_ERR_NOT_ALLOWED,
    RepostActive = TELERING_NIXL_ERR_REPOST_ACTIVE,
    Unknown = TELERING_NIXL_ERR_UNKNOWN,
    NotSupported = TELERING_NIXL_ERR_NOT_SUPPORTED,
    RemoteDisconnect = TELERING_NIXL_ERR_REMOTE_DISCONNECT,
    Canceled = TELERING_NIXL_ERR_CANCELED,
    NoTelemetry = TELERING_NIXL_ERR_NO_TELEMETRY,
    InvalidHandle = TELERING_ERR_INVALID_HANDLE,
    Forked = TELERING_ERR_FORKED,
    Limit = TELERING_ERR_LIMIT,
    Internal = TELERING_ERR_INTERNAL,
    NotStarted = TELERING_ERR_NOT_STARTED,
    Timeout = TELERING_ERR_TIMEOUT,
    BufferTooSmall = TELERING_ERR_BUFFER_TOO_SMALL,
};

inline const char* text(Status status) noexcept { return telering_status_text(static_cast<telering_status>(status)); }

enum class Operation : std::uint32_t { Write = TELERING_WRITE, Read = TELERING_READ };

enum class Mode : std::uint32_t { Off = 0, Captured = 1, Exported = 2 };

/// Whether telemetry is on.
enum class Enable : std::uint32_t { AsEnvironmentSays = 0, On = 1, Off = 2 };

/// Hears of a warning. What it throws is dropped.
using OnWarning = std::function<void(const std::string& kind, const std::string& message)>;

/// How an agent is made. Empty and zero are the defaults; see telering_options.
struct Options {
    Enable enable = Enable::AsEnvironmentSays;
    bool captureTelemetry = false;
    bool ignoreEnvironment = false;
    bool strict = false;
    std::string dir{};
    std::string exporter{};
    std::string pluginDir{};
    std::string metrics{};
    std::string rank{};
    std::uint64_t bufferSize = 0;
    std::chrono::milliseconds runInterval{0};
    std::uint64_t stagingRecords = 0;
    std::chrono::milliseconds closePatience{2000};
    std::uint32_t fileMode = 0;
    OnWarning onWarning{};
};

/// What one finished transfer did.
struct TransferTelemetry {
    std::chrono::system_clock::time_point startTime{};
    std::chrono::microseconds postDuration{0};
    /// Includes the post.
    std::chrono::microseconds xferDuration{0};
    std::size_t totalBytes = 0;
    std::size_t descCount = 0;
};

/// An event that a backend took back.
struct BackendEvent {
    std::uint64_t timestampUs = 0;
    std::string name;
    std::uint64_t value = 0;
};

using Counts = telering_counts;
using Total = telering_total;

namespace detail {

inline Status status(telering_status status) noexcept { return static_cast<Status>(status); }

/// Text of any length out of a function that fills a buffer.
template <class Fill>
Status textOf(std::string& out, Fill&& fill) {
    std::string text(4096, '\0');
    for (;;) {
        std::size_t length = 0;
        const Status ended = status(fill(text.data(), text.size(), &length));
        if (ended != Status::BufferTooSmall) {
            text.resize(ended == Status::Success ? length : 0);
            if (ended == Status::Success) out = std::move(text);
            return ended;
        }
        // It may have grown meanwhile.
        text.assign(length + length / 2 + 1024, '\0');
    }
}

extern "C" inline void teleringHear(void* user, const char* kind, const char* message) {
    try {
        // A copy: the function may destroy its agent, and itself with it.
        const OnWarning hear = *static_cast<const OnWarning*>(user);
        hear(kind, message);
    } catch (...) {
        // Nothing may leave this function.
    }
}

}  // namespace detail

/// A transfer under way. One thread's at a time. Destroyed unfinished, it counts as cancelled.
class Transfer {
public:
    Transfer() noexcept = default;
    explicit Transfer(telering_transfer raw) noexcept : raw_(raw) {}
    Transfer(Transfer&& other) noexcept : raw_(std::exchange(other.raw_, {})) {}
    Transfer& operator=(Transfer&& other) noexcept {
        if (this != &other) {
            release();
            raw_ = std::exchange(other.raw_, {});
        }
        return *this;
    }
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    ~Transfer() { release(); }

    /// The backend has the request.
    Status posted() noexcept { return detail::status(telering_transfer_posted(raw_)); }
    Status finish() noexcept { return detail::status(telering_transfer_finish(raw_)); }
    Status fail(Status why) noexcept {
        return detail::status(telering_transfer_fail(raw_, static_cast<telering_status>(why)));
    }

    /// InProgress before it has finished, NoTelemetry when it failed or telemetry is off; `out` is untouched then.
    Status telemetry(TransferTelemetry& out) const noexcept {
        telering_transfer_telemetry told;
        const Status ended = detail::status(telering_transfer_get_telemetry(raw_, &told));
        if (ended == Status::Success) {
            using std::chrono::microseconds;
            const auto us = [](std::uint64_t number) { return microseconds(static_cast<microseconds::rep>(number)); };
            out.startTime = std::chrono::system_clock::time_point(us(told.start_us));
            out.postDuration = us(told.post_duration_us);
            out.xferDuration = us(told.xfer_duration_us);
            out.totalBytes = static_cast<std::size_t>(told.total_bytes);
            out.descCount = static_cast<std::size_t>(told.descriptor_count);
        }
        return ended;
    }

    /// Lets go of it now.
    Status release() noexcept {
        if (raw_.handle == 0) return Status::InvalidHandle;
        return detail::status(telering_transfer_release(std::exchange(raw_, {})));
    }

    telering_transfer raw() const noexcept { return raw_; }

private:
    telering_transfer raw_{};
};

/// A backend's own events.
class Backend {
public:
    Backend() noexcept = default;
    explicit Backend(telering_backend raw) noexcept : raw_(raw) {}
    Backend(Backend&& other) noexcept : raw_(std::exchange(other.raw_, {})) {}
    Backend& operator=(Backend&& other) noexcept {
        if (this != &other) {
            close();
            raw_ = std::exchange(other.raw_, {});
        }
        return *this;
    }
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    ~Backend() { close(); }

    /// Keeps an event until the next flush exports it.
    Status addTelemetryEvent(const std::string& name, std::uint64_t value) noexcept {
        return detail::status(telering_backend_add_event(raw_, name.c_str(), value));
    }

    /// Takes the events back that no flush has taken; they are not exported then.
    std::vector<BackendEvent> getTelemetryEvents() {
        std::vector<telering_backend_event> raw(1000);
        std::size_t count = 0;
        telering_backend_take_events(raw_, raw.data(), raw.size(), &count);
        std::vector<BackendEvent> events;
        events.reserve(count);
        for (std::size_t i = 0; i < count; i++) events.push_back({raw[i].timestamp_us, raw[i].name, raw[i].value});
        return events;
    }

    Status close() noexcept {
        if (raw_.handle == 0) return Status::InvalidHandle;
        return detail::status(telering_backend_close(std::exchange(raw_, {})));
    }

private:
    telering_backend raw_{};
};

/// An agent. Any thread may use it; destroying, closing and moving it are one thread's.
class Agent {
public:
    Agent() noexcept = default;

    /// Never fails but when `options.strict` is set: then `opened()` says so, and `problem()` why.
    explicit Agent(const std::string& name, const Options& options = {}) {
        telering_options raw{};
        raw.size = sizeof raw;
        raw.enable = static_cast<std::uint32_t>(options.enable);
        raw.capture_telemetry = options.captureTelemetry;
        raw.ignore_environment = options.ignoreEnvironment;
        raw.strict = options.strict;
        const auto optional = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
        raw.dir = optional(options.dir);
        raw.exporter = optional(options.exporter);
        raw.plugin_dir = optional(options.pluginDir);
        raw.metrics = optional(options.metrics);
        raw.rank = optional(options.rank);
        raw.buffer_size = options.bufferSize;
        raw.run_interval_ms = positive(options.runInterval);
        raw.staging_records = options.stagingRecords;
        raw.close_patience_ms = options.closePatience.count() > 0 ? positive(options.closePatience) : UINT64_MAX;
        raw.file_mode = options.fileMode;
        if (options.onWarning) {
            hearer_ = std::make_unique<OnWarning>(options.onWarning);
            raw.on_warning = detail::teleringHear;
            raw.on_warning_user = hearer_.get();
        }
        // Nothing throws once the agent is open: nobody would close it.
        problem_.assign(1024, '\0');
        opened_ = detail::status(telering_agent_open(name.c_str(), &raw, &raw_, problem_.data(), problem_.size()));
        problem_.resize(std::strlen(problem_.c_str()));
    }

    Agent(Agent&& other) noexcept
        : raw_(std::exchange(other.raw_, {})),
          opened_(std::exchange(other.opened_, Status::InvalidHandle)),
          problem_(std::move(other.problem_)),
          hearer_(std::move(other.hearer_)) {}
    Agent& operator=(Agent&& other) noexcept {
        if (this != &other) {
            close();
            raw_ = std::exchange(other.raw_, {});
            opened_ = std::exchange(other.opened_, Status::InvalidHandle);
            problem_ = std::move(other.problem_);
            hearer_ = std::move(other.hearer_);
        }
        return *this;
    }
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;
    ~Agent() { close(); }

    Status opened() const noexcept { return opened_; }
    const std::string& problem() const noexcept { return problem_; }

    Mode mode() const noexcept {
        std::uint32_t mode = 0;
        telering_agent_mode(raw_, &mode);
        return static_cast<Mode>(mode);
    }

    Transfer beginTransfer(Operation operation, std::uint64_t bytes, std::uint32_t descriptors) noexcept {
        telering_transfer transfer{};
        telering_transfer_begin(raw_, static_cast<std::uint32_t>(operation), bytes, descriptors, &transfer);
        return Transfer(transfer);
    }

    /// The guide's call: the telemetry of a finished transfer.
    Status getXferTelemetry(const Transfer& transfer, TransferTelemetry& out) const noexcept {
        return transfer.telemetry(out);
    }

    /// A transfer that the engine timed itself.
    Status recordTransfer(Operation operation, std::uint64_t bytes, std::uint32_t descriptors,
                          std::chrono::microseconds postDuration, std::chrono::microseconds xferDuration) noexcept {
        const auto us = [](std::chrono::microseconds time) {
            return time.count() < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(time.count());
        };
        return detail::status(telering_record_transfer(raw_, static_cast<std::uint32_t>(operation), bytes, descriptors,
                                                       us(postDuration), us(xferDuration)));
    }

    Status memoryRegistered(std::uint64_t bytes) noexcept {
        return detail::status(telering_memory_registered(raw_, bytes));
    }
    Status memoryDeregistered(std::uint64_t bytes) noexcept {
        return detail::status(telering_memory_deregistered(raw_, bytes));
    }
    Status metadataSent(std::uint64_t bytes) noexcept { return detail::status(telering_metadata_sent(raw_, bytes)); }
    Status metadataReceived(std::uint64_t bytes) noexcept {
        return detail::status(telering_metadata_received(raw_, bytes));
    }
    Status connected() noexcept { return detail::status(telering_connected(raw_)); }
    Status disconnected() noexcept { return detail::status(telering_disconnected(raw_)); }
    Status error(Status status) noexcept {
        return detail::status(telering_error(raw_, static_cast<telering_status>(status)));
    }
    Status event(const std::string& name, std::uint64_t value) noexcept {
        return detail::status(telering_event(raw_, name.c_str(), value));
    }

    Backend backend() noexcept {
        telering_backend backend{};
        telering_backend_open(raw_, &backend);
        return Backend(backend);
    }

    Status flush(std::chrono::milliseconds patience) noexcept {
        return detail::status(telering_agent_flush(raw_, positive(patience)));
    }

    Counts counts() const noexcept {
        Counts counts{};
        telering_agent_counts(raw_, &counts);
        return counts;
    }

    /// Running totals of an event type, such as TELERING_EVENT_TX_BYTES; zeros for one that does not exist.
    Total total(std::uint32_t eventType) const noexcept {
        Total total{};
        telering_agent_total(raw_, eventType, &total);
        return total;
    }

    std::uint64_t errors(Status status) const noexcept {
        std::uint64_t count = 0;
        telering_agent_errors(raw_, static_cast<telering_status>(status), &count);
        return count;
    }

    /// The telemetry file; empty if there is none.
    std::string path() const {
        std::string path;
        detail::textOf(path, [this](char* buffer, std::size_t capacity, std::size_t* length) {
            return telering_agent_path(raw_, buffer, capacity, length);
        });
        return path;
    }

    /// The agent's numbers for a /metrics of the program's own.
    std::string renderPrometheus() const {
        std::string page;
        detail::textOf(page, [this](char* buffer, std::size_t capacity, std::size_t* length) {
            return telering_agent_render_prometheus(raw_, buffer, capacity, length);
        });
        return page;
    }

    /// Exports what is there; returns the final counts, or zeros if it was closed before.
    Counts close() noexcept {
        Counts counts{};
        if (raw_.handle != 0) telering_agent_close(std::exchange(raw_, {}), &counts);
        return counts;
    }

    telering_agent raw() const noexcept { return raw_; }

private:
    static std::uint64_t positive(std::chrono::milliseconds time) noexcept {
        return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
    }

    telering_agent raw_{};
    Status opened_ = Status::InvalidHandle;
    std::string problem_;
    std::unique_ptr<OnWarning> hearer_;
};

}  // namespace telering::producer

#endif
