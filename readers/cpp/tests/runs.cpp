// Follows a name through all runs of its producer: `runs PATH` prints a line of JSON for each run, and ends when one was
// closed in good order and read to its end. The producer is the library's example `paced`: transfer number i moves i bytes.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <thread>

#include "telering_reader.hpp"

namespace {

struct Run {
    std::uint64_t instance;
    std::uint64_t start;
    telering::Counts counts;
    std::uint64_t next = 0;
    std::uint64_t bytes = 0;
    std::uint64_t sum = 0;
    std::uint64_t wrong = 0;

    explicit Run(const telering::Reader& reader) : instance(reader.instance()), start(reader.start()) {}

    void take(const telering::Event& event) {
        ++counts.events;
        // Another run's event, one that came already, or a transfer that can't have been.
        wrong += event.instance != instance || event.seq < next;
        next = event.seq + 1;
        if (event.name.view() != "agent_tx_bytes") return;
        wrong += event.value <= bytes;
        bytes = event.value;
        sum += event.value;
    }

    void print() const {
        const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
        std::printf("{\"instance\":%llu,\"start\":%llu,\"events\":%llu,\"lost\":%llu,\"unverified\":%llu,\"interrupted\":%llu,\"sum\":%llu,\"wrong\":%llu}\n",
                    number(instance), number(start), number(counts.events), number(counts.lost), number(counts.unverified),
                    number(counts.interrupted), number(sum), number(wrong));
        std::fflush(stdout);
    }
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "usage: runs PATH\n";
        return 2;
    }
    try {
        telering::Follower follower(arguments[1]);
        Run run(follower.reader());
        for (bool closed = false;;) {
            const auto item = follower.next();
            if (!item) {
                if (closed) break;
                // What was closed before this look is read to its end after it.
                closed = follower.reader().info().state == 2 && !follower.reader().replaced();
                if (!closed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                continue;
            }
            switch (item->kind) {
                case telering::ItemKind::event: run.take(item->event); break;
                case telering::ItemKind::lost: run.counts.lost += item->count; break;
                case telering::ItemKind::unverified: run.counts.unverified += item->count; break;
                case telering::ItemKind::interrupted: run.counts.interrupted += item->count; break;
                case telering::ItemKind::reset:
                    run.print();
                    run = Run(follower.reader());
                    closed = false;
            }
        }
        run.print();
        return 0;
    } catch (const telering::Error& error) {
        std::cerr << "runs: " << error.what() << '\n';
        return 1;
    }
}
