// Tests named as sentences. A failed check says where, and the test goes on.

#ifndef TELERING_TEST_HARNESS_HPP
#define TELERING_TEST_HARNESS_HPP

#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "telering_reader.hpp"

namespace test {

struct Case {
    const char* sentence;
    const char* file;
    void (*run)();
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}
inline int& failures() {
    static int count = 0;
    return count;
}

struct Registered {
    Registered(const char* sentence, const char* file, void (*run)()) { cases().push_back({sentence, file, run}); }
};

template <class T>
std::string text_of(const T& value) {
    std::ostringstream out;
    if constexpr (std::is_enum_v<T>) out << static_cast<long long>(value);
    else out << value;
    return out.str();
}

template <class A, class B>
void equal(const A& a, const B& b, const char* what, const char* file, int line) {
    if (a == b) return;
    ++failures();
    std::cout << file << ':' << line << ": " << what << ": " << text_of(a) << " is not " << text_of(b) << std::endl;
}

inline void holds(bool condition, const char* what, const char* file, int line) {
    if (condition) return;
    ++failures();
    std::cout << file << ':' << line << ": not so: " << what << std::endl;
}

// What an action throws: the kind of its Error, or "nothing".
template <class Action>
std::string kind_thrown(Action action, std::string* message = nullptr) {
    try {
        action();
        return "nothing";
    } catch (const telering::Error& error) {
        if (message != nullptr) *message = error.what();
        return to_string(error.kind());
    }
}

}  // namespace test

#define TEST_CASE_3(sentence, line)                                                          \
    static void test_at_##line();                                                            \
    static const test::Registered test_at_##line##_is(sentence, __FILE__, test_at_##line); \
    static void test_at_##line()
#define TEST_CASE_2(sentence, line) TEST_CASE_3(sentence, line)
#define TEST_CASE(sentence) TEST_CASE_2(sentence, __LINE__)
#define EQUAL(a, b) test::equal((a), (b), #a, __FILE__, __LINE__)
#define HOLDS(condition) test::holds((condition), #condition, __FILE__, __LINE__)

#endif
