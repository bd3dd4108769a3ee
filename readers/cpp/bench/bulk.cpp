// How long reading in bulk takes, check words verified: `bulk PATH`. For each line on standard input it reads the whole
// file again and again for 50 ms, first in batches, then item by item, then by the bare system call, and prints the
// nanoseconds that one event took: `BATCHES ITEMS PREAD`. compare.py asks this program and one in Rust by turns.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "telering_reader.hpp"

namespace {

// Nanoseconds per event over one turn. `pass` reads the file once and returns how many events it has.
template <class Pass>
double turn(Pass pass) {
    using clock = std::chrono::steady_clock;
    std::uint64_t events = 0;
    const auto began = clock::now();
    auto took = clock::duration::zero();
    while (took < std::chrono::milliseconds(50)) {
        const std::uint64_t more = pass();
        if (more == 0) throw std::runtime_error("the file has no event");
        events += more;
        took = clock::now() - began;
    }
    return std::chrono::duration<double, std::nano>(took).count() / static_cast<double>(events);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "usage: bulk PATH\n";
        return 2;
    }
    try {
        telering::Reader reader(arguments[1]);
        std::vector<telering::Record> room(static_cast<std::size_t>(reader.capacity()));
        const int file = ::open(arguments[1], O_RDONLY | O_CLOEXEC);
        volatile std::uint64_t sink = 0;
        for (std::string line; std::getline(std::cin, line);) {
            const double batches = turn([&] {
                reader.rewind();
                std::uint64_t events = 0;
                while (true) {
                    const telering::Batch& batch = reader.read_batch();
                    if (batch.empty()) return events;
                    events += batch.size();
                    sink = sink + batch.records[0].value;
                }
            });
            const double items = turn([&] {
                reader.rewind();
                std::uint64_t events = 0;
                while (const auto item = reader.next()) {
                    ++events;
                    sink = sink + item->event.value;
                }
                return events;
            });
            const double bare = turn([&] {
                const ssize_t got = ::pread(file, room.data(), room.size() * sizeof(telering::Record), 40);
                return got < 0 ? 0 : static_cast<std::uint64_t>(got) / sizeof(telering::Record);
            });
            std::printf("%.4f %.4f %.4f\n", batches, items, bare);
            std::fflush(stdout);
        }
        ::close(file);
        if (reader.unverified() + reader.lost() == 0) return 0;
        std::cerr << "bulk: the file was written meanwhile: that is no comparison\n";
    } catch (const std::exception& error) {
        std::cerr << "bulk: " << error.what() << '\n';
    }
    return 1;
}
