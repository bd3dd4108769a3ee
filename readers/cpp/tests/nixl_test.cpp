// NIXL's own files: samples of real releases, and files made here.

#include <sstream>

#include "files.hpp"
#include "harness.hpp"

using telering::Options;
using telering::Reader;
using test::all_of;
using test::Bytes;
using test::Directory;

static const std::string samples = std::string(TELERING_PROJECT) + "/std-shell/tests/data/nixl/";

// The reader's events in the form of the samples' expected.jsonl.
static std::string lines_of(Reader& reader) {
    std::ostringstream out;
    while (const auto item = reader.next()) {
        if (item->kind != telering::ItemKind::event) continue;
        const telering::Event& event = item->event;
        out << "{\"timestamp_us\": " << (event.timestamp_us ? std::to_string(*event.timestamp_us) : "null") << ", \"category\": "
            << (event.category ? "\"" + telering::category_name(*event.category) + "\"" : "null") << ", \"event\": \"" << event.name.view()
            << "\", \"value\": " << event.value << "}\n";
    }
    return out.str();
}

TEST_CASE("samples of five releases read as expected, and stay as they are") {
    for (const char* release : {"0.10.1", "1.1.0", "1.2.0", "1.3.2", "1.5.1"}) {
        const std::string path = samples + release + "/initiator";
        const Bytes before = test::bytes_of(path);
        const Bytes expected = test::bytes_of(samples + release + "/expected.jsonl");
        Reader reader(path);
        EQUAL(lines_of(reader), std::string(expected.begin(), expected.end()));
        EQUAL(reader.counts().total(), 31U);
        HOLDS(test::bytes_of(path) == before);
    }
}

TEST_CASE("transfers of NIXL come from its first layout alone") {
    Reader first(samples + "0.10.1/initiator");
    const auto transfers = first.transfers();
    EQUAL(transfers.size(), 7U);
    EQUAL(transfers.at(0).bytes, 1024U);
    EQUAL(transfers.at(0).start_us, 1796039634298251U - 15509);
    EQUAL(transfers.at(0).post_us, 1092U);
    EQUAL(first.incomplete_transfers(), 0U);
    for (const char* release : {"1.1.0", "1.2.0", "1.3.2", "1.5.1"}) {
        Reader later(samples + release + "/initiator");
        std::string message;
        EQUAL(test::kind_thrown([&] { later.transfers(); }, &message), "no_transfers");
        HOLDS(message.find("has no timestamps") != std::string::npos);
    }
}

static Bytes typed_file(std::uint32_t version, std::uint64_t capacity, std::uint64_t count) {
    Bytes bytes = test::nixl_file(version, capacity, 16, 0, count);
    for (std::uint64_t at = 0; at < count; ++at) {
        const std::size_t place = 40 + 16 * static_cast<std::size_t>(at);
        test::put32(bytes, place, 21 + at);
        test::put32(bytes, place + 4, 0xda55ff7f);  // padding holds anything
        test::put64(bytes, place + 8, 100 + at);
    }
    return bytes;
}

TEST_CASE("an event type that nobody knows is shown with its number") {
    const Directory dir;
    Bytes bytes = typed_file(4, 8, 3);
    test::put32(bytes, 40 + 16, 255);
    test::put32(bytes, 40 + 32, 0xffffffff);
    Reader reader(dir.put("ring", bytes));
    std::string names;
    while (const auto item = reader.next()) {
        names += item->event.name.str() + "=" + std::to_string(item->event.value) + " ";
        HOLDS(!item->event.known_category());
    }
    EQUAL(names, "unknown(21)=100 unknown(255)=101 unknown(4294967295)=102 ");
}

TEST_CASE("files smaller than an image's header open by their version") {
    const Directory dir;
    for (const std::uint32_t version : {3U, 4U}) {
        Reader reader(dir.put("ring", typed_file(version, 2, 1)));
        EQUAL(all_of(reader), "e100");
    }
    std::string message;
    EQUAL(test::kind_thrown([&] { Reader reader(dir.put("ring", typed_file(5, 2, 1))); }, &message), "unsupported_version");
    HOLDS(message.find("unsupported version 5 (known 1 to 4)") != std::string::npos);
}

