// Images that stand still: what a reader makes of them.

#include "files.hpp"
#include "harness.hpp"

using telering::Reader;
using test::all_of;
using test::Bytes;
using test::Directory;
using test::Image;

TEST_CASE("places that were never written are no events") {
    const Directory dir;
    Reader reader(dir.put("agent", Image(4096).filled(3).bytes));
    EQUAL(all_of(reader), "e0 e1 e2");
    EQUAL(reader.counts().total(), 3U);
}

TEST_CASE("a wrapped ring begins at its oldest record") {
    const Directory dir;
    Reader reader(dir.put("agent", Image(4).filled(7).bytes));
    EQUAL(all_of(reader), "e3 e4 e5 e6");
    EQUAL(reader.start(), 3U);
    EQUAL(reader.lost(), 0U);
}

TEST_CASE("from the newest there is nothing until something comes") {
    const Directory dir;
    telering::Options options;
    options.from = telering::From::newest;
    Reader reader(dir.put("agent", Image(4).filled(7).bytes), options);
    EQUAL(all_of(reader), "");
    EQUAL(reader.start(), 7U);
}

TEST_CASE("a reader that was lapped says once how much it lost") {
    for (const std::uint64_t more : {std::uint64_t{1}, std::uint64_t{64}, std::uint64_t{1000000}}) {
        const Directory dir;
        const std::string path = dir / "agent";
        test::Producer producer(path, Image(64), 64);
        Reader reader(path);
        for (std::uint64_t position = 0; position < 64 + more; ++position) producer.push({test::record_of("x", position)});
        const auto lost = reader.next();
        HOLDS(lost && lost->kind == telering::ItemKind::lost);
        EQUAL(lost->count, more);
        for (std::uint64_t position = more; position < 64 + more; ++position) {
            const auto item = reader.next();
            HOLDS(item && item->kind == telering::ItemKind::event && item->event.seq == position);
        }
        HOLDS(!reader.next());
    }
}

TEST_CASE("records of a stranger are unverified and fillers interrupted") {
    const Directory dir;
    Image image = Image(8).filled(8);
    image.place(2, test::record_of("", 0, -1, 0));
    image.place(3, test::record_of("", 0, -1, 0));
    image.bytes[40 + 56 * 5 + 48] ^= 1;
    const std::string path = dir.put("agent", image.bytes);
    Reader reader(path);
    EQUAL(all_of(reader), "e0 e1 interrupted2 e4 unverified1 e6 e7");
    EQUAL(reader.counts().total(), 8U);
    telering::Options options;
    options.verify = false;
    Reader trusting(path, options);
    EQUAL(all_of(trusting), "e0 e1 interrupted2 e4 e4 e6 e7");
}

TEST_CASE("each event has its own name and type, whatever names come before it") {
    const Directory dir;
    const std::uint64_t count = 4096;
    // More names than are remembered, in an order that never repeats for long; some twice, some unknown, some of 32 bytes.
    const auto name_at = [](std::uint64_t position) {
        const std::uint64_t number = position * position * 2654435761U >> 7;
        if (position % 64 < 32) return std::string(telering::event_types[position % 4].record_name);
        if (number % 3 == 0) return std::string(telering::event_types[number % telering::event_types.size()].record_name);
        std::string name = "name" + std::to_string(number % 97);
        name.resize(number % 2 == 0 ? 32 : name.size(), 'x');
        return name;
    };
    Image image = Image(count).filled(count);
    for (std::uint64_t position = 0; position < count; ++position) image.place(position, test::record_of(name_at(position), position));
    Reader reader(dir.put("agent", image.bytes));
    for (std::uint64_t position = 0; position < count; ++position) {
        const auto item = reader.next();
        HOLDS(item && item->kind == telering::ItemKind::event);
        const std::string name = name_at(position);
        const telering::EventType* type = telering::event_type(name);
        EQUAL(item->event.name.str(), name);
        EQUAL(item->event.id.value_or(99), type == nullptr ? 99 : type->id);
    }
    HOLDS(!reader.next());
}

