// What this reader makes of telemetry files, in the form of conformance/README.md.
//
//     conformance                 one path per line on standard input, one line of JSON for each
//     conformance follow PATH     reads PATH while it is written, until it is closed

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "telering_reader.hpp"

namespace {

std::string quoted(std::string_view text) {
    std::string json = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            json += {'\\', c};
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            json += escape;
        } else {
            json += c;
        }
    }
    return json + '"';
}

template <class Number>
std::string or_null(const std::optional<Number>& number) {
    return number ? std::to_string(*number) : "null";
}

template <class Items, class ToJson>
std::string array(const Items& items, ToJson to_json) {
    std::string json = "[";
    for (const auto& item : items) {
        if (json.size() > 1) json += ',';
        json += to_json(item);
    }
    return json + ']';
}

std::string numbers(const std::vector<std::uint64_t>& values) {
    return array(values, [](std::uint64_t value) { return std::to_string(value); });
}

// Key and number, in pairs: the members of an object.
std::string members(const std::vector<std::pair<const char*, std::uint64_t>>& pairs) {
    std::string json;
    for (const auto& [key, value] : pairs) {
        if (!json.empty()) json += ',';
        json += '"' + std::string(key) + "\":" + std::to_string(value);
    }
    return json;
}

std::string identity_json(const telering::Identity& identity) {
    return "{" +
           members({{"pid", identity.pid},
                    {"process_start", identity.process_start},
                    {"agent_instance", identity.agent_instance},
                    {"uid", identity.uid}}) +
           ",\"boot_id\":" + quoted(identity.boot_id) + ",\"writer\":" + quoted(identity.writer) +
           ",\"hostname\":" + quoted(identity.hostname) + ",\"agent\":" + quoted(identity.agent) +
           ",\"rank\":" + quoted(identity.rank) + "}";
}

std::string metrics_json(const telering::Metrics& metrics) {
    const auto entry = [](const telering::Metric& m) { return numbers({m.id, m.sum, m.count, m.last, m.last_time}); };
    const auto histogram = [](const telering::Histogram& h) {
        return "[" + std::to_string(h.id) + "," + std::to_string(h.sum) + "," + numbers(h.counts) + "]";
    };
    const auto error = [](const telering::ErrorCount& e) { return numbers({e.id, e.count}); };
    return "{\"generation\":" + std::to_string(metrics.generation) + ",\"bounds\":" + numbers(metrics.bounds) +
           ",\"entries\":" + array(metrics.entries, entry) + ",\"histograms\":" + array(metrics.histograms, histogram) +
           ",\"errors\":" + array(metrics.errors, error) + "}";
}

template <class Part, class ToJson>
std::string part(const char* key, const std::optional<Part>& part, ToJson to_json) {
    return std::string(",\"") + key + "\":" + (part ? to_json(*part) : "null");
}

std::string info_json(const telering::Info& info) {
    if (info.layout != telering::Layout::image)
        return "{" +
               members({{"version", info.version}, {"write_pos", info.write_pos}, {"read_pos", info.read_pos}, {"waiting", info.waiting}}) +
               ",\"liveness\":" + quoted(to_string(info.liveness)) + "}";
    std::string json = "{" + members({{"major", info.major_version},
                                      {"minor", info.minor_version},
                                      {"instance", info.instance},
                                      {"created", info.created},
                                      {"intent", info.intent},
                                      {"committed", info.committed},
                                      {"metrics_time", info.metrics_time},
                                      {"heartbeat", info.heartbeat},
                                      {"state", info.state},
                                      {"time_base", info.time_base},
                                      {"boots", info.boots}});
    json += std::string(",\"checks\":") + (info.checks ? "true" : "false") + ",\"liveness\":" + quoted(to_string(info.liveness));
    json += ",\"parts\":" + array(info.parts, [](const telering::Part& p) { return numbers({p.kind, p.version, p.offset, p.len}); });
    json += part("identity", info.identity, identity_json);
    json += part("losses", info.losses, [](const telering::Losses& l) {
        return "{" +
               members({{"recorded", l.recorded},
                        {"exported", l.exported},
                        {"staging", l.staging},
                        {"exporter", l.exporter},
                        {"interrupted", l.interrupted},
                        {"backend", l.backend},
                        {"closing", l.closing}}) +
               "}";
    });
    json += part("notices", info.notices, [](const telering::Notices& n) {
        return "{" +
               members({{"names_changed", n.names_changed},
                        {"dynamic_overflow", n.dynamic_overflow},
                        {"refused", n.refused},
                        {"file_trouble", n.file_trouble}}) +
               "}";
    });
    json += part("metrics", info.metrics, metrics_json);
    json += part("dynamic", info.dynamic, [](const std::vector<telering::DynamicMetric>& all) {
        return array(all, [](const telering::DynamicMetric& m) {
            return "[" + quoted(m.name.view()) + "," + std::to_string(m.category) + "," + std::to_string(m.sum) + "," +
                   std::to_string(m.count) + "," + std::to_string(m.last) + "," + std::to_string(m.last_time) + "]";
        });
    });
    json += part("clock", info.clock, [](const telering::ClockInfo& c) {
        return "{" +
               members({{"source", c.source},
                        {"quality", c.quality},
                        {"rate", c.rate},
                        {"anchor_ticks", c.anchor_ticks},
                        {"anchor_us", c.anchor_us}}) +
               "}";
    });
    return json + "}";
}

