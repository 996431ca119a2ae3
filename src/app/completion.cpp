#include "completion.hpp"

#include "app/command.hpp"
#include "base/text.hpp"
#include "config/listed_keys.hpp"

#include <algorithm>
#include <array>
#include <regex>

#include "commands.hpp"
#include "help_rows.hpp"
#include "import_options.hpp"
#include "kind_listing.hpp"

namespace lockstep::app {

namespace {

using Words = std::vector<std::string>;
using Candidates = std::vector<Candidate>;

Candidates texts(Words const& words) {
    Candidates candidates;
    for (auto const& word : words) {
        candidates.push_back({word});
    }
    return candidates;
}

/// Completes one command line.
class Completer {
  public:
    explicit Completer(Words words) : words_(std::move(words)) {
        current_ = words_.back();
        words_.pop_back();
    }

    Completion complete() {
        if (words_.empty() || (words_[0] == "help" && words_.size() == 1)) {
            add_commands();
            return std::move(found_);
        }
        auto const commands = all_commands();
        auto const command = std::ranges::find(commands, words_[0], &Command::name);
        if (command == commands.end()) {
            return {};
        }
        parts_ = parts_of(*command);
        Words const named(words_.begin() + 1, words_.begin() + 1 + of_part_);
        rows_ = rows_in(command->help(named));
        takes_keys_ = std::ranges::find(rows_, "--section.key", &HelpRow::name) != rows_.end();
        if (auto const equals = current_.find('=');
            current_.starts_with("--") && equals != std::string::npos) {
            prefix_ = current_.substr(0, equals + 1);
            add_values(current_.substr(0, equals));
        } else if (!words_.empty() && needs_value(words_.back())) {
            add_values(words_.back());
        } else if (current_.starts_with("-")) {
            add_options();
        } else {
            add_positions();
        }
        return std::move(found_);
    }

  private:
    void add(Candidate candidate) {
        candidate.text.insert(0, prefix_);
        if (candidate.text.starts_with(current_)) {
            found_.candidates.push_back(std::move(candidate));
        }
    }
    void add_all(Candidates candidates) {
        for (auto& candidate : candidates) {
            add(std::move(candidate));
        }
    }

    void add_commands() {
        for (auto const& command : all_commands()) {
            add({command.name, command.meaning});
        }
        if (words_.empty()) {
            add({"--help", "lists the commands"});
            add({"--version", "prints the release and its commit"});
        }
    }

    /// The subcommands of a command, or the kinds of an import; `of_part_`: how many of the words
    /// behind the command's name choose one.
    Words parts_of(Command const& command) {
        auto const is_chosen = [&](Words const& parts, std::size_t place) {
            return words_.size() > place && std::ranges::find(parts, words_[place]) != parts.end();
        };
        std::regex const part(concat("^lockstep ", command.name, " ([a-z-]+).*"));
        Words parts;
        for (auto const& line : lines_of(command.help({}))) {
            std::smatch found;
            bool const names = std::regex_match(line, found, part);
            if (names && std::ranges::find(parts, found[1].str()) == parts.end()) {
                parts.push_back(found[1]);
            }
        }
        of_part_ = is_chosen(parts, 1) ? 1 : 0;
        if (of_part_ == 1 && command.name == "data" && words_[1] == "import") {
            parts = import_kind_names();
            of_part_ = is_chosen(parts, 2) ? 2 : 1;
            return of_part_ == 2 ? Words{} : parts;
        }
        return of_part_ == 1 ? Words{} : parts;
    }

    bool needs_value(std::string const& word) const {
        if (!word.starts_with("--") || word.find('=') != std::string::npos) {
            return false;
        }
        auto const row = std::ranges::find(rows_, word, &HelpRow::name);
        bool const is_key = takes_keys_ && word.find('.') != std::string::npos;
        return is_key || (row != rows_.end() && !row->value.empty());
    }

    void add_values(std::string const& option) {
        auto const row = std::ranges::find(rows_, option, &HelpRow::name);
        if (row == rows_.end() && takes_keys_) {
            add_values_of_key(option.substr(2));
        } else if (row != rows_.end()) {
            add_values_of_option(row->value);
        }
    }

