#include "federate/deck_files.hpp"

#include "base/text.hpp"
#include "config/named_files.hpp"
#include "federate/deck_keys.hpp"
#include "federate/file_digest.hpp"

#include <span>

namespace lockstep::federate {

namespace {

constexpr char const* model_file = "model.file";

std::string own_value(config::Deck const& deck, char const* key) {
    auto const found = deck.model.own.find(key);
    return found == deck.model.own.end() ? std::string() : found->second;
}

CodeFiles paths_of(config::Deck const& deck, CodeFiles paths) {
    for (auto const& setting : config::settings(deck)) {
        if (config::names_of(setting.key) == config::Named::model &&
            part_of(setting) == Part::code && !setting.value.empty()) {
            paths[setting.key] = {setting.value};
        }
    }
    return paths;
}

bool is_compiled(config::Deck const& deck) {
    auto const compiled = own_value(deck, "compiled");
    return !compiled.empty() && compiled != "none";
}

Digest digest_of_common(std::string const& path, ReadCommon const& read) {
    Digester digester;
    read(path, [&](std::string const& name, std::string_view bytes) {
        digester.add(concat(name, " ", bytes.size(), "\n")).add(std::as_bytes(std::span(bytes)));
    });
    return digester.digest();
}

/// A line of Charter::files.
std::string line_of(std::string const& key, std::vector<std::string> const& paths,
                    config::Deck const& deck, ReadCommon const& read) {
    bool const common = key == model_file && is_compiled(deck);
    auto line = key;
    for (auto const& path : paths) {
        line += concat(" ", hex_text(common ? digest_of_common(path, read)
                                            : digest_of(File::open_read(path))));
    }
    return line;
}

std::string key_of(std::string const& line) {
    return line.substr(0, line.find(' '));
}

} // namespace

std::string files_of(config::Deck const& deck, CodeFiles const& code, ReadCommon const& read) {
    std::vector<std::string> lines;
    for (auto const& [key, paths] : paths_of(deck, code)) {
        lines.push_back(line_of(key, paths, deck, read));
    }
    return joined(lines, "\n");
}

std::set<std::string> keys_of_files(Charter const& charter) {
    std::set<std::string> keys;
    for (auto const& line : split(charter.files, '\n')) {
        keys.insert(key_of(line));
    }
    return keys;
}

void require_same_files(Charter const& charter, config::Deck const& deck, CodeFiles const& code,
                        ReadCommon const& read) {
    auto const all = paths_of(deck, code);
    for (auto const& line : split(charter.files, '\n')) {
        auto const found = all.find(key_of(line));
        if (found == all.end() || line_of(found->first, found->second, deck, read) == line) {
            continue; // the deck itself is compared elsewhere
        }
        auto const& [key, paths] = *found;
        throw Error(
            ExitCode::usage,
            {concat(key, " = ", joined(paths, ", "), " is not the federation's file"),
             "the contents differ from the file that the coordinator began with",
             concat(
                 "Copy the file from the coordinator, because all sites must train the same model",
                 code.contains(key) ? ", with the same code" : "")});
    }
}

} // namespace lockstep::federate
