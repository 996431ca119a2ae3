#include "text/tokenizer.hpp"

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "lockstep/base/error.hpp"
#include "text/byte_letters.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace lockstep::text {

namespace {

using Json = nlohmann::json;

constexpr char const* end_name = "<|endoftext|>";
/// As GPT-2 cuts a text into words.
constexpr char const* gpt2_words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::int64_t max_tokens = std::int64_t{1} << 24; // numbers that a float32 can hold
constexpr std::int64_t max_gap = 65536;                    // ids without a token

[[noreturn]] void refuse(std::string const& from, std::string const& what) {
    throw Error(ExitCode::usage, {concat("the tokenizer ", from, " cannot be used"), what,
                                  "Use a tokenizer with byte-level BPE, such as that of GPT-2 or "
                                  "Llama 3, or train a new tokenizer with --vocabulary N"});
}

[[noreturn]] void damaged(std::string const& from, std::string const& what) {
    throw Error(ExitCode::data, {concat("the tokenizer ", from, " is damaged"), what,
                                 "Download the tokenizer again, or train a new tokenizer"});
}

Token id_of(Json const& json, std::int64_t end, std::string const& from) {
    if (!json.is_number_integer() || json < 0 || json >= end) {
        damaged(from, concat("a token has the invalid id ", json.dump().substr(0, 40),
                             ", which is not a whole number from 0 to ", end - 1));
    }
    return json.get<Token>();
}

bool is_set(Json const& json, char const* name) {
    auto const found = json.find(name);
    return found != json.end() && !found->is_null() &&
           !(found->is_boolean() && !found->get<bool>()) &&
           !(found->is_string() && found->get<std::string>().empty());
}

std::string type_of(Json const& json) {
    return json.is_object() && json.contains("type") ? json.at("type").get<std::string>() : "";
}

/// What tokenizer.json says of how texts are cut.
struct Cutting {
    std::vector<std::string> patterns;
    bool byte_level = false;
    bool begins_with_blank = false;
};

void read_cutting(Json const& json, std::string const& from, Cutting& cutting) {
    auto const type = type_of(json);
    if (type == "Sequence") {
        for (auto const& each : json.at("pretokenizers")) {
            read_cutting(each, from, cutting);
        }
    } else if (type == "ByteLevel") {
        cutting.byte_level = true;
        cutting.begins_with_blank = json.value("add_prefix_space", false);
        if (json.value("use_regex", true)) {
            cutting.patterns.emplace_back(gpt2_words);
        }
    } else if (type == "Split") {
        auto const& pattern = json.at("pattern");
        if (!pattern.contains("Regex") || json.value("invert", false) ||
            json.value("behavior", std::string()) != "Isolated") {
            refuse(from, "its pre_tokenizer Split does not isolate the matches of a Regex");
        }
        if (cutting.byte_level) {
            refuse(from, "its pre_tokenizer splits again after ByteLevel");
        }
        cutting.patterns.push_back(pattern.at("Regex").get<std::string>());
    } else {
        refuse(from,
               type.empty()
                   ? std::string("its pre_tokenizer, or a part of it, is missing or has no type")
                   : concat("its pre_tokenizer is ", type, ", not ByteLevel"));
    }
}

std::pair<std::string, std::string> merge_of(Json const& json) {
    if (json.is_array()) {
        return {json.at(0).get<std::string>(), json.at(1).get<std::string>()};
    }
    auto const text = json.get<std::string>();
    auto const blank = text.find(' ');
    return {text.substr(0, blank), blank == std::string::npos ? "" : text.substr(blank + 1)};
}

void require_known(Json const& file, std::string const& from) {
    auto const& model = file.at("model");
    auto const type = model.contains("type") ? type_of(model) : "BPE"; // of old files
    if (type != "BPE") {
        refuse(from, concat("its model is ", type, ", not BPE"));
    }
    if (is_set(file, "normalizer")) {
        refuse(from, concat("its normalizer ", type_of(file.at("normalizer")), " changes texts"));
    }
    for (auto const* const key :
         {"byte_fallback", "continuing_subword_prefix", "dropout", "end_of_word_suffix"}) {
        if (is_set(model, key) && model.at(key) != Json(0.0)) {
            refuse(from, concat("its model has ", key, ", which is not supported"));
        }
    }
    for (auto const& added : file.value("added_tokens", Json::array())) {
        for (auto const* const key : {"lstrip", "rstrip", "single_word"}) {
            if (is_set(added, key)) {
                refuse(from, concat("its added token ", added.at("content").get<std::string>(),
                                    " has ", key, ", which is not supported"));
            }
        }
    }
}

} // namespace

