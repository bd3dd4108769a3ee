// Files for the tests: a directory that goes away, whole files, images made by FORMAT.md, and a producer that writes one live.

#ifndef TELERING_TEST_FILES_HPP
#define TELERING_TEST_FILES_HPP

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "telering_reader.hpp"

namespace test {

using Bytes = std::vector<unsigned char>;

class Directory {
public:
    Directory() {
        std::string path = (std::filesystem::temp_directory_path() / "telering-cpp-XXXXXX").string();
        if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no directory for a test");
        path_ = path;
    }
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    std::string operator/(const char* name) const { return (path_ / name).string(); }

    // A file with these bytes, always a new inode.
    std::string put(const char* name, const Bytes& bytes) const {
        const std::string path = *this / name;
        const std::string made = path + ".new";
        std::ofstream(made, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        std::filesystem::rename(made, path);
        return path;
    }

private:
    std::filesystem::path path_;
};

// Writes over a file that stays the same file.
inline void overwrite(const std::string& path, const Bytes& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write over " + path);
}
inline Bytes bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(file), {});
}

inline void put_number(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
    for (std::size_t byte = 0; byte < size; ++byte) bytes.at(at + byte) = static_cast<unsigned char>(value >> (8 * byte));
}
inline void put64(Bytes& bytes, std::size_t at, std::uint64_t value) { put_number(bytes, at, value, 8); }
inline void put32(Bytes& bytes, std::size_t at, std::uint64_t value) { put_number(bytes, at, value, 4); }

inline telering::Record record_of(std::string_view name, std::uint64_t value, std::int32_t category = 7, std::uint64_t time = 1000) {
    telering::Record record{};
    record.timestamp_us = time;
    record.category = category;
    std::memcpy(record.name, name.data(), std::min(name.size(), sizeof record.name));
    record.value = value;
    return record;
}

// An image as bytes: formatted and empty, with the parts of FORMAT.md section 8 that are asked for.
class Image {
public:
    struct Row {
        std::uint32_t kind;
        Bytes bytes;
        std::uint32_t version = 1;
    };

    explicit Image(std::uint64_t capacity, const std::vector<Row>& parts = {}, std::uint64_t instance = 77)
        : capacity_(capacity), extension_(telering::layout::extension(capacity)) {
        std::size_t len = at_extension(128 + 24 * parts.size());
        std::vector<std::size_t> places;
        for (const Row& part : parts) {
            len = (len + 63) / 64 * 64;
            places.push_back(len);
            len += part.bytes.size();
        }
        bytes.assign(len, 0);
        put32(bytes, 16, 1);
        put32(bytes, 20, 1);
        put64(bytes, 24, capacity);
        put64(bytes, 32, capacity - 1);
        put64(bytes, at_extension(0), telering::layout::magic);
        put_number(bytes, at_extension(8), 1, 2);
        put32(bytes, at_extension(12), telering::layout::byte_order);
        put64(bytes, at_extension(16), len);
        put64(bytes, at_extension(24), capacity);
        put32(bytes, at_extension(32), 56);
        put32(bytes, at_extension(36), 1);
        put32(bytes, at_extension(40), telering::layout::max_batch(capacity));
        put_number(bytes, at_extension(44), parts.size(), 2);
        put_number(bytes, at_extension(46), 1, 2);
        put64(bytes, at_extension(48), instance);
        put64(bytes, at_extension(56), 1000000);
        put32(bytes, at_extension(104), 1);
        for (std::size_t row = 0; row < parts.size(); ++row) {
            const std::size_t at = at_extension(128 + 24 * row);
            put32(bytes, at, parts[row].kind);
            put32(bytes, at + 4, parts[row].version);
            put64(bytes, at + 8, places[row]);
            put64(bytes, at + 16, parts[row].bytes.size());
            std::copy(parts[row].bytes.begin(), parts[row].bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(places[row]));
        }
    }

    std::size_t at_extension(std::size_t offset) const { return static_cast<std::size_t>(extension_) + offset; }

    // The record of a position, in its slot and with its check word; the control words are left as they are.
    void place(std::uint64_t position, telering::Record record) {
        record.check = telering::check_word(position, record);
        const std::size_t at = 40 + 56 * static_cast<std::size_t>(position % capacity_);
        put64(bytes, at, record.timestamp_us);
        put32(bytes, at + 8, static_cast<std::uint32_t>(record.category));
        std::memcpy(&bytes.at(at + 12), record.name, sizeof record.name);
        put32(bytes, at + 44, record.check);
        put64(bytes, at + 48, record.value);
    }
    void positions(std::uint64_t committed, std::uint64_t intent) {
        put64(bytes, at_extension(64), intent);
        put64(bytes, at_extension(72), committed);
    }
    void state(std::uint32_t state) { put32(bytes, at_extension(104), state); }

