// Files that change while they are read.

#include <atomic>
#include <cstdlib>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>

#include "files.hpp"
#include "harness.hpp"

using telering::Follower;
using telering::ItemKind;
using telering::Reader;
using test::all_of;
using test::Bytes;
using test::Directory;
using test::Image;

// Records for each size of ring; the step sets more.
static std::uint64_t pushes() {
    const char* set = std::getenv("TELERING_PUSHES");
    return set == nullptr ? 200000 : std::strtoull(set, nullptr, 10);
}

static std::uint64_t value_of(std::uint64_t position) { return position * 0x9e3779b97f4a7c15U; }

TEST_CASE("beside a producer at full speed only what was recorded comes, in order, and the rest is counted") {
    for (const std::uint64_t capacity : {2U, 4U, 8U, 64U, 65536U}) {
        for (const bool verify : {true, false}) {
            const Directory dir;
            const std::string path = dir / "agent";
            test::Producer producer(path, Image(capacity), capacity);
            std::atomic<bool> done{false};
            const std::uint64_t most = telering::layout::max_batch(capacity);
            std::thread writer([&] {
                std::vector<telering::Record> batch;
                for (std::uint64_t position = 0; position < pushes(); position += batch.size()) {
                    batch.clear();
                    // Values that look like the neighbours' positions, and time and value that must agree.
                    for (std::uint64_t more = 0; more < 1 + position % most; ++more)
                        batch.push_back(test::record_of("counted", value_of(position + more), 7, position + more));
                    producer.push(batch);
                }
                done = true;
            });
            telering::Options options;
            options.verify = verify;
            Reader reader(path, options);
            std::uint64_t wrong = 0;
            std::uint64_t next = 0;
            for (bool last = false;;) {
                const bool finished = done;
                const telering::Batch& batch = reader.read_batch();
                batch.for_each_event([&](std::uint64_t seq, const telering::Record& record) {
                    wrong += seq < next || record.value != value_of(seq) || record.timestamp_us != seq || record.stored_name() != "counted";
                    next = seq + 1;
                });
                if (batch.reset) ++wrong;
                if (batch.empty() && last) break;
                last = finished;
            }
            writer.join();
            const telering::Counts& counts = reader.counts();
            EQUAL(wrong, 0U);
            EQUAL(counts.unverified, 0U);
            EQUAL(counts.total(), producer.position() - reader.start());
            HOLDS(counts.events > 0);
        }
    }
}

TEST_CASE("a file that is truncated or made longer is an error and no signal") {
    for (const off_t len : {off_t{0}, off_t{39}, off_t{100}, off_t{3648}, off_t{3700}, off_t{100000}}) {
        const Directory dir;
        const std::string path = dir.put("agent", Image(64).filled(64).bytes);
        Reader reader(path);
        reader.next();
        EQUAL(::truncate(path.c_str(), len), 0);
        while (true) {
            const std::string kind = test::kind_thrown([&] {
                if (!reader.next()) throw std::runtime_error("an end instead of an error");
            });
            if (kind == "nothing") continue;
            EQUAL(kind, "resized");
            break;
        }
        EQUAL(test::kind_thrown([&] { reader.info(); }), "resized");
    }
}

TEST_CASE("reading goes on while another thread truncates, replaces, unlinks and shrinks the file") {
    const Directory dir;
    const std::string path = dir.put("agent", Image(64).filled(64).bytes);
    Follower follower(path);
    std::atomic<bool> done{false};
    std::thread vandal([&] {
        for (int round = 0; round < 300; ++round) {
            if (::truncate(path.c_str(), round % 4000) != 0) break;
            dir.put("agent", Image(round % 2 == 0 ? 64 : 16, {}, static_cast<std::uint64_t>(round) + 1).filled(64).bytes);
            if (round % 3 == 0) std::filesystem::remove(path);
            dir.put("agent", test::nixl_file(4, 8, 16, 0, 5));
        }
        done = true;
    });
    std::uint64_t items = 0;
    while (!done) {
        try {
            while (follower.next()) ++items;
            follower.reader().info();
            // Opened anew, whatever it is at this moment.
            Reader(path).transfers();
        } catch (const telering::Error&) {
            // Broken at this moment; the next look is another.
        }
    }
    vandal.join();
    HOLDS(items > 0);
    dir.put("agent", Image(64, {}, 1000).filled(3).bytes);
    std::uint64_t last = 0;
    while (const auto item = follower.next())
        if (item->kind == ItemKind::event) last = item->event.instance;
    EQUAL(last, 1000U);
}