// What the transfers of a file add up to; null where its layout can't tell.
std::string transfers_json(const std::string& path) {
    telering::Reader reader(path);
    std::uint64_t bytes = 0;
    std::uint64_t post_us = 0;
    std::uint64_t xfer_us = 0;
    std::uint64_t writes = 0;
    try {
        const auto transfers = reader.transfers();
        for (const telering::Transfer& transfer : transfers) {
            bytes += transfer.bytes;
            post_us += transfer.post_us;
            xfer_us += transfer.xfer_us;
            writes += transfer.operation == telering::Operation::write;
        }
        return "{" +
               members({{"count", transfers.size()}, {"writes", writes}, {"bytes", bytes}, {"post_us", post_us}, {"xfer_us", xfer_us}}) +
               "}";
    } catch (const telering::Error& error) {
        if (error.kind() != telering::ErrorKind::no_transfers) throw;
        return "null";
    }
}

std::string answer(const std::string& path) {
    telering::Reader reader(path);
    std::string events;
    while (const auto item = reader.next()) {
        if (item->kind != telering::ItemKind::event) continue;
        const telering::Event& event = item->event;
        if (!events.empty()) events += ',';
        events += "[" + std::to_string(event.seq) + "," + or_null(event.timestamp_us) + "," + or_null(event.category) + "," +
                  or_null(event.id) + "," + quoted(event.name.view()) + "," + std::to_string(event.value) + "]";
    }
    const telering::Counts& counts = reader.counts();
    return "{\"layout\":" + quoted(to_string(reader.layout())) + "," +
           members({{"capacity", reader.capacity()},
                    {"start", reader.start()},
                    {"lost", counts.lost},
                    {"unverified", counts.unverified},
                    {"interrupted", counts.interrupted}}) +
           ",\"events\":[" + events + "],\"info\":" + info_json(reader.info()) + ",\"transfers\":" + transfers_json(path) + "}";
}

// What a running producer's file gave, and whether it can be true: transfer number i moves i bytes.
class Tally {
public:
    void take(std::uint64_t seq, const telering::Record& record) {
        if (events_ == 0) first_ = seq;
        else if (seq <= last_) ++wrong_;
        last_ = seq;
        ++events_;
        if (record.stored_name() != "agent_tx_bytes") return;
        if (record.value <= bytes_) ++wrong_;
        bytes_ = record.value;
        sum_ += record.value;
    }
    std::string json(const telering::Reader& reader, std::uint64_t committed) const {
        const telering::Counts& counts = reader.counts();
        return "{" +
               members({{"start", reader.start()},
                        {"committed", committed},
                        {"events", counts.events},
                        {"lost", counts.lost},
                        {"unverified", counts.unverified},
                        {"interrupted", counts.interrupted},
                        {"first", first_},
                        {"last", last_},
                        {"sum", sum_},
                        {"wrong", wrong_}}) +
               "}";
    }

private:
    std::uint64_t events_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t sum_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t wrong_ = 0;
};

std::string follow(const std::string& path) {
    telering::Reader reader(path);
    Tally tally;
    // What was closed before this look is read to its end after it.
    for (bool closed = false;;) {
        const telering::Batch& batch = reader.read_batch();
        batch.for_each_event([&](std::uint64_t seq, const telering::Record& record) { tally.take(seq, record); });
        if (!batch.empty()) continue;
        const telering::Info info = reader.info();
        if (closed) return tally.json(reader, info.committed);
        closed = info.state == 2;
        if (!closed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count == 3 && std::string_view(arguments[1]) == "follow") {
            std::cout << follow(arguments[2]) << std::endl;
            return 0;
        }
        for (std::string path; std::getline(std::cin, path);) {
            std::string line;
            try {
                line = answer(path);
            } catch (const telering::Error& error) {
                // A file that was resized or changed is neither here: nobody writes these files.
                line = "{\"error\":" + quoted(to_string(error.kind())) + "}";
                std::cerr << error.what() << '\n';
            }
            std::cout << line << std::endl;
        }
        return 0;
    } catch (const telering::Error& error) {
        std::cerr << "conformance: " << error.what() << '\n';
        return 1;
    }
}