    // Positions 0 to `count` - 1, one after another; the value is the position.
    Image& filled(std::uint64_t count) {
        for (std::uint64_t position = count > capacity_ ? count - capacity_ : 0; position < count; ++position)
            place(position, record_of("counted", position));
        positions(count, count);
        return *this;
    }

    Bytes bytes;

private:
    std::uint64_t capacity_;
    std::uint64_t extension_;
};

// Writes an image live, by section 10: mapped memory, atomic words.
class Producer {
public:
    Producer(const std::string& path, const Image& image, std::uint64_t capacity) : capacity_(capacity), len_(image.bytes.size()) {
        std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(image.bytes.data()), static_cast<std::streamsize>(len_));
        descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) throw std::runtime_error("no file to write live");
        void* memory = ::mmap(nullptr, len_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
        if (memory == MAP_FAILED) throw std::runtime_error("no mapping");
        words_ = static_cast<std::uint64_t*>(memory);
        extension_ = static_cast<std::size_t>(telering::layout::extension(capacity)) / 8;
    }
    ~Producer() {
        ::munmap(words_, len_);
        ::close(descriptor_);
    }
    Producer(const Producer&) = delete;
    Producer& operator=(const Producer&) = delete;

    // A batch of records, at most the largest batch of the capacity.
    void push(const std::vector<telering::Record>& records) {
        const std::uint64_t end = position_ + records.size();
        store(extension_ + 8, little(end), __ATOMIC_RELAXED);
#if !defined(__SANITIZE_THREAD__) && !defined(TELERING_NO_FENCES)
        __atomic_thread_fence(__ATOMIC_RELEASE);
        const int order = __ATOMIC_RELAXED;
#else
        const int order = __ATOMIC_RELEASE;
#endif
        for (const telering::Record& each : records) {
            telering::Record record = each;
            record.check = telering::check_word(position_, record);
            if constexpr (telering::detail::big_endian) telering::detail::swap_record(record);
            std::uint64_t words[7];
            std::memcpy(words, &record, sizeof record);
            const std::size_t slot = 5 + 7 * static_cast<std::size_t>(position_ % capacity_);
            for (std::size_t word = 0; word < 7; ++word) store(slot + word, words[word], order);
            ++position_;
        }
        store(extension_ + 9, little(end), __ATOMIC_RELEASE);
        store(0, little(end % capacity_), __ATOMIC_RELEASE);
    }

    std::uint64_t position() const { return position_; }

private:
    static std::uint64_t little(std::uint64_t word) { return telering::detail::big_endian ? telering::detail::swapped(word) : word; }
    void store(std::size_t at, std::uint64_t value, int order) {
        if (order == __ATOMIC_RELAXED) __atomic_store_n(words_ + at, value, __ATOMIC_RELAXED);
        else __atomic_store_n(words_ + at, value, __ATOMIC_RELEASE);
    }

    std::uint64_t capacity_;
    std::size_t len_;
    int descriptor_ = -1;
    std::uint64_t* words_ = nullptr;
    std::size_t extension_ = 0;
    std::uint64_t position_ = 0;
};

// All that a reader hands over now, as words: `e5` is the event of value 5, `lost2`, `unverified1`, `interrupted1`, `reset`.
inline std::string all_of(telering::Reader& reader) {
    std::string words;
    while (const auto item = reader.next()) {
        if (!words.empty()) words += ' ';
        const std::string count = std::to_string(item->count);
        switch (item->kind) {
            case telering::ItemKind::event: words += "e" + std::to_string(item->event.value); break;
            case telering::ItemKind::lost: words += "lost" + count; break;
            case telering::ItemKind::interrupted: words += "interrupted" + count; break;
            case telering::ItemKind::unverified: words += "unverified" + count; break;
            case telering::ItemKind::reset: words += "reset"; break;
        }
    }
    return words;
}

// A file of NIXL's own: header, then records that are there as bytes.
inline Bytes nixl_file(std::uint32_t version, std::uint64_t capacity, std::size_t record_size, std::uint64_t read_pos, std::uint64_t write_pos) {
    Bytes bytes(40 + static_cast<std::size_t>(capacity) * record_size);
    put64(bytes, 0, write_pos);
    put64(bytes, 8, read_pos);
    put32(bytes, 16, version);
    put32(bytes, 20, version);
    put64(bytes, 24, capacity);
    put64(bytes, 32, capacity - 1);
    return bytes;
}

}  // namespace test

#endif
