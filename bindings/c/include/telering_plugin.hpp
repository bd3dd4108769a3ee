// An exporter for Telering in C++17: a class, and no exception that leaves it.
//
//     class Csv final : public telering::plugin::Exporter {
//     public:
//         explicit Csv(const telering_plugin_agent& agent);            // may throw
//         void exportEvents(const telering_plugin_event* events, std::uint64_t count) override;  // may throw
//     };
//     TELERING_EXPORTER_PLUGIN(Csv, "csv", "1.0.0")
//
// What a member function throws becomes the text of one warning; `Lost` says also how many events it cost.
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "telering_plugin.h"

namespace telering::plugin {

/// Some events of a batch were not taken.
class Lost : public std::runtime_error {
public:
    Lost(std::uint64_t events, const std::string& why) : std::runtime_error(why), events_(events) {}
    std::uint64_t events() const noexcept { return events_; }

private:
    std::uint64_t events_;
};

/// What a plug-in implements. The constructor takes a `const telering_plugin_agent&`.
class Exporter {
public:
    virtual ~Exporter() = default;
    virtual void exportEvents(const telering_plugin_event* events, std::uint64_t count) = 0;
    virtual void publish(const telering_plugin_totals&) {}
    virtual void housekeep(std::uint64_t) {}
    /// The last call before the destructor.
    virtual void close(std::uint64_t) {}
};

namespace detail {

inline std::int32_t fail(telering_plugin_failure* failure, const char* why) noexcept {
    std::snprintf(failure->message, sizeof failure->message, "%s", why);
    return 1;
}

template <class Call>
std::int32_t guarded(telering_plugin_failure* failure, Call&& call) noexcept {
    try {
        call();
        return 0;
    } catch (const Lost& lost) {
        failure->lost = lost.events();
        return fail(failure, lost.what());
    } catch (const std::exception& error) {
        return fail(failure, error.what());
    } catch (...) {
        return fail(failure, "it threw something that is no std::exception");
    }
}

inline Exporter& of(void* state) noexcept { return *static_cast<Exporter*>(state); }

template <class Type>
std::int32_t open(void** state, const telering_plugin_agent* agent, telering_plugin_failure* failure) {
    return guarded(failure, [&] { *state = static_cast<Exporter*>(new Type(*agent)); });
}

inline std::int32_t exportEvents(void* state, const telering_plugin_event* events, std::uint64_t count,
                                 telering_plugin_failure* failure) {
    return guarded(failure, [&] { of(state).exportEvents(events, count); });
}

inline std::int32_t publish(void* state, const telering_plugin_totals* totals, telering_plugin_failure* failure) {
    return guarded(failure, [&] { of(state).publish(*totals); });
}

inline std::int32_t housekeep(void* state, std::uint64_t now_us, telering_plugin_failure* failure) {
    return guarded(failure, [&] { of(state).housekeep(now_us); });
}

inline std::int32_t close(void* state, std::uint64_t now_us, telering_plugin_failure* failure) {
    std::int32_t status = guarded(failure, [&] { of(state).close(now_us); });
    delete &of(state);
    return status;
}

}  // namespace detail
}  // namespace telering::plugin

/// Defines the plug-in's one symbol. A constant: nothing runs before the host calls.
#define TELERING_EXPORTER_PLUGIN(Type, name, version)                                                          \
    extern "C" TELERING_PLUGIN_EXPORT const telering_plugin telering_exporter_plugin = {                       \
        TELERING_PLUGIN_ABI_VERSION,       sizeof(telering_plugin),          name, version,                    \
        &telering::plugin::detail::open<Type>, &telering::plugin::detail::exportEvents,                        \
        &telering::plugin::detail::publish, &telering::plugin::detail::housekeep, &telering::plugin::detail::close};