TEST_CASE("headers that lie are refused by their kind") {
    const Directory dir;
    const auto kind = [&](const Bytes& bytes) { return test::kind_thrown([&] { Reader reader(dir.put("ring", bytes)); }); };
    const auto with = [&](std::size_t at, std::uint64_t value, std::size_t size) {
        Bytes bytes = typed_file(4, 8, 3);
        test::put_number(bytes, at, value, size);
        return kind(bytes);
    };
    EQUAL(kind({}), "not_telemetry");
    EQUAL(kind(Bytes(39)), "not_telemetry");
    EQUAL(kind(Bytes(40)), "not_ready");
    EQUAL(kind(Bytes(4096, 'x')), "not_telemetry");
    EQUAL(with(16, 0, 4), "not_ready");
    EQUAL(with(16, 7, 4), "unsupported_version");
    EQUAL(with(16, 3, 4), "nothing");
    EQUAL(with(16, 2, 4), "nothing");
    EQUAL(with(16, 1, 4), "damaged");
    EQUAL(with(0, 8, 8), "damaged");
    EQUAL(with(8, 1ULL << 63, 8), "damaged");
    EQUAL(with(32, 8, 8), "damaged");
    for (const std::uint64_t capacity : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 40, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
        EQUAL(with(24, capacity, 8), "damaged");
        Bytes bytes = typed_file(4, 8, 3);
        test::put64(bytes, 24, capacity);
        test::put64(bytes, 32, capacity - 1);
        EQUAL(kind(bytes), "damaged");
    }
    Bytes longer = typed_file(4, 8, 3);
    longer.push_back(0);
    EQUAL(kind(longer), "damaged");
}

TEST_CASE("a file with its bytes in the other order is refused with that reason") {
    const Directory dir;
    Bytes bytes = typed_file(4, 8, 3);
    std::reverse(bytes.begin() + 16, bytes.begin() + 20);
    for (const std::ptrdiff_t at : {0, 8, 24, 32}) std::reverse(bytes.begin() + at, bytes.begin() + at + 8);
    std::string message;
    EQUAL(test::kind_thrown([&] { Reader reader(dir.put("ring", bytes)); }, &message), "wrong_byte_order");
    HOLDS(message.find("wrong byte order") != std::string::npos);
}

static std::uint64_t read_pos(const std::string& path) { return telering::detail::u64_at(&test::bytes_of(path).at(8)); }

TEST_CASE("peeking changes nothing, and consuming moves the read index behind what was handed over") {
    const Directory dir;
    const std::string path = dir.put("ring", typed_file(4, 8, 5));
    const Bytes before = test::bytes_of(path);
    {
        Reader peeking(path);
        EQUAL(all_of(peeking), "e100 e101 e102 e103 e104");
    }
    HOLDS(test::bytes_of(path) == before);
    Options options;
    options.consume = true;
    {
        Reader consuming(path, options);
        consuming.next();
        consuming.next();
        EQUAL(read_pos(path), 0U);
        consuming.commit();
        EQUAL(read_pos(path), 2U);
        consuming.next();
    }
    EQUAL(read_pos(path), 3U);
    Reader rest(path, options);
    EQUAL(rest.read_batch().size(), 2U);
    EQUAL(read_pos(path), 3U);
    HOLDS(rest.read_batch().empty());
    EQUAL(read_pos(path), 5U);
    EQUAL(test::kind_thrown([&] { Reader image(dir.put("agent", test::Image(64).bytes), options); }), "nothing_to_consume");
}

TEST_CASE("an agent that starts again in the same file is a reset") {
    const Directory dir;
    const std::string path = dir.put("ring", typed_file(4, 8, 5));
    const auto overwrite = [&](const Bytes& bytes) {
        std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    Reader reader(path);
    EQUAL(all_of(reader), "e100 e101 e102 e103 e104");
    overwrite(typed_file(4, 8, 2));
    EQUAL(all_of(reader), "reset e100 e101");
    overwrite(typed_file(4, 16, 3));
    EQUAL(all_of(reader), "reset e100 e101 e102");
    overwrite(Bytes(16));
    EQUAL(test::kind_thrown([&] { reader.next(); }), "resized");
}

TEST_CASE("what another consumer took is lost, as far as that can be known") {
    const Directory dir;
    const std::string path = dir.put("ring", typed_file(4, 8, 5));
    Reader reader(path);
    EQUAL(reader.next()->event.value, 100U);
    Reader other(path);
    Bytes bytes = typed_file(4, 8, 5);
    test::put64(bytes, 8, 3);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    EQUAL(all_of(other), "lost3 e103 e104");
}