TEST_CASE("events that were copied stay right and counted once, when the ring goes around before they are handed over") {
    const Directory dir;
    const std::string path = dir / "agent";
    test::Producer producer(path, Image(64), 64);
    Reader reader(path);
    for (std::uint64_t position = 0; position < 64; ++position) producer.push({test::record_of("x", position)});
    EQUAL(reader.next()->event.value, 0U);
    // The reader holds 1 to 63. Of what follows, 64 to 135 are overwritten before it looks again.
    for (std::uint64_t position = 64; position < 200; ++position) producer.push({test::record_of("x", position)});
    EQUAL(reader.counts().total(), 1U);
    for (std::uint64_t position = 1; position < 64; ++position) {
        const auto item = reader.next();
        HOLDS(item && item->kind == telering::ItemKind::event && item->event.seq == position && item->event.value == position);
        EQUAL(reader.lost(), 0U);
    }
    const auto lost = reader.next();
    HOLDS(lost && lost->kind == telering::ItemKind::lost);
    EQUAL(lost->count, 72U);
    EQUAL(all_of(reader).substr(0, 4), "e136");
    EQUAL(reader.lost(), 72U);
    EQUAL(reader.counts().total(), 200U);
}

TEST_CASE("items and batches may be mixed") {
    const Directory dir;
    Image image = Image(8).filled(8);
    image.bytes[40 + 56 * 5 + 48] ^= 1;
    Reader reader(dir.put("agent", image.bytes));
    EQUAL(reader.next()->event.value, 0U);
    EQUAL(reader.next()->event.value, 1U);
    std::string seen;
    reader.read_batch().for_each_event([&](std::uint64_t seq, const telering::Record& record) {
        seen += std::to_string(seq) + "=" + std::to_string(record.value) + " ";
    });
    EQUAL(seen, "2=2 3=3 4=4 6=6 7=7 ");
    EQUAL(reader.counts().total(), 8U);
    HOLDS(reader.read_batch().empty());
}

TEST_CASE("a copy gives the records of earlier laps that are still there") {
    const Directory dir;
    // Control words of position 10. Slots 2 and 3 still hold the lap before, slot 0 the one before that.
    Image image = Image(4).filled(10);
    image.place(2, test::record_of("x", 2));
    image.place(3, test::record_of("x", 3));
    image.place(0, test::record_of("x", 0));
    image.place(9, test::record_of("x", 9));
    Reader reader(dir.put("copy", image.bytes));
    EQUAL(all_of(reader), "e0 lost1 e2 e3 lost2 unverified3 e9");
}

TEST_CASE("a copy whose intent is older than committed is read by its check words") {
    const Directory dir;
    Image image = Image(8).filled(8);
    image.positions(8, 5);
    Reader reader(dir.put("copy", image.bytes));
    EQUAL(all_of(reader), "e0 e1 e2 e3 e4 e5 e6 e7");
    EQUAL(reader.info().intent, 8U);
}

TEST_CASE("what a dead producer only announced is gone and no event") {
    const Directory dir;
    Image image = Image(64).filled(70);
    image.positions(70, 72);
    Reader reader(dir.put("agent", image.bytes));
    EQUAL(all_of(reader).substr(0, 7), "e8 e9 e");
    EQUAL(reader.start(), 8U);
    EQUAL(reader.counts().total(), 62U);
}

TEST_CASE("positions that contradict each other are damage, and the file can still be looked at") {
    const Directory dir;
    Image image(64);
    image.positions(1, 40);
    Reader reader(dir.put("agent", image.bytes));
    EQUAL(test::kind_thrown([&] { reader.next(); }), "damaged");
    EQUAL(test::kind_thrown([&] { reader.next(); }), "damaged");
    HOLDS(reader.capacity() == 64);
}

