// Words and bytes that FORMAT.md prints.

#include <random>
#include <sstream>

#include "files.hpp"
#include "harness.hpp"

using telering::EventName;
using test::Bytes;

TEST_CASE("the check words of the format's table come out") {
    EQUAL(telering::check_word(0, test::record_of("", 0, 0, 0)), 0x00000001U);
    EQUAL(telering::check_word(1, test::record_of("", 0, 0, 0)), 0x6a09e667U);
    EQUAL(telering::check_word(5000000000, test::record_of("agent_tx_bytes", 1048576, 1, 1736951425123456)), 0xd887bcd2U);
}

// The hex lines of section 21.
static Bytes golden() {
    std::istringstream text([] {
        const Bytes bytes = test::bytes_of(std::string(TELERING_PROJECT) + "/FORMAT.md");
        const std::string all(bytes.begin(), bytes.end());
        const std::size_t begin = all.find("```text\n0000  ");
        return all.substr(begin + 8, all.find("```\n", begin + 8) - begin - 8);
    }());
    Bytes bytes(448);
    for (std::string line; std::getline(text, line);) {
        std::istringstream words(line);
        std::size_t at = 0;
        words >> std::hex >> at;
        for (unsigned byte = 0; words >> byte; ++at) bytes.at(at) = static_cast<unsigned char>(byte);
    }
    return bytes;
}

TEST_CASE("the golden bytes read as the format explains them") {
    const test::Directory dir;
    telering::Reader reader(dir.put("golden", golden()));
    const auto first = reader.next();
    const auto second = reader.next();
    HOLDS(first && second && !reader.next());
    EQUAL(first->event.seq, 1U);
    EQUAL(first->event.name.view(), "agent_tx_bytes");
    EQUAL(first->event.value, 1048576U);
    EQUAL(second->event.timestamp_us.value_or(0), 1736951425000003U);
    EQUAL(second->event.name.view(), "NIXL_ERR_CANCELED");
    EQUAL(second->event.id.value_or(0), 18U);
    EQUAL(second->event.category.value_or(0), 4);
    EQUAL(reader.start(), 1U);
    EQUAL(reader.counts().total(), 2U);
    const telering::Info info = reader.info();
    EQUAL(info.instance, 0x0123456789abcdefU);
    EQUAL(info.liveness, telering::Liveness::closed);
    EQUAL(info.heartbeat, 1736951425000010U);
    EQUAL(info.committed, 3U);
    HOLDS(info.losses && info.losses->recorded == 4 && info.losses->exported == 3 && info.losses->staging == 1);
    HOLDS(!info.identity && !info.metrics && !info.clock && !info.notices);
}

TEST_CASE("eight records at a time are judged as each by itself") {
    std::mt19937_64 random(4);
    for (int round = 0; round < 2000; ++round) {
        // Around the places where the upper half of a position changes.
        const std::uint64_t first = round % 3 == 0 ? 0xfffffff0 + random() % 32 : random();
        std::vector<telering::Record> records(random() % 40);
        std::vector<telering::Gap> expected;
        for (std::size_t place = 0; place < records.size(); ++place) {
            telering::Record& record = records[place];
            unsigned char noise[sizeof record];
            for (unsigned char& byte : noise) byte = static_cast<unsigned char>(random() % 8 == 0 ? random() : 0);
            std::memcpy(&record, noise, sizeof record);
            if (random() % 16 == 0) record.category = -1;
            // In some rounds all are of positions that differ in the upper half alone.
            record.check = telering::check_word(round % 5 == 0 ? (first + place) & 0xffffffff : first + place, record);
            if (random() % 16 == 0) record.check = 0;
            if (random() % 16 == 0) record.value ^= 1ULL << random() % 64;
            if (record.check != telering::check_word(first + place, record)) expected.push_back({place, telering::GapKind::unverified});
            else if (record.category == -1) expected.push_back({place, telering::GapKind::interrupted});
        }
        std::vector<telering::Gap> gaps;
        telering::detail::judge_all(first, records.data(), records.size(), true, gaps);
        HOLDS(std::equal(gaps.begin(), gaps.end(), expected.begin(), expected.end(),
                         [](const telering::Gap& a, const telering::Gap& b) { return a.place == b.place && a.kind == b.kind; }));
    }
}

TEST_CASE("names reach nobody with control characters or half a letter") {
    EQUAL(EventName::of_file("\x1b[31mred\n").view(), "_[31mred_");
    EQUAL(EventName::of_file("caf\xc3\xa9").view(), "caf\xc3\xa9");
    EQUAL(EventName::of_file("ab\xc2\x85").view(), "ab_");
    EQUAL(EventName::of_file("ab\xff" "cd").view(), "ab");
    EQUAL(EventName::of_file("ab\xe2\x82").view(), "ab");
    EQUAL(EventName::of_file("").view(), "_");
    EQUAL(EventName::of_file("\xed\xa0\x80").view(), "_");
    EQUAL(EventName::of_file("12345678901234567890123456789012").view(), "12345678901234567890123456789012");
    EQUAL(EventName::of_type(21).view(), "unknown(21)");
    EQUAL(EventName::of_type(0xffffffff).view(), "unknown(4294967295)");
    EQUAL(telering::detail::shown("/tmp/a\x1b[2Jb\n\xff"), "/tmp/a\\x1b[2Jb\\x0a\\xff");
}

TEST_CASE("texts of the identity keep one mark for each piece that is no UTF-8") {
    const auto text = [](std::string_view raw) {
        return telering::detail::text_of(reinterpret_cast<const unsigned char*>(raw.data()), raw.size());
    };
    EQUAL(text("a\xf0\x9f\x92z"), "a\xef\xbf\xbdz");
    EQUAL(text("\xff\xfe"), "\xef\xbf\xbd\xef\xbf\xbd");
    EQUAL(text("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("numbers above 2^40 and 2^63 come back as they are") {
    const test::Directory dir;
    test::Image image(64);
    image.place(0, test::record_of("large", (1ULL << 40) + 7, 7, (1ULL << 63) + 1));
    image.place(1, test::record_of("larger", (1ULL << 63) + 1, -5));
    image.positions(2, 2);
    telering::Reader reader(dir.put("large", image.bytes));
    const auto first = reader.next();
    const auto second = reader.next();
    EQUAL(first->event.value, (1ULL << 40) + 7);
    EQUAL(first->event.timestamp_us.value_or(0), (1ULL << 63) + 1);
    EQUAL(second->event.value, (1ULL << 63) + 1);
    EQUAL(second->event.category.value_or(0), -5);
    EQUAL(telering::category_name(-5), "-5");
}
