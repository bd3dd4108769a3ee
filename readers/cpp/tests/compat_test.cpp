// NIXL's names, and files that were changed by chance.

#include <chrono>
#include <cstdlib>
#include <random>

#include "files.hpp"
#include "harness.hpp"
#include "telering_nixl_compat.hpp"

using test::Bytes;
using test::Directory;
using test::Image;

// A loop as a user of NIXL's headers has it.
static std::string popped(sharedRingBuffer<nixlTelemetryEvent>& buffer) {
    std::string seen;
    nixlTelemetryEvent event;
    while (buffer.pop(event)) seen += std::string(event.eventName_) + "=" + std::to_string(event.value_) + " ";
    return seen;
}

TEST_CASE("NIXL's names read an image with a cursor of their own and change nothing") {
    const Directory dir;
    Image image(64);
    image.place(0, test::record_of("agent_tx_bytes", 1048576, 1, 1736951425123456));
    image.place(1, test::record_of("12345678901234567890123456789\xe2\x82\xac", 7, 5, 5));
    image.positions(2, 2);
    const std::string path = dir.put("agent", image.bytes);
    sharedRingBuffer<nixlTelemetryEvent> buffer(path, false, TELEMETRY_VERSION);
    EQUAL(buffer.capacity(), 64U);
    nixlTelemetryEvent event;
    HOLDS(buffer.pop(event));
    EQUAL(event.timestampUs_, 1736951425123456U);
    HOLDS(event.category_ == nixl_telemetry_category_t::NIXL_TELEMETRY_TRANSFER);
    EQUAL(std::string(event.eventName_), "agent_tx_bytes");
    EQUAL(event.value_, 1048576U);
    // A name of 32 bytes is cut at a whole character, for its NUL.
    EQUAL(popped(buffer), "12345678901234567890123456789=7 ");
    sharedRingBuffer<nixlTelemetryEvent> another(path, false, TELEMETRY_VERSION);
    HOLDS(another.pop(event));
    HOLDS(test::bytes_of(path) == image.bytes);
}

TEST_CASE("NIXL's names consume a file of NIXL's own") {
    const Directory dir;
    const Bytes sample = test::bytes_of(std::string(TELERING_PROJECT) + "/std-shell/tests/data/nixl/0.10.1/initiator");
    const std::string path = dir.put("ring", sample);
    nixlTelemetryEvent event;
    {
        sharedRingBuffer<nixlTelemetryEvent> buffer(path, false, TELEMETRY_VERSION);
        HOLDS(buffer.pop(event));
        EQUAL(telering::detail::u64_at(&test::bytes_of(path).at(8)), 1U);
        EQUAL(event.timestampUs_, 1796039634276977U);
    }
    sharedRingBuffer<nixlTelemetryEvent> buffer(path, false, TELEMETRY_VERSION);
    int more = 0;
    while (buffer.pop(event)) ++more;
    EQUAL(more, 30);
    EQUAL(telering::detail::u64_at(&test::bytes_of(path).at(8)), 31U);
}

TEST_CASE("a loop with NIXL's names lives through truncation and goes on in the new file") {
    const Directory dir;
    const std::string path = dir.put("agent", Image(8).filled(2).bytes);
    sharedRingBuffer<nixlTelemetryEvent> buffer(path, false, TELEMETRY_VERSION);
    EQUAL(popped(buffer), "counted=0 counted=1 ");
    EQUAL(::truncate(path.c_str(), 20), 0);
    EQUAL(popped(buffer), "");
    HOLDS(buffer.trouble().find("truncated") != std::string::npos);
    dir.put("agent", Image(8, {}, 78).filled(1).bytes);
    EQUAL(popped(buffer), "counted=0 ");
    EQUAL(buffer.trouble(), "");
}

TEST_CASE("whatever a file holds, a reader answers or says what is wrong") {
    const Directory dir;
    const std::string data = std::string(TELERING_PROJECT) + "/std-shell/tests/data/nixl/";
    Image image(16, {{1, Bytes(576, 'a')}, {2, Bytes(64, 1)}, {4, Bytes(3136, 2)}, {5, Bytes(9408, 3)}, {6, Bytes(64, 4)}});
    image.filled(20);
    test::put64(image.bytes, image.at_extension(80), 2);
    const Bytes seeds[] = {image.bytes, Image(64).filled(64).bytes, test::bytes_of(data + "0.10.1/initiator"),
                           test::bytes_of(data + "1.1.0/initiator"), test::bytes_of(data + "1.5.1/initiator")};
    const char* seconds = std::getenv("TELERING_MUTATION_SECONDS");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds == nullptr ? 1 : std::atoi(seconds));
    std::mt19937_64 random(12);
    std::uint64_t opened = 0;
    std::uint64_t files = 0;
    for (; std::chrono::steady_clock::now() < end; ++files) {
        Bytes bytes = seeds[random() % 5];
        const bool is_image = bytes.size() != 40 + 56 * 64 && files % 2 == 0;
        for (std::uint64_t change = random() % 4 + 1; change > 0; --change) {
            // Half of the changes hit the words that everything hangs on.
            const std::size_t at = random() % 2 == 0 ? random() % bytes.size() : is_image ? (image.at_extension(0) + random() % 384) % bytes.size() : random() % 40;
            const std::uint64_t kinds[] = {random(), 0, ~0ULL, 1ULL << random() % 64, random() % 300};
            const std::uint64_t value = kinds[random() % 5];
            const std::size_t size = std::min<std::size_t>(1ULL << random() % 4, bytes.size() - at);
            test::put_number(bytes, at, value, size);
        }
        if (random() % 16 == 0) bytes.resize(random() % (bytes.size() + 100));
        const std::string path = dir.put("file", bytes);
        try {
            telering::Reader reader(path);
            ++opened;
            std::uint64_t items = 0;
            while (reader.next()) ++items;
            HOLDS(items <= 4 * reader.capacity() + 4);
            reader.info();
            telering::Reader(path).transfers();
        } catch (const telering::Error& error) {
            HOLDS(*error.what() != '\0');
        }
    }
    HOLDS(opened > files / 10);
}