TEST_CASE("another instance in the same file is a reset, and a file being formatted gives nothing") {
    const Directory dir;
    const std::string path = dir.put("agent", Image(8).filled(3).bytes);
    const auto overwrite = [&](const Bytes& bytes) {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    Reader reader(path);
    EQUAL(all_of(reader), "e0 e1 e2");
    Image next = Image(8, {}, 78).filled(2);
    Bytes unfinished = next.bytes;
    test::put64(unfinished, next.at_extension(0), 0);
    overwrite(unfinished);
    EQUAL(all_of(reader), "");
    overwrite(next.bytes);
    EQUAL(all_of(reader), "reset e0 e1");
    // The same instance, begun anew: intent went back.
    overwrite(Image(8, {}, 78).filled(1).bytes);
    EQUAL(all_of(reader), "reset e0");
    // Another one that is farther on than the reader was.
    overwrite(Image(8, {}, 79).filled(3).bytes);
    EQUAL(all_of(reader), "reset e0 e1 e2");
    EQUAL(reader.counts().events, 9U);
}

TEST_CASE("a name with a NUL in it is not that of the file whose name ends there") {
    const Directory dir;
    const std::string path = dir.put("agent", Image(4).filled(3).bytes);
    std::string message;
    EQUAL(test::kind_thrown([&] { Reader(path + '\0' + "more"); }, &message), "not_telemetry");
    HOLDS(message.find("agent\\x00more") != std::string::npos);
}

TEST_CASE("what is no readable image is refused by its kind and left alone") {
    struct Damage {
        const char* kind;
        std::size_t at;
        std::uint64_t value;
        std::size_t size;
    };
    const Image good = Image(64).filled(10);
    const std::size_t e = good.at_extension(0);
    const std::uint64_t swapped_magic = telering::detail::swapped(telering::layout::magic);
    const Damage damages[] = {
        {"not_ready", e, 0, 8},           {"wrong_byte_order", e, swapped_magic, 8},
        {"wrong_byte_order", e + 12, 0x04030201, 4}, {"damaged", e + 12, 7, 4},
        {"unsupported_version", e + 8, 2, 2},        {"damaged", e + 16, 1 << 20, 8},
        {"damaged", e + 24, 32, 8},       {"damaged", e + 32, 48, 4},
        {"damaged", e + 36, 2, 4},        {"damaged", e + 40, 5, 4},
        {"damaged", e + 44, 65, 2},       {"damaged", e + 44, 30, 2},
        {"damaged", e + 48, 0, 8},        {"damaged", e, 0x1111, 8},
        {"damaged", 24, 1ULL << 40, 8},   {"damaged", 24, 0, 8},
        {"damaged", 24, 3, 8},            {"damaged", 24, 1ULL << 63, 8},
        {"unsupported_version", 16, 5, 4},
    };
    for (const Damage& damage : damages) {
        const Directory dir;
        Bytes bytes = good.bytes;
        test::put_number(bytes, damage.at, damage.value, damage.size);
        const std::string path = dir.put("agent", bytes);
        std::string message;
        const std::string kind = test::kind_thrown([&] { Reader reader(path); }, &message);
        EQUAL(kind, damage.kind);
        HOLDS(message.find(path) == 0);
        if (kind != damage.kind) std::cout << "    at " << damage.at << ": " << message << std::endl;
        HOLDS(test::bytes_of(path) == bytes);
    }
}

TEST_CASE("both versions are named when one is not supported") {
    const Directory dir;
    Image image = Image(64).filled(10);
    test::put_number(image.bytes, image.at_extension(8), 2, 2);
    std::string message;
    test::kind_thrown([&] { Reader reader(dir.put("agent", image.bytes)); }, &message);
    HOLDS(message.find("unsupported version 2.0 of the image (known 1.x)") != std::string::npos);
}

TEST_CASE("a higher minor version, unknown parts and a longer part are read past") {
    const Directory dir;
    Bytes losses(72);
    test::put64(losses, 0, 5);
    Image image(8, {{99, Bytes(64)}, {2, Bytes(64, 0xff), 2}, {2, losses}, {6, Bytes(32)}});
    image.filled(2);
    test::put_number(image.bytes, image.at_extension(10), 9, 2);
    Reader reader(dir.put("agent", image.bytes));
    EQUAL(all_of(reader), "e0 e1");
    const telering::Info info = reader.info();
    EQUAL(info.minor_version, 9);
    EQUAL(info.parts.size(), 4U);
    HOLDS(info.losses && info.losses->recorded == 5);
    HOLDS(!info.clock);
}

static Bytes metrics_part(std::uint64_t first, std::uint64_t second) {
    Bytes part(320 + 2 * 64);
    test::put32(part, 0, 1);   // one entry
    test::put32(part, 8, 2);   // two bounds
    test::put64(part, 16, 64);
    test::put64(part, 32, 10);
    test::put64(part, 40, 20);
    for (std::uint64_t copy = 0; copy < 2; ++copy) {
        const std::size_t at = 320 + 64 * static_cast<std::size_t>(copy);
        test::put64(part, at, copy == 0 ? first : second);
        test::put64(part, at + 16, copy == 0 ? first : second);  // the sum of the entry
        std::uint32_t h = 0x6a09e667;
        for (std::size_t word = 0; word < 56; word += 4) h = ((h << 5 | h >> 27) ^ telering::detail::u32_at(&part[at + word])) * 0x9e3779b1;
        test::put64(part, at + 56, h);
    }
    return part;
}

TEST_CASE("of the metrics the whole and newest copy counts") {
    const Directory dir;
    const auto sum = [&](std::uint64_t generation, const Bytes& part) -> std::uint64_t {
        Image image(8, {{4, part}});
        test::put64(image.bytes, image.at_extension(80), generation);
        const auto metrics = Reader(dir.put("agent", image.bytes)).metrics();
        return metrics && metrics->find(0) != nullptr ? metrics->find(0)->sum : 999;
    };
    EQUAL(sum(0, metrics_part(6, 7)), 999U);   // none published
    EQUAL(sum(6, metrics_part(6, 7)), 6U);     // as the control line says
    EQUAL(sum(4, metrics_part(6, 7)), 7U);     // a copy: the newer one
    Bytes half = metrics_part(6, 7);
    half[320 + 64 + 16] ^= 1;
    EQUAL(sum(7, half), 6U);                   // half a copy is none
    half[320 + 16] ^= 1;
    EQUAL(sum(7, half), 999U);
    Bytes huge = metrics_part(6, 7);
    test::put32(huge, 0, 0xffffffff);
    EQUAL(sum(6, huge), 999U);
    test::put64(huge, 16, 0xfffffffffffffff8);
    EQUAL(sum(6, huge), 999U);
}

TEST_CASE("transfers are put together from their four events, and counted where one is missing") {
    const Directory dir;
    Image image(64);
    std::uint64_t position = 0;
    const auto put = [&](const char* name, std::uint64_t value, std::uint64_t time) {
        image.place(position++, test::record_of(name, value, 1, time));
    };
    put("agent_tx_requests_num", 1, 90);  // its beginning was overwritten
    put("agent_xfer_post_time", 3, 100);
    put("agent_xfer_time", 40, 100);
    put("agent_tx_bytes", 4096, 100);
    put("agent_tx_requests_num", 1, 100);
    put("agent_memory_registered", 1, 100);
    put("agent_xfer_time", 50, 200);  // post time left out
    put("agent_rx_bytes", 8, 200);
    put("agent_rx_requests_num", 1, 200);
    put("agent_xfer_post_time", 1, 300);  // its time differs from the next
    put("agent_xfer_time", 400, 301);
    put("agent_rx_bytes", 8, 301);
    put("agent_rx_requests_num", 1, 301);
    put("agent_xfer_post_time", 1, 400);  // bytes written, a request to read
    put("agent_xfer_time", 1, 400);
    put("agent_tx_bytes", 8, 400);
    put("agent_rx_requests_num", 1, 400);
    put("agent_xfer_post_time", 1, 500);  // begun before the clock did; its last event is still to come
    put("agent_xfer_time", 501, 500);
    put("agent_rx_bytes", 16, 500);
    image.positions(position, position);
    Reader reader(dir.put("agent", image.bytes));
    const auto transfers = reader.transfers();
    EQUAL(transfers.size(), 1U);
    EQUAL(reader.incomplete_transfers(), 5U);
    const telering::Transfer& whole = transfers.at(0);
    EQUAL(whole.seq, 1U);
    EQUAL(whole.end_us, 100U);
    EQUAL(whole.start_us, 60U);
    EQUAL(whole.bytes, 4096U);
    EQUAL(whole.post_us, 3U);
    EQUAL(whole.xfer_us, 40U);
    EQUAL(to_string(whole.operation), std::string("write"));
    put("agent_rx_requests_num", 1, 500);
    image.positions(position, position);
    test::overwrite(dir / "agent", image.bytes);
    const auto more = reader.transfers();
    EQUAL(more.size(), 1U);
    EQUAL(more.at(0).start_us, 0U);
    EQUAL(to_string(more.at(0).operation), std::string("read"));
    HOLDS(reader.transfers().empty());
    EQUAL(reader.incomplete_transfers(), 5U);
}
