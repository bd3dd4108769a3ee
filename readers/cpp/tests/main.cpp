// Runs all tests, or those of the files whose name contains the first argument.

#include <cstring>
#include <exception>

#include "harness.hpp"

int main(int count, char** arguments) {
    int passed = 0;
    int failed = 0;
    for (const test::Case& each : test::cases()) {
        if (count > 1 && std::strstr(each.file, arguments[1]) == nullptr) continue;
        const int before = test::failures();
        try {
            each.run();
        } catch (const std::exception& error) {
            ++test::failures();
            std::cout << "threw: " << error.what() << std::endl;
        }
        const bool good = test::failures() == before;
        ++(good ? passed : failed);
        std::cout << (good ? "ok     " : "FAILED ") << each.sentence << std::endl;
    }
    std::cout << passed << " passed, " << failed << " failed" << std::endl;
    return failed == 0 && passed > 0 ? 0 : 1;
}
