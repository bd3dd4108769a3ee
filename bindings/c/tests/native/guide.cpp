// The guide's snippet, word for word, with our agent; and the classes around it.
#include <telering_nixl.hpp>

#include "check.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <thread>

using namespace telering::producer;

static Options captured() {
    Options options;
    options.captureTelemetry = true;
    options.ignoreEnvironment = true;
    return options;
}

static void the_guides_snippet_compiles_and_runs() {
    Agent agent("guide", captured());
    Transfer req = agent.beginTransfer(Operation::Write, 1048576, 16);
    req.posted();
    req.finish();

    nixl_xfer_telem_t telem;
    if (agent.getXferTelemetry(req, telem) == NIXL_SUCCESS) {
        std::cout << "Transfer took " << telem.xferDuration.count() << " us" << std::endl;
        std::cout << "Total bytes: " << telem.totalBytes << std::endl;
    }

    CHECK(telem.totalBytes == 1048576 && telem.descCount == 16);
    CHECK(telem.xferDuration >= telem.postDuration && telem.postDuration.count() >= 0);
    const auto age = std::chrono::system_clock::now() - telem.startTime;
    CHECK(age > std::chrono::seconds(-1) && age < std::chrono::minutes(10));
}

static void telemetry_that_is_not_there_is_a_status() {
    Agent agent("statuses", captured());
    nixl_xfer_telem_t telem;
    telem.totalBytes = 7;
    Transfer transfer = agent.beginTransfer(Operation::Read, 1, 1);
    CHECK(agent.getXferTelemetry(transfer, telem) == NIXL_IN_PROG);
    CHECK(transfer.fail(NIXL_ERR_REMOTE_DISCONNECT) == NIXL_SUCCESS);
    CHECK(agent.getXferTelemetry(transfer, telem) == NIXL_ERR_NO_TELEMETRY);
    CHECK(agent.errors(Status::RemoteDisconnect) == 1);
    Options off = captured();
    off.captureTelemetry = false;
    Agent silent("off", off);
    CHECK(silent.opened() == Status::Success && silent.mode() == Mode::Off);
    for (int i = 0; i < 1000; i++) {
        Transfer one = silent.beginTransfer(Operation::Write, 1, 1);
        CHECK(one.posted() == Status::Success && one.finish() == Status::Success);
        CHECK(silent.getXferTelemetry(one, telem) == NIXL_ERR_NO_TELEMETRY);
    }
    CHECK(telem.totalBytes == 7);
}

class Rails : public nixlBackendEngine {
public:
    explicit Rails(Agent& agent) : nixlBackendEngine(agent) {}
    void work() {
        addTelemetryEvent("rail_switch", 3);
        addTelemetryEvent("rail_retry", 4);
    }
};

static void a_backend_adds_events_and_takes_them_back() {
    Agent agent("backend", captured());
    Rails rails(agent);
    rails.work();
    auto events = rails.getTelemetryEvents();
    CHECK(events.size() == 2 && events[0].name == "rail_switch" && events[1].value == 4);
    CHECK(rails.getTelemetryEvents().empty());
}

static void objects_close_themselves_and_moved_from_ones_are_harmless() {
    Agent agent("moved", captured());
    Transfer first = agent.beginTransfer(Operation::Write, 5, 1);
    Transfer second = std::move(first);
    CHECK(first.finish() == Status::InvalidHandle && second.finish() == Status::Success);
    second = agent.beginTransfer(Operation::Write, 6, 1);
    Transfer& itself = second;
    second = std::move(itself);
    CHECK(second.finish() == Status::Success);
    { Transfer dropped = agent.beginTransfer(Operation::Write, 7, 1); }
    CHECK(agent.errors(Status::Canceled) == 1 && agent.total(TELERING_EVENT_TX_BYTES).sum == 11);
    Agent other = std::move(agent);
    CHECK(agent.opened() == Status::InvalidHandle && other.opened() == Status::Success);
    CHECK(agent.event("lost", 1) == Status::InvalidHandle && other.total(TELERING_EVENT_TX_BYTES).count == 2);
    other.close();
    CHECK(other.close().recorded == 0 && other.memoryRegistered(1) == Status::InvalidHandle);
    Agent nothing;
    CHECK(nothing.opened() == Status::InvalidHandle && nothing.path().empty() && nothing.renderPrometheus().empty());
}

