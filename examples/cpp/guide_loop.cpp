// The telemetry guide's C++ loop, as it is written for NIXL's headers: only the include lines are others.
//
//     guide_loop PATH        prints each event as it comes

#include <chrono>
#include <iostream>
#include <thread>

// For NIXL these are "common/cyclic_buffer.h" and "telemetry_event.h".
#include "telering_nixl_compat.hpp"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: guide_loop PATH\n";
        return 2;
    }
    try {
        sharedRingBuffer<nixlTelemetryEvent> buffer(argv[1], false, TELEMETRY_VERSION);
        std::cout << "Buffer capacity: " << buffer.capacity() << " events" << std::endl;

        // Read events in a loop
        nixlTelemetryEvent event;
        while (true) {
            if (buffer.pop(event)) {
                std::cout << "[" << event.timestampUs_ << "] " << static_cast<int>(event.category_) << " " << event.eventName_ << ": "
                          << event.value_ << std::endl;
            } else {
                std::this_thread::sleep_for(std::chrono::milliseconds(500));
            }
        }
    } catch (const std::exception& error) {
        std::cerr << "guide_loop: " << error.what() << '\n';
        return 1;
    }
}
