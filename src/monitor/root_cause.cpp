#include "monitor/root_cause.hpp"

#include "base/escaped.hpp"
#include "base/file.hpp"
#include "base/letters.hpp"
#include "base/text.hpp"
#include "config/named_files.hpp"
#include "monitor/ledger.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <poll.h>
#include <unistd.h>

namespace lockstep::monitor {

namespace {

bool is_of_a_name(char letter) {
    return is_alphanumeric(letter) || letter == '-' || letter == '.' || letter == '_';
}

/// Whether `word` stands in a text, and is not a part of a longer word.
bool names(std::string const& text, std::string const& word) {
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        auto const end = at + word.size();
        if ((at == 0 || !is_of_a_name(text[at - 1])) &&
            (end == text.size() || !is_of_a_name(text[end]) || text[end] == '.')) {
            return true;
        }
    }
    return false;
}

/// Files, or datasets in them. The values of other keys are words that any sentence may have.
bool holds_names(std::string const& key) {
    using config::Named;
    auto const what = config::names_of(key);
    return what == Named::samples || what == Named::datasets || what == Named::model ||
           what == Named::cache;
}

bool names_a_file(std::string const& text, std::string const& key, std::string const& files) {
    constexpr std::size_t min = 4; // a shorter value may stand in any sentence
    bool const has_words = key == "data.cache" || key == "checkpoint.resume"; // which are no files
    auto const parts = split(files, ',');
    return std::any_of(parts.begin(), parts.end(), [&](std::string const& part) {
        bool const is_word = part == "none" || part == "memory";
        if (is_word && has_words) {
            return false;
        }
        return part.size() >= min && !is_word
                   ? names(text, part)
                   : text.find(concat(" open ", part, ": ")) != std::string::npos;
    });
}

/// " (data.train: deck.ini:5)": of a mistake in a deck, where the values stand that it is about.
std::string places_text(std::map<std::string, config::ValueOrigin> const& places,
                        Error const& error) {
    std::string const text = error.what();
    if (error.code() != ExitCode::usage && error.code() != ExitCode::no_input &&
        error.code() != ExitCode::data) {
        return "";
    }
    std::vector<std::string> found;
    for (auto const& [key, place] : places) {
        // A cure may name keys that nobody need have set.
        bool const about = names(place.is_set ? text : error.text().what, key) ||
                           (holds_names(key) && names_a_file(text, key, place.value));
        if (about && text.find(place.origin) == std::string::npos) {
            found.push_back(concat(key, ": ", place.origin));
        }
    }
    return found.empty() ? "" : concat(" (", joined(found, ", "), ")");
}

/// A launcher that is stopped reads nothing: what a full pipe does not take is not waited for.
void say(std::string const& lines) {
    constexpr int patience_ms = 3000;
    pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, patience_ms) != 0) {
        std::cerr << lines << std::flush;
    }
}

} // namespace

void RootCause::set_run(std::filesystem::path directory, Newer newer) {
    std::scoped_lock const lock(mutex_);
    directory_ = std::move(directory);
    newer_ = std::move(newer);
}

Error RootCause::seen(Error const& error) const noexcept {
    try {
        std::scoped_lock const lock(mutex_);
        if (auto const newer = newer_ ? newer_() : std::nullopt) {
            return *newer;
        }
    } catch (...) {
        // Whose the directory is cannot be known: the error speaks for itself.
    }
    return error;
}

std::filesystem::path RootCause::attempt_directory() const noexcept {
    try {
        std::scoped_lock const lock(mutex_);
        return on_record_ && has_log() && !newer_() ? directory_ : std::filesystem::path();
    } catch (...) {
        return {}; // whose it is cannot be known
    }
}

void RootCause::forget_run() {
    std::scoped_lock const lock(mutex_);
    directory_.clear();
}

void RootCause::set_on_record() {
    std::scoped_lock const lock(mutex_);
    on_record_ = true;
}

bool RootCause::has_log() const {
    std::error_code none; // a directory that cannot be looked into has none for us
    return !directory_.empty() && std::filesystem::exists(directory_ / "log.txt", none);
}

void RootCause::set_places(std::map<std::string, config::ValueOrigin> places) {
    std::scoped_lock const lock(mutex_);
    places_ = std::move(places);
}

void RootCause::tell(std::string const& cause, Error const& error) noexcept {
    try {
        std::scoped_lock const lock(mutex_);
        auto const line = escaped(concat("lockstep: root cause: ", cause, cause.empty() ? "" : ": ",
                                         error.what(), places_text(places_, error), "\n"));
        say(line);
        record(line, cause, error);
    } catch (...) {
        // It was said on standard error; a log that cannot be written is not the root cause.
    }
}

void RootCause::record(std::string const& line, std::string const& cause,
                       Error const& error) const {
    if (!has_log() || newer_()) {
        return;
    }
    File::append(directory_ / "log.txt").append_text(line);
    std::error_code absent;
    auto const recorded = std::filesystem::file_size(directory_ / "metrics.jsonl", absent);
    if (!on_record_ && !absent && recorded > 0) {
        return; // the records are those of attempts before this one
    }
    nlohmann::ordered_json const record{
        {"event", "failure"},      {"cause", cause},
        {"message", error.what()}, {"exit_code", static_cast<int>(error.code())},
        {"time", utc_now()},       {"elapsed_s", since_start_.seconds()}};
    // A path in the message may be no UTF-8.
    auto const text = record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    File::append(directory_ / "metrics.jsonl").append_text(text + "\n");
    complete_history(directory_);
}

void RootCause::remark(std::string const& lines) noexcept {
    try {
        std::scoped_lock const lock(mutex_);
        say(escaped(lines));
        if (has_log()) {
            File::append(directory_ / "log.txt").append_text(escaped(lines));
        }
    } catch (...) {
        // It was said on standard error.
    }
}

void RootCause::note(std::string const& lines) noexcept {
    try {
        std::scoped_lock const lock(mutex_);
        if (has_log()) {
            File::append(directory_ / "log.txt").append_text(escaped(lines));
            return;
        }
    } catch (...) {
        // Then on standard error.
    }
    say(lines);
}

} // namespace lockstep::monitor