Tokenizer Tokenizer::of_json(std::string const& json, std::string const& from) {
    try {
        auto const file =
            parsed_json(json, [&](std::string const& why) { damaged(from, concat("it ", why)); });
        require_known(file, from);
        auto const& model = file.at("model");
        Tokenizer made;
        made.json_ = json;
        auto const added_tokens = file.value("added_tokens", Json::array());
        auto const end = std::min(max_tokens, max_gap + std::ssize(model.at("vocab")) +
                                                  std::ssize(added_tokens));
        auto const take = [&](std::string const& bytes, Json const& id) {
            auto const number = id_of(id, end, from);
            auto const at = static_cast<std::size_t>(number);
            if (at >= made.bytes_.size()) {
                made.bytes_.resize(at + 1);
                made.special_.resize(at + 1, true); // until a text is known
            }
            // Added tokens may stand among the others, too.
            if (!made.special_[at] && made.bytes_[at] != bytes) {
                damaged(from, concat("two of its tokens have the id ", number));
            }
            made.bytes_[at] = bytes;
            made.special_[at] = false;
            return number;
        };
        std::unordered_map<std::string, Token> places;
        for (auto const& [letters, number] : model.at("vocab").items()) {
            places.emplace(letters, take(bytes_of_letters(letters), number));
        }
        std::array<Token, 256> of_byte{};
        of_byte.fill(no_token);
        for (unsigned byte = 0; byte < of_byte.size(); ++byte) {
            std::string const text(1, static_cast<char>(byte));
            auto const found = places.find(letters_of(text));
            if (found == places.end()) {
                refuse(from, concat("it has no token for the byte ", byte));
            }
            of_byte[byte] = found->second;
        }
        std::vector<Merge> merges;
        for (auto const& each : model.at("merges")) {
            auto const [left, right] = merge_of(each);
            auto const place = [&](std::string const& letters) {
                auto const found = places.find(letters);
                if (found == places.end()) {
                    damaged(from, concat("its merge ", left, " ", right, " makes ", letters,
                                         ", which is not a token"));
                }
                return found->second;
            };
            merges.push_back({place(left), place(right), place(left + right)});
        }
        made.pairs_ = BytePairs(of_byte, merges);
        for (auto const& added : added_tokens) {
            auto const content = added.at("content").get<std::string>();
            auto const number = take(content, added.at("id"));
            made.special_[static_cast<std::size_t>(number)] = added.value("special", false);
            if (!content.empty()) {
                made.set_apart_.emplace(content, number);
                made.set_apart_begin_ += content.front();
            }
        }
        Cutting cutting;
        read_cutting(file.value("pre_tokenizer", Json()), from, cutting);
        if (!cutting.byte_level) {
            refuse(from, "its pre_tokenizer is not ByteLevel");
        }
        made.begins_with_blank_ = cutting.begins_with_blank;
        for (auto const& pattern : cutting.patterns) {
            made.patterns_.emplace_back(pattern);
        }
        made.whole_words_first_ = model.value("ignore_merges", false);
        if (made.whole_words_first_) {
            for (auto const& [letters, number] : places) {
                made.of_bytes_.emplace(bytes_of_letters(letters), number);
            }
        }
        return made;
    } catch (nlohmann::json::exception const& error) {
        damaged(from, concat("it is not valid JSON of a tokenizer (", error.what(), ")"));
    }
}

