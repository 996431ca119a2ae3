#include "base/random.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "lockstep/base/error.hpp"
#include "text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"

using namespace lockstep;
using text::Token;
using text::Tokenizer;

namespace {

Tokenizer learnt_from(std::vector<std::string> const& texts, std::int64_t tokens) {
    return Tokenizer::learnt(tokens, [&](auto const& use) {
        for (auto const& each : texts) {
            use(each);
        }
    });
}

/// A tokenizer.json, with something of it replaced.
std::string file_with(std::string const& old, std::string const& other) {
    auto json = learnt_from({"low lower lowest"}, 262).json();
    auto const at = json.find(old);
    REQUIRE(at != std::string::npos);
    return json.replace(at, old.size(), other);
}

ExitCode code_of(std::string const& json) {
    try {
        Tokenizer::of_json(json, "test");
    } catch (Error const& error) {
        return error.code();
    }
    return ExitCode::ok;
}

} // namespace

TEST_CASE("the most frequent pair becomes a token, of equal ones that of the smaller numbers") {
    // "low" three times, " low" in two of them: l o, then lo w, then the blank before it.
    auto const tokenizer = learnt_from({"low low low"}, 260);
    CHECK(tokenizer.tokens() == 260);
    auto const tokens = tokenizer.encode("low low", "test");
    CHECK(tokens.size() == 2);
    CHECK(tokenizer.decode(tokens) == "low low");
    CHECK(tokenizer.lengths()[static_cast<std::size_t>(tokens[0])] == 3);
    CHECK(tokenizer.lengths()[static_cast<std::size_t>(tokens[1])] == 4);
    CHECK(tokenizer.end_of_text() == 259);
    CHECK(tokenizer.lengths().back() == 0);
}

TEST_CASE("merges are those of counting all pairs again for each token") {
    std::array<Token, 256> of_byte{};
    std::iota(of_byte.begin(), of_byte.end(), 0);
    for (std::uint64_t run = 0; run < 200; ++run) {
        std::uint64_t drawn = 0;
        auto const draw = [&](std::uint64_t below) {
            return random_key(run, Stream::order, {drawn++}) % below;
        };
        auto const letters = 1 + draw(5);
        std::map<std::string, std::int64_t> words;
        for (auto more = 1 + draw(8); more > 0; --more) {
            std::string word;
            for (auto length = draw(40); length > 0; --length) {
                word += static_cast<char>('a' + draw(letters));
            }
            words[word] += static_cast<std::int64_t>(1 + draw(3));
        }
        std::vector<std::pair<std::vector<Token>, std::int64_t>> rows;
        for (auto const& [word, count] : words) {
            rows.push_back({{word.begin(), word.end()}, count});
        }
        Token next = 256;
        for (auto const& merge : text::learn_merges(words, of_byte, next, 320, [] {})) {
            std::map<std::pair<Token, Token>, std::int64_t> counts;
            for (auto const& [row, count] : rows) {
                for (std::size_t i = 1; i < row.size(); ++i) {
                    counts[{row[i - 1], row[i]}] += count;
                }
            }
            auto const best = std::ranges::max_element(
                counts, {}, [](auto const& each) { return each.second; }); // the first of them
            REQUIRE(best != counts.end());
            REQUIRE(std::pair(merge.left, merge.right) == best->first);
            REQUIRE(merge.whole == next++);
            for (auto& [row, _] : rows) {
                std::vector<Token> merged;
                for (auto const token : row) {
                    bool const joins =
                        !merged.empty() && merged.back() == merge.left && token == merge.right;
                    if (joins) {
                        merged.back() = merge.whole;
                    } else {
                        merged.push_back(token);
                    }
                }
                row = std::move(merged);
            }
        }
        bool const left =
            std::ranges::any_of(rows, [](auto const& row) { return row.first.size() > 1; });
        CHECK((!left || next == 320));
    }
}

TEST_CASE("learning ends where it is told to") {
    int asked = 0;
    auto const stop = [&] {
        if (++asked == 3) {
            throw Error(ExitCode::interrupted, {"stop", "it was told to", ""});
        }
    };
    CHECK_THROWS_AS(Tokenizer::learnt(
                        300, [](auto const& use) { use("a long text"); }, stop),
                    Error);
}

TEST_CASE("fewer tokens than asked for are learnt where there is no pair left") {
    CHECK(learnt_from({"ab"}, 300).tokens() == 258); // 256 bytes, a pair, and the end
}

