#include "federate/deck_files.hpp"

#include "base/text.hpp"

#include <map>

#include "federate/file_digest.hpp"

namespace lockstep::federate {

namespace {

std::map<std::string, std::string> paths_of(config::Deck const& deck) {
    std::map<std::string, std::string> paths;
    auto const own = [&](char const* key) {
        auto const found = deck.model.own.find(key);
        return found == deck.model.own.end() ? std::string() : found->second;
    };
    auto const compiled = own("compiled");
    if (compiled.empty() || compiled == "none") {
        paths["model.file"] = own("file");
    }
    paths["distill.teacher"] = deck.distill.teacher;
    paths["distill.teacher-deck"] = deck.distill.teacher_deck;
    std::erase_if(paths, [](auto const& each) { return each.second.empty(); });
    return paths;
}

std::string digest_of_file(std::filesystem::path const& path) {
    return hex_text(digest_of(File::open_read(path)));
}

} // namespace

std::string files_of(config::Deck const& deck) {
    std::vector<std::string> lines;
    for (auto const& [key, path] : paths_of(deck)) {
        lines.push_back(concat(key, " ", digest_of_file(path)));
    }
    return joined(lines, "\n");
}

void require_same_files(Charter const& charter, config::Deck const& deck) {
    auto const paths = paths_of(deck);
    for (auto const& line : split(charter.files, '\n')) {
        auto const key = line.substr(0, line.find(' '));
        auto const path = paths.find(key);
        if (path == paths.end() || concat(key, " ", digest_of_file(path->second)) == line) {
            continue; // the deck itself is compared elsewhere
        }
        throw Error(
            ExitCode::usage,
            {concat(key, " = ", path->second, " is not the federation's file"),
             "the contents differ from the file that the coordinator began with",
             "Copy the file from the coordinator, because all sites must train the same model"});
    }
}

} // namespace lockstep::federate