static void everything_is_exported_and_warnings_are_heard() {
    char folder[] = "/tmp/telering-cpp-XXXXXX";
    if (mkdtemp(folder) == nullptr) std::abort();
    Options options;
    options.enable = Enable::On;
    options.ignoreEnvironment = true;
    options.dir = folder;
    options.bufferSize = 100;  // no power of two: a warning
    std::string heard;
    options.onWarning = [&](const std::string& kind, const std::string& message) {
        heard = kind + ": " + message;
        throw 1;  // stays where it is
    };
    Agent agent("exported", options);
    CHECK(agent.mode() == Mode::Exported && heard.rfind("config: buffer_size", 0) == 0);
    CHECK(agent.path() == std::string(folder) + "/exported");
    std::thread([&agent] { agent.event("from_a_thread", 1); }).join();
    agent.recordTransfer(Operation::Read, 9, 1, std::chrono::microseconds(-5), std::chrono::microseconds(7));
    CHECK(agent.metadataSent(1) == Status::Success && agent.metadataReceived(1) == Status::Success);
    CHECK(agent.connected() == Status::Success && agent.disconnected() == Status::Success);
    CHECK(agent.memoryDeregistered(1) == Status::Success && agent.error(Status::Backend) == Status::Success);
    CHECK(agent.flush(std::chrono::seconds(10)) == Status::Success && agent.counts().exported == 11);
    CHECK(agent.renderPrometheus().find("agent_rx_bytes_total{agent_name=\"exported\"") != std::string::npos);
    const Counts counts = agent.close();
    CHECK(counts.recorded == 11 && counts.exported == 11);

    options.strict = true;
    Agent strict("strict", options);
    CHECK(strict.opened() == Status::NotStarted && strict.problem().find("buffer_size") != std::string::npos);
    CHECK(std::strcmp(text(Status::Success), "TELERING_OK") == 0);
}

static void a_function_that_hears_of_a_warning_may_destroy_its_agent() {
    char folder[] = "/tmp/telering-cpp-XXXXXX";
    if (mkdtemp(folder) == nullptr) std::abort();
    std::unique_ptr<Agent> agent;
    std::atomic<bool> ready{false};
    std::atomic<int> heard{0};
    Options options;
    options.enable = Enable::On;
    options.ignoreEnvironment = true;
    options.dir = folder;
    options.runInterval = std::chrono::milliseconds(5);
    options.closePatience = std::chrono::milliseconds(50);
    options.onWarning = [&, last = std::string(100, 'x')](const std::string& kind, const std::string&) {
        const bool right = ready && kind == "file";
        agent.reset();
        heard += right && last.size() == 100 ? 1 : 1000;
    };
    agent = std::make_unique<Agent>("destroyed", options);
    const std::string path = agent->path();
    ready = true;
    // Longer, not shorter: that could meet the flush thread in the midst of a batch (README, limits).
    CHECK(truncate(path.c_str(), 1 << 24) == 0);
    for (int i = 0; i < 10000 && heard == 0; i++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(heard == 1 && agent == nullptr);
}

int main() {
    a_function_that_hears_of_a_warning_may_destroy_its_agent();
    the_guides_snippet_compiles_and_runs();
    telemetry_that_is_not_there_is_a_status();
    a_backend_adds_events_and_takes_them_back();
    objects_close_themselves_and_moved_from_ones_are_harmless();
    everything_is_exported_and_warnings_are_heard();
    return finish();
}
