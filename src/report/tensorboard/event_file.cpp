#include "event_file.hpp"

#include "base/crc32c.hpp"
#include "base/own_directory.hpp"
#include "base/text.hpp"

#include <bit>
#include <chrono>
#include <cstring>
#include <span>

namespace lockstep::report {

namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

template <class Number>
void put(std::string& text, Number number) {
    text.append(reinterpret_cast<char const*>(&number), sizeof(number));
}

std::uint32_t masked_sum(std::string const& bytes) {
    auto const sum = crc32c(std::as_bytes(std::span(bytes)));
    return std::rotr(sum, 15) + 0xA282EAD8U;
}

/// Thirteen digits of milliseconds: a resumed run's file comes after those before it.
File make(std::filesystem::path const& directory) {
    using namespace std::chrono;
    make_own_directory(directory);
    auto time = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    auto const file = [&] { return directory / concat("events.out.tfevents.", time, ".lockstep"); };
    while (std::filesystem::exists(file())) {
        ++time;
    }
    return File::append(file());
}

} // namespace

EventFile::EventFile(std::filesystem::path const& directory) : file_(make(directory)) {}

void EventFile::append(std::string const& record) const {
    std::string text;
    put(text, static_cast<std::uint64_t>(record.size()));
    put(text, masked_sum(text));
    text += record;
    put(text, masked_sum(record));
    file_.append_text(text);
}

} // namespace lockstep::report
