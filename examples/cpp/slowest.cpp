// The slowest transfers of a telemetry file, and what was lost: `slowest PATH`.

#include <algorithm>
#include <iostream>

#include "telering_reader.hpp"

int main(int count, char** arguments) {
    if (count != 2) return std::cerr << "usage: slowest PATH\n", 2;
    try {
        telering::Reader reader(arguments[1]);
        std::vector<telering::Transfer> transfers = reader.transfers();
        std::sort(transfers.begin(), transfers.end(), [](const auto& a, const auto& b) { return a.xfer_us > b.xfer_us; });
        transfers.resize(std::min<std::size_t>(transfers.size(), 20));
        for (const telering::Transfer& t : transfers)
            std::cout << t.xfer_us << " us  " << to_string(t.operation) << "  " << t.bytes << " bytes\n";
        std::cout << "lost " << reader.lost() << ", unverified " << reader.unverified() << ", incomplete " << reader.incomplete_transfers() << '\n';
    } catch (const telering::Error& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
