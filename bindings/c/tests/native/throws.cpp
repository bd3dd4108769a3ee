// An exporter plug-in in C++ that throws in the member function that its agent's name says.
#include <telering_plugin.hpp>

#include <cstring>

class Throws final : public telering::plugin::Exporter {
public:
    explicit Throws(const telering_plugin_agent& agent) : name_(agent.name) { at("constructor"); }
    void exportEvents(const telering_plugin_event*, std::uint64_t count) override {
        at("exportEvents");
        if (name_ == "lost") throw telering::plugin::Lost(count > 0, "one is gone");
    }
    void publish(const telering_plugin_totals& totals) override {
        at("publish");
        if (totals.totals_count < 15 || totals.errors_count != 12) throw std::runtime_error("numbers are missing");
    }
    void housekeep(std::uint64_t) override { at("housekeep"); }
    void close(std::uint64_t) override { at("close"); }

private:
    void at(const char* place) const {
        if (name_ == place) throw std::runtime_error(std::string("thrown on purpose in ") + place);
        if (name_ == std::string("odd ") + place) throw 7;
    }
    std::string name_;
};

TELERING_EXPORTER_PLUGIN(Throws, "throws", "1")
