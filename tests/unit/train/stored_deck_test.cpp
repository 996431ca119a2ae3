#include "device/precision.hpp"
#include "model_files/stored_deck.hpp"

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("decks of before precision.memory-format were contiguous") {
    auto const format_of = [](std::string const& lines) {
        checkpoint::Record record;
        record.deck = "[precision]\ncompute = bf16\n" + lines;
        return train::memory_format(train::stored_deck(record, "a.h5").precision);
    };
    CHECK(format_of("") == "contiguous");
    CHECK(format_of("memory-format = auto\n") == "channels-last");
    CHECK(format_of("memory-format = contiguous\n") == "contiguous");
    CHECK(train::memory_format({}) == "contiguous");
}