    /// "no|slurm|pbs", "png,pdf,svg", "FILE".
    void add_values_of_option(std::string const& value) {
        constexpr std::array<std::string_view, 7> names{"FILE",   "DIR",  "OUT", "RUN",
                                                        "SOCKET", ".ini", "PATH"};
        bool const small = std::ranges::none_of(value, [](char c) { return c >= 'A' && c <= 'Z'; });
        if (small && value.find('|') != std::string::npos) {
            add_all(texts(split(value, '|')));
        } else if (small && value.find(',') != std::string::npos) {
            auto const comma = current_.rfind(',');
            prefix_ = comma == std::string::npos ? prefix_ : current_.substr(0, comma + 1);
            add_all(texts(split(value, ',')));
        } else {
            found_.files = std::ranges::any_of(
                names, [&](auto name) { return value.find(name) != std::string::npos; });
        }
    }

    void add_values_of_key(std::string const& name) {
        auto const keys = config::listed_keys();
        auto const key = std::ranges::find(keys, name, &config::ListedKey::name);
        if (key == keys.end()) {
            found_.files = true; // of a model or a task: it may be anything
            return;
        }
        if (name == "model.name" || name == "task.kind") {
            add_all(kinds_of(name == "model.name" ? "models" : "tasks"));
        } else if (key->is_flag) {
            add_all(texts({"true", "false"}));
        } else {
            for (auto const& choice : key->choices) { // "local:DIRECTORY"
                auto const colon = choice.find(':');
                add({colon == std::string::npos ? choice : choice.substr(0, colon + 1)});
            }
            using config::Named;
            found_.files = key->names == Named::samples || key->names == Named::model ||
                           key->names == Named::output;
        }
    }

    void add_options() {
        for (auto const& row : rows_) {
            if (row.name != "--section.key") {
                add({row.name, row.meaning});
            }
        }
        if (takes_keys_) {
            for (auto const& key : config::listed_keys()) {
                if (!key.is_open) {
                    add({concat("--", key.name), key.meaning});
                }
            }
            add_own_keys("model", "models", "name");
            add_own_keys("task", "tasks", "kind");
        }
        add({"--help", "explains the command"});
    }

    /// Only for who asks for this section: the list of models takes half a second.
    void add_own_keys(std::string const& section, std::string const& what,
                      std::string const& chooser) {
        if (!current_.starts_with(concat("--", section, "."))) {
            return;
        }
        auto const option = concat("--", section, ".", chooser);
        std::string named;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            if (words_[i] == option && i + 1 < words_.size()) {
                named = words_[i + 1];
            } else if (words_[i].starts_with(option + "=")) {
                named = words_[i].substr(option.size() + 1);
            }
        }
        add_all(own_keys(what, named));
    }

    void add_positions() {
        if (words_[0] == "models" || words_[0] == "tasks") {
            add_all(kinds_of(words_[0]));
            return;
        }
        bool const chooses = words_.size() == of_part_ + std::size_t{1};
        add_all(chooses ? texts(parts_) : Candidates{});
        found_.files = !chooses || parts_.empty() || words_[0] == "search";
    }

    Words words_; ///< before the current one
    std::string current_;
    std::string prefix_; ///< of every candidate
    Words parts_;
    std::ptrdiff_t of_part_ = 0;
    std::vector<HelpRow> rows_;
    bool takes_keys_ = false;
    Completion found_;
};

/// Bash parts "--key=value" into three words, and replaces the last of them alone.
Words without_equals(Words const& words) {
    Words joined;
    for (auto const& word : words) {
        bool const parts = word == "=" && !joined.empty() && joined.back().starts_with("--");
        if (!parts) {
            joined.push_back(word);
        } else if (&word == &words.back()) {
            joined.emplace_back();
        }
    }
    return joined;
}

} // namespace

Completion completion_of(Words words) {
    if (words.empty()) {
        words.emplace_back();
    }
    return Completer(without_equals(words)).complete();
}

} // namespace lockstep::app
