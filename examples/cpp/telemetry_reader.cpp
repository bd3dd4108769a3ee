// Prints the events of a telemetry file, as the guide shows them.
//
//     telemetry_reader PATH          follows: through restarts of the agent, until Ctrl-C
//     telemetry_reader --once PATH   stops at the end of what is there now
//
// What was lost is said on standard error. Status 1: the file can't be read, or the output can't be written;
// 2: wrong arguments.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "telering_reader.hpp"

namespace {

volatile std::sig_atomic_t stopped = 0;

extern "C" void stop(int) { stopped = 1; }

std::string six_digits(std::uint64_t us) {
    const std::string digits = std::to_string(us % 1'000'000);
    return std::string(6 - digits.size(), '0') + digits;
}

// `2025-01-15 14:30:25.123456` in the local time zone. A number that is no date, of a damaged record, is shown as it is.
std::string time_text(std::uint64_t us) {
    constexpr std::uint64_t year_10000 = 253'402'300'800;
    const std::uint64_t seconds = us / 1'000'000;
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    char text[32];
    if (seconds >= year_10000 || ::localtime_r(&time, &parts) == nullptr ||
        std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0)
        return std::to_string(us) + " us after 1970";
    return text + ("." + six_digits(us));
}

void print(const telering::Event& event, bool since_boot) {
    std::cout << "=== NIXL Telemetry Event ===\n";
    if (!event.timestamp_us) std::cout << "Observed: " << time_text(event.any_time_us());
    else if (since_boot) std::cout << "Timestamp: +" << *event.timestamp_us / 1'000'000 << '.' << six_digits(*event.timestamp_us) << " s";
    else std::cout << "Timestamp: " << time_text(*event.timestamp_us);
    const auto category = event.known_category();
    std::cout << "\nCategory: " << (category ? telering::category_name(*category) : "UNKNOWN") << "\nEvent: " << event.name.view()
              << "\nValue: " << event.value << "\n===========================\n";
}

void say(const telering::Item& item) {
    switch (item.kind) {
        case telering::ItemKind::event: break;
        case telering::ItemKind::lost: std::cerr << "--- " << item.count << " events lost: overwritten before they were read ---\n"; break;
        case telering::ItemKind::interrupted: std::cerr << "--- " << item.count << " events lost: the agent was interrupted ---\n"; break;
        case telering::ItemKind::unverified: std::cerr << "--- " << item.count << " records left out: failing their check ---\n"; break;
        case telering::ItemKind::reset: std::cerr << "--- the file started over: a new run of the agent ---\n"; break;
    }
}

bool is_since_boot(const telering::Reader& reader) {
    return reader.layout() == telering::Layout::image && reader.info().time_base == 1;
}

int read(const std::string& path, bool once) {
    telering::Follower follower(path);
    std::cerr << "Buffer capacity: " << follower.reader().capacity() << " events\n";
    bool since_boot = is_since_boot(follower.reader());
    while (stopped == 0 && std::cout) {
        const auto item = follower.next();
        if (!item) {
            std::cout.flush();
            if (once) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        } else if (item->kind == telering::ItemKind::event) {
            print(item->event, since_boot);
        } else {
            say(*item);
            if (item->kind == telering::ItemKind::reset) since_boot = is_since_boot(follower.reader());
        }
    }
    // errno is that of the write that failed: nothing was called since. Whoever closed the pipe has seen enough.
    if (std::cout.flush() || errno == EPIPE) return 0;
    std::cerr << "telemetry_reader: cannot write the output: " << std::generic_category().message(errno) << '\n';
    return 1;
}

}  // namespace

int main(int count, char** arguments) {
    bool once = false;
    std::string path;
    for (int at = 1; at < count; ++at) {
        if (std::string_view(arguments[at]) == "--once") once = true;
        else if (path.empty() && arguments[at][0] != '-') path = arguments[at];
        else return std::cerr << "usage: telemetry_reader [--once] PATH\n", 2;
    }
    if (path.empty()) return std::cerr << "usage: telemetry_reader [--once] PATH\n", 2;
    std::signal(SIGINT, stop);
    std::signal(SIGTERM, stop);
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return read(path, once);
    } catch (const telering::Error& error) {
        std::cout.flush();
        std::cerr << "telemetry_reader: " << error.what() << '\n';
        return 1;
    }
}
