#include "base/arguments.hpp"

#include "base/arrival.hpp"
#include "base/letters.hpp"
#include "base/notice.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace lockstep {

namespace {

/// A digit behind a dash is a number.
bool begins_a_name(char letter) {
    return is_alphanumeric(letter) && (letter < '0' || letter > '9');
}

/// Takes the words of one command line, from left to right.
class Parser {
  public:
    Parser(Options const& options, std::vector<std::string> const& words)
        : options_(options), words_(words) {}

    Words parse() {
        while (at_ < words_.size()) {
            auto const& word = words_[at_++];
            auto const equals = word.find('=');
            if (word.size() > 1 && word[0] == '-' && begins_a_name(word[1])) {
                refuse_one_dash(word);
            } else if (!word.starts_with("--")) {
                found_.positions.push_back(word);
            } else if (options_.nearest_key != nullptr &&
                       word.substr(0, equals).find('.') != word.npos) {
                take_key(word, equals);
            } else {
                take_option(word, equals);
            }
        }
        require_consistent();
        return std::move(found_);
    }

  private:
    [[noreturn]] void refuse(std::string const& what, std::string const& why,
                             std::string const& hint = "") const {
        throw Error(
            ExitCode::usage,
            {what, why, concat(hint, hint.empty() ? "" : " ", "Usage: ", options_.usage())});
    }

    /// A file of such a name is given as ./-NAME.
    [[noreturn]] void refuse_one_dash(std::string const& word) const {
        auto const name = concat("-", word.substr(0, word.find('=')));
        bool const of_deck = options_.nearest_key != nullptr && name.find('.') != name.npos;
        auto const near = near_option(name);
        refuse(concat("unknown option ", word), "options begin with two dashes",
               !near.empty() ? concat("Did you mean ", near, "?")
               : of_deck     ? concat("Did you mean ", name, "?")
                             : std::string());
    }

    /// With the word behind it, unless its value stands in it; one that lacks it is config's to
    /// refuse.
    void take_key(std::string const& word, std::size_t equals) {
        found_.keys.push_back(word);
        if (equals == std::string::npos && at_ < words_.size()) {
            found_.keys.push_back(words_[at_++]);
        }
    }

    void take_option(std::string const& word, std::size_t equals) {
        auto const& row = row_of(word.substr(0, equals));
        bool const has_value = equals != std::string::npos;
        if (row.value.empty()) {
            if (has_value) {
                throw Error(ExitCode::usage, {concat("option ", word), "it takes no value",
                                              concat("Write ", row.name)});
            }
            given_[row.name];
            row.take("");
            return;
        }
        if (!has_value && at_ == words_.size()) {
            throw Error(ExitCode::usage, {concat("option ", row.name), "its value is missing",
                                          concat("Write ", row.name, " ", row.value)});
        }
        auto const value = has_value ? word.substr(equals + 1) : words_[at_++];
        if (value.empty() && !row.takes_blank) {
            return;
        }
        tell_replaced(row.name, value);
        given_[row.name] = value;
        try {
            row.take(value);
        } catch (RefusedValue const& refused) {
            auto const what = concat(row.name, " ", value);
            if (refused.next.empty()) {
                refuse(what, refused.why);
            }
            throw Error(ExitCode::usage, {what, refused.why, refused.next});
        }
    }

    void tell_replaced(std::string const& name, std::string const& value) const {
        auto const before = given_.find(name);
        if (before != given_.end() && before->second != value && launched_rank() == 0) {
            notice(concat("ignored: ", name, " ", before->second,
                          ", because the same command line then sets ", name, " ", value));
        }
    }

    Option const& row_of(std::string const& name) const {
        auto const row = std::ranges::find(options_.rows, name, &Option::name);
        if (row != options_.rows.end()) {
            return *row;
        }
        auto const near = near_option(name);
        bool const takes_keys = options_.nearest_key != nullptr;
        refuse(concat("unknown option ", name),
               takes_keys ? "it is neither an option nor a key of the deck (--section.key VALUE)"
                          : concat(options_.command, " has no such option"),
               near.empty() ? std::string() : concat("Did you mean ", near, "?"));
    }

    /// The option, or the key of the deck, that "--name" was probably to be; else empty.
    std::string near_option(std::string const& name) const {
        std::vector<std::string> names;
        std::ranges::transform(options_.rows, std::back_inserter(names), &Option::name);
        auto const near = nearest_name(name, names);
        if (!near.empty() || options_.nearest_key == nullptr) {
            return near;
        }
        auto const key = options_.nearest_key(name.substr(2));
        return key.empty() ? "" : concat("--", key);
    }

    void require_consistent() const {
        auto const both = std::ranges::count_if(
            options_.exclusive, [&](auto const& name) { return given_.contains(name); });
        if (both > 1) {
            throw Error(ExitCode::usage,
                        {list_text(options_.exclusive), "these options exclude each other",
                         "Give only one of these options"});
        }
        for (auto const& row : options_.rows) {
            if (row.required && !given_.contains(row.name)) {
                refuse(concat(row.name, " is missing"), "it has no default");
            }
        }
        auto const count = found_.positions.size();
        auto const& allowed = options_.positions;
        if (count < allowed.min || count > allowed.max) {
            refuse(amount_of(count, "argument"),
                   count < allowed.min ? "an argument is missing" : "there are too many");
        }
    }

    Options const& options_;
    std::vector<std::string> const& words_;
    std::size_t at_ = 0;
    Words found_;
    std::map<std::string, std::string> given_;
};

} // namespace

std::vector<std::string> Words::all() const {
    auto words = positions;
    words.insert(words.end(), keys.begin(), keys.end());
    return words;
}

Words Options::parse(std::vector<std::string> const& words) const {
    return Parser(*this, words).parse();
}

} // namespace lockstep