Tokenizer
Tokenizer::learnt(std::int64_t tokens,
                  std::function<void(std::function<void(std::string_view)> const&)> const& visit,
                  std::function<void()> const& before_merge) {
    if (tokens < 257 || tokens > max_tokens) {
        throw Error(ExitCode::usage,
                    {concat("--vocabulary ", tokens),
                     "a vocabulary needs 256 tokens for bytes and one token for the end of a text",
                     concat("Set --vocabulary to a number from 257 to ", max_tokens)});
    }
    Pattern const words(gpt2_words);
    std::map<std::string, std::int64_t> counts;
    visit([&](std::string_view text) {
        words.cut(text, [&](std::string_view word) { ++counts[std::string(word)]; });
    });
    // Numbered in the order of their letters.
    std::map<std::string, unsigned char> order;
    for (unsigned byte = 0; byte < 256; ++byte) {
        order.emplace(letters_of(std::string(1, static_cast<char>(byte))),
                      static_cast<unsigned char>(byte));
    }
    std::array<Token, 256> of_byte{};
    std::vector<std::string> letters;
    for (auto const& [letter, byte] : order) {
        of_byte[byte] = static_cast<Token>(letters.size());
        letters.push_back(letter);
    }
    auto const merges = learn_merges(counts, of_byte, 256, tokens - 1, before_merge);
    auto merged = Json::array();
    for (auto const& merge : merges) {
        auto const& left = letters[static_cast<std::size_t>(merge.left)];
        auto const& right = letters[static_cast<std::size_t>(merge.right)];
        merged.push_back(concat(left, " ", right));
        letters.push_back(left + right);
    }
    auto vocabulary = Json::object();
    for (std::size_t number = 0; number < letters.size(); ++number) {
        vocabulary[letters[number]] = number;
    }
    Json const level{{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", true},
                     {"use_regex", true}};
    Json const file{{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", Json::array({{{"id", letters.size()},
                                                   {"content", end_name},
                                                   {"single_word", false},
                                                   {"lstrip", false},
                                                   {"rstrip", false},
                                                   {"normalized", false},
                                                   {"special", true}}})},
                    {"normalizer", nullptr},
                    {"pre_tokenizer", level},
                    {"post_processor", nullptr},
                    {"decoder", level},
                    {"model",
                     {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", false},
                      {"vocab", vocabulary},
                      {"merges", merged}}}};
    return of_json(file.dump(), "that was learnt");
}

std::optional<Token> Tokenizer::end_of_text() const {
    for (auto const* const name : {end_name, "<|end_of_text|>", "</s>"}) {
        if (auto const found = set_apart_.find(name); found != set_apart_.end()) {
            return found->second;
        }
    }
    return std::nullopt;
}

std::vector<std::uint8_t> Tokenizer::lengths() const {
    std::vector<std::uint8_t> lengths;
    for (std::size_t number = 0; number < bytes_.size(); ++number) {
        lengths.push_back(special_[number] ? std::uint8_t{0}
                                           : static_cast<std::uint8_t>(std::min<std::size_t>(
                                                 bytes_[number].size(), 255)));
    }
    return lengths;
}

void Tokenizer::encode_words(std::string_view text, std::vector<Token>& into) const {
    std::string with_blank;
    if (begins_with_blank_ && !text.empty() && text.front() != ' ') {
        with_blank = concat(" ", text);
        text = with_blank;
    }
    std::function<void(std::string_view, std::size_t)> const cut = [&](std::string_view part,
                                                                       std::size_t number) {
        if (number < patterns_.size()) {
            patterns_[number].cut(part, [&](std::string_view word) { cut(word, number + 1); });
            return;
        }
        if (whole_words_first_) {
            if (auto const found = of_bytes_.find(std::string(part)); found != of_bytes_.end()) {
                into.push_back(found->second);
                return;
            }
        }
        pairs_.encode(part, into);
    };
    cut(text, 0);
}

std::vector<Token> Tokenizer::encode(std::string_view text, std::string const& from) const {
    static_cast<void>(decoded(text, from)); // it is UTF-8
    std::vector<Token> tokens;
    std::size_t done = 0;
    for (auto at = text.find_first_of(set_apart_begin_); at < text.size();
         at = text.find_first_of(set_apart_begin_, at)) {
        // Of two that begin alike the longer comes first.
        auto const found = std::ranges::find_if(
            set_apart_, [&](auto const& each) { return text.substr(at).starts_with(each.first); });
        if (found == set_apart_.end()) {
            ++at;
            continue;
        }
        encode_words(text.substr(done, at - done), tokens);
        tokens.push_back(found->second);
        done = at += found->first.size();
    }
    encode_words(text.substr(done), tokens);
    return tokens;
}

std::string Tokenizer::decode(std::span<Token const> tokens) const {
    std::string text;
    for (auto const token : tokens) {
        auto const at = static_cast<std::size_t>(token);
        if (token >= 0 && at < bytes_.size() && !special_[at]) {
            text += bytes_[at];
        }
    }
    return text;
}

} // namespace lockstep::text