TEST_CASE("any text is decoded as it was, and a tokenizer is read as it was written") {
    std::vector<std::string> const texts{
        "It's 12 o'clock,  and we'll see\n\n\tµ-waves… naïve café 日本語 🙂",
        "words and more words, words again; wordy"};
    auto const tokenizer = learnt_from(texts, 290);
    auto const again = Tokenizer::of_json(tokenizer.json(), "test");
    for (std::uint64_t i = 0; i < 200; ++i) {
        std::string text;
        for (std::uint64_t at = 0; at < i % 40; ++at) {
            auto const draw = mixed(i * 1000 + at);
            auto const point = draw % 5 == 0 ? 0x20 + draw % 0x10 : 0x20 + draw % 0x2000;
            text +=
                encoded(static_cast<char32_t>(point >= 0xD800 && point < 0xE000 ? 0x41 : point));
        }
        auto const tokens = tokenizer.encode(text, "test");
        CHECK(tokenizer.decode(tokens) == text);
        CHECK(again.encode(text, "test") == tokens);
    }
}

TEST_CASE("special tokens are set apart wherever they stand, and stand for no text") {
    auto const tokenizer = learnt_from({"some text"}, 270);
    auto const end = tokenizer.end_of_text().value();
    auto const tokens = tokenizer.encode("some<|endoftext|>text", "test");
    CHECK(std::ranges::count(tokens, end) == 1);
    CHECK(tokenizer.decode(tokens) == "sometext");
    CHECK(tokenizer.encode("<|endoftext", "test").size() > 1);
}

TEST_CASE("a text that is not UTF-8 is refused") {
    auto const tokenizer = learnt_from({"some text"}, 270);
    CHECK_THROWS_AS(tokenizer.encode("\xff\xfe", "test"), Error);
}

TEST_CASE("what this tokenizer would do otherwise is refused by name") {
    CHECK(code_of(file_with(R"("type":"BPE")", R"("type":"WordPiece")")) == ExitCode::usage);
    CHECK(code_of(file_with(R"("normalizer":null)", R"("normalizer":{"type":"NFC"})")) ==
          ExitCode::usage);
    CHECK(code_of(file_with(R"("byte_fallback":false)", R"("byte_fallback":true)")) ==
          ExitCode::usage);
    CHECK(code_of(file_with(R"("lstrip":false)", R"("lstrip":true)")) == ExitCode::usage);
    CHECK(code_of(file_with(R"("pre_tokenizer":{)", R"("pre_tokenizer":{"was":1,)")) ==
          ExitCode::ok);
    CHECK(code_of(file_with(R"("pre_tokenizer")", R"("no_tokenizer")")) == ExitCode::usage);
}

TEST_CASE("a damaged file is refused") {
    CHECK(code_of("") == ExitCode::data);
    CHECK(code_of("[]") == ExitCode::data);
    CHECK(code_of("{}") == ExitCode::data);
    CHECK(code_of(file_with(R"("l o")", R"("l ö o")")) == ExitCode::data);
    CHECK(code_of(file_with(R"("id":)", R"("id":-)")) == ExitCode::data);
    CHECK(code_of(std::string(50'000, '[') + std::string(50'000, ']')) == ExitCode::data);
    CHECK(code_of(file_with(R"("pre_tokenizer":{)",
                            R"("pre_tokenizer":{"was":)" + std::string(50'000, '[') +
                                std::string(50'000, ']') + ",")) == ExitCode::data);
    auto const whole = learnt_from({"some text"}, 270).json();
    for (std::size_t cut = 1; cut < whole.size(); cut += 97) {
        CHECK(code_of(whole.substr(0, whole.size() - cut)) == ExitCode::data);
    }
}

TEST_CASE("an id that is no place of a token, or of two, is refused") {
    for (auto const* const id : {"16777215", "4294967301", "4294967553", "18446744073709551615",
                                 "-1", "257.5", "1e2", "3", "true", "null", R"("257")", "[257]"}) {
        CAPTURE(id);
        CHECK(code_of(file_with(R"("lo":)", concat(R"("lo":)", id, R"(,"was":)"))) ==
              ExitCode::data);
    }
    CHECK(code_of(file_with(R"("lo":)", R"("lo":400,"was":)")) ==
          ExitCode::ok); // ids may have gaps
    CHECK(code_of(file_with(R"("id":261)", R"("id":260)")) == ExitCode::data);
}

TEST_CASE("fewer tokens than bytes cannot be learnt") {
    CHECK_THROWS_AS(learnt_from({"some text"}, 256), Error);
}

TEST_CASE("the merge that was learnt first comes first, wherever in a word its pair is") {
    auto const tokenizer = learnt_from({"bc", "bc", "bc", "ab", "ab"}, 259);
    auto const tokens = tokenizer.encode("abc", "test");
    REQUIRE(tokens.size() == 2);
    CHECK(tokenizer.decode(std::span(tokens).first(1)) == "a");
}

TEST_CASE("a text is cut into what matches and what lies between, before and behind") {
    text::Pattern const digits("[0-9]+|x*"); // matches nothing, too
    std::vector<std::string> parts;
    digits.cut("añ12b3c", [&](std::string_view part) { parts.emplace_back(part); });
    CHECK(parts == std::vector<std::string>{"añ", "12", "b", "3", "c"});
    CHECK_THROWS_AS(text::Pattern("("), Error);
}