TEST_CASE("following moves to the file that takes the name, when the old one is read to its end") {
    const Directory dir;
    const std::string path = dir.put("agent", Image(8).filled(3).bytes);
    Follower follower(path);
    HOLDS(follower.next()->event.value == 0);
    dir.put("agent", Image(16, {}, 78).filled(2).bytes);
    std::string seen;
    while (const auto item = follower.next()) seen += item->kind == ItemKind::reset ? "reset " : std::to_string(item->event.value) + " ";
    EQUAL(seen, "1 2 reset 0 1 ");
    EQUAL(follower.reader().instance(), 78U);
    EQUAL(follower.counts().events, 5U);
    std::filesystem::remove(path);
    HOLDS(!follower.next());
    // A producer that was killed in the middle of a push, and starts again with another size.
    Image killed = Image(64, {}, 79).filled(70);
    killed.positions(70, 72);
    dir.put("agent", killed.bytes);
    seen.clear();
    while (const auto item = follower.next()) seen += item->kind == ItemKind::reset ? "reset " : item->kind == ItemKind::event ? "e" : "other ";
    EQUAL(seen, "reset " + std::string(62, 'e'));
}

TEST_CASE("a truncated file is waited for, and then an error") {
    const Directory dir;
    const std::string path = dir.put("agent", Image(8).filled(3).bytes);
    Follower patient(path);
    Follower hasty(path, {}, std::chrono::milliseconds(0));
    EQUAL(::truncate(path.c_str(), 100), 0);
    HOLDS(!patient.next());
    EQUAL(test::kind_thrown([&] { hasty.next(); }), "resized");
    dir.put("agent", Image(8, {}, 78).filled(1).bytes);
    HOLDS(patient.next()->kind == ItemKind::reset);
    HOLDS(hasty.next()->kind == ItemKind::reset);
}

TEST_CASE("links to other files, pipes and directories are refused without waiting") {
    const Directory dir;
    const Bytes secret = {'s', 'e', 'c', 'r', 'e', 't'};
    const std::string victim = dir.put("victim", secret);
    std::filesystem::create_symlink(victim, dir / "link");
    std::filesystem::create_directory(dir / "directory");
    EQUAL(::mkfifo((dir / "fifo").c_str(), 0600), 0);
    for (const char* name : {"link", "directory", "fifo"}) EQUAL(test::kind_thrown([&] { Reader reader(dir / name); }), "not_telemetry");
    EQUAL(test::kind_thrown([&] { Reader reader("/dev/zero"); }), "not_telemetry");
    EQUAL(test::kind_thrown([&] { Reader reader(dir / "absent"); }), "io");
    HOLDS(test::bytes_of(victim) == secret);
}

// Runs an action as another user, in a child; its status.
static int as_nobody(int (*action)(const std::string&), const std::string& path) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(77);
        ::_exit(action(path));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST_CASE("read permission is enough, and consuming without more says so") {
    if (::getuid() != 0) return;  // only root can become somebody else
    const Directory dir;
    std::filesystem::permissions(std::filesystem::path(dir / "x").parent_path(), std::filesystem::perms(0755));
    const std::string image = dir.put("agent", Image(8).filled(3).bytes);
    const std::string ring = dir.put("ring", test::nixl_file(4, 8, 16, 0, 5));
    std::filesystem::permissions(image, std::filesystem::perms(0444));
    std::filesystem::permissions(ring, std::filesystem::perms(0444));
    const auto reads = [](const std::string& path) {
        Reader reader(path);
        reader.info();
        return reader.read_batch().size() > 0 ? 0 : 1;
    };
    const auto consumes = [](const std::string& path) {
        telering::Options options;
        options.consume = true;
        return test::kind_thrown([&] { Reader reader(path, options); }) == "needs_write" ? 0 : 1;
    };
    EQUAL(as_nobody(reads, image), 0);
    EQUAL(as_nobody(reads, ring), 0);
    EQUAL(as_nobody(consumes, ring), 0);
}

TEST_CASE("a live producer is told from a dead one by its lock") {
    const Directory dir;
    const std::string path = dir / "agent";
    {
        test::Producer producer(path, Image(8), 8);
        EQUAL(Reader(path).info().liveness, telering::Liveness::alive);
    }
    EQUAL(Reader(path).info().liveness, telering::Liveness::dead);
    Image closed(8);
    closed.state(2);
    EQUAL(Reader(dir.put("agent", closed.bytes)).info().liveness, telering::Liveness::closed);
}
