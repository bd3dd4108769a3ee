// How long reading takes: `bulk PATH [SECONDS]` reads an image again and again and prints nanoseconds per event, the check
// words verified. Beside it what the system call alone takes for the same records.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "telering_reader.hpp"

namespace {

// The fastest of the rounds that fit into the time, in nanoseconds per event.
template <class Round>
double fastest(double seconds, Round round) {
    using clock = std::chrono::steady_clock;
    double best = 1e9;
    for (const auto end = clock::now() + std::chrono::duration<double>(seconds); clock::now() < end;) {
        const auto began = clock::now();
        std::uint64_t events = 0;
        for (int again = 0; again < 20; ++again) events += round();
        const std::chrono::duration<double, std::nano> took = clock::now() - began;
        if (events > 0) best = std::min(best, took.count() / static_cast<double>(events));
    }
    return best;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::cerr << "usage: bulk PATH [SECONDS]\n";
        return 2;
    }
    try {
        const double seconds = count > 2 ? std::atof(arguments[2]) : 1;
        telering::Reader reader(arguments[1]);
        const std::uint64_t capacity = reader.capacity();
        std::vector<telering::Record> room(static_cast<std::size_t>(capacity));
        const int file = ::open(arguments[1], O_RDONLY | O_CLOEXEC);
        const double bare = fastest(seconds, [&] {
            const ssize_t got = ::pread(file, room.data(), room.size() * sizeof(telering::Record), 40);
            return got < 0 ? 0 : static_cast<std::uint64_t>(got) / sizeof(telering::Record);
        });
        ::close(file);
        volatile std::uint64_t sink = 0;
        const double batches = fastest(seconds, [&] {
            reader.rewind();
            std::uint64_t events = 0;
            while (true) {
                const telering::Batch& batch = reader.read_batch();
                if (batch.empty()) return events;
                events += batch.size();
                sink = sink + batch.records[0].value;
            }
        });
        const double items = fastest(seconds, [&] {
            reader.rewind();
            std::uint64_t events = 0;
            while (const auto item = reader.next()) {
                ++events;
                sink = sink + item->event.value;
            }
            return events;
        });
        std::printf("capacity %llu: pread %.2f, read_batch %.2f, next %.2f ns per event\n", static_cast<unsigned long long>(capacity), bare,
                    batches, items);
        return reader.unverified() == 0 ? 0 : 1;
    } catch (const telering::Error& error) {
        std::cerr << "bulk: " << error.what() << '\n';
        return 1;
    }
}
