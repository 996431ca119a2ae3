#include "task/edit_distance.hpp"

#include "catch.hpp"
#include "golden.hpp"

using namespace lockstep;

namespace {

/// The bytes of a text that are no continuation in UTF-8, with those that are: its characters.
std::vector<std::int64_t> characters(std::string const& text) {
    std::vector<std::int64_t> found;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if ((byte & 0xC0U) == 0x80U) {
            found.back() = found.back() << 8 | byte;
        } else {
            found.push_back(byte);
        }
    }
    return found;
}

} // namespace

TEST_CASE("edits of words and of characters are jiwer's") {
    auto const golden = test::golden("error_rates.json");
    std::int64_t word_sum = 0;
    std::int64_t words = 0;
    std::int64_t character_sum = 0;
    std::int64_t all_characters = 0;
    for (auto const& expected : golden["cases"]) {
        CAPTURE(expected.dump());
        auto const reference = characters(expected["reference"]);
        auto const hypothesis = characters(expected["hypothesis"]);
        auto const by_words = task::word_edits(reference, hypothesis, ' ');
        auto const by_characters = task::edit_distance(reference, hypothesis);
        CHECK(by_words.edits == expected["words"].get<std::int64_t>());
        CHECK(by_characters == expected["characters"].get<std::int64_t>());
        word_sum += by_words.edits;
        words += by_words.words;
        character_sum += by_characters;
        all_characters += static_cast<std::int64_t>(reference.size());
    }
    CHECK(static_cast<double>(word_sum) / static_cast<double>(words) ==
          golden["wer"].get<double>());
    CHECK(static_cast<double>(character_sum) / static_cast<double>(all_characters) ==
          golden["cer"].get<double>());
}

TEST_CASE("sequences without anything in them have edits too") {
    std::vector<std::int64_t> const some{1, 2, 3};
    CHECK(task::edit_distance({}, {}) == 0);
    CHECK(task::edit_distance(some, {}) == 3);
    CHECK(task::edit_distance({}, some) == 3);
    CHECK(task::word_edits({}, some, 9).words == 0);
    CHECK(task::word_edits(std::vector<std::int64_t>{9, 9, 1, 9}, some, 9).words == 1);
}
