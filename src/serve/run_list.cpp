#include "run_list.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::serve {

namespace {

constexpr std::size_t max_runs = 1000;
constexpr std::size_t max_searches = 100;
constexpr int max_levels = 3;

/// Whether the directory itself has this file: what a link leads to is not shown.
bool has(std::filesystem::path const& directory, char const* name) {
    std::error_code failure;
    return std::filesystem::is_regular_file(symlink_status(directory / name, failure));
}

std::vector<std::filesystem::path> directories_in(std::filesystem::path const& directory) {
    std::vector<std::filesystem::path> found;
    std::error_code failure;
    for (std::filesystem::directory_iterator entry(directory, failure), end;
         !failure && entry != end; entry.increment(failure)) {
        std::error_code ignored;
        if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
            found.push_back(entry->path());
        }
    }
    std::ranges::sort(found);
    return found;
}

} // namespace

RunList::RunList(std::vector<std::filesystem::path> roots, std::optional<double> carbon_intensity)
    : roots_(std::move(roots)), carbon_intensity_(carbon_intensity) {
    for (auto& root : roots_) {
        std::error_code failure;
        if (!std::filesystem::is_directory(root, failure)) {
            throw Error(ExitCode::no_input,
                        {concat(root.string(), " cannot be shown"),
                         failure ? failure.message() : std::string("it is not a directory"),
                         "Name the directory of a run, or a directory that contains runs"});
        }
        root = std::filesystem::canonical(root);
    }
    look_again();
}

void RunList::look_again() {
    for (auto const& root : roots_) {
        look_into(root, max_levels);
    }
}

void RunList::look_into(std::filesystem::path const& directory, int levels) {
    bool const known = std::ranges::find(searches_, directory) != searches_.end();
    if (!known && searches_.size() < max_searches && has(directory, "search.jsonl")) {
        searches_.push_back(directory);
    }
    if (has(directory, "metrics.jsonl")) {
        add(directory);
    } else if (levels > 0) {
        for (auto const& below : directories_in(directory)) {
            look_into(below, levels - 1);
        }
    }
}

void RunList::add(std::filesystem::path const& directory) {
    bool const known =
        std::ranges::any_of(runs_, [&](auto const& run) { return run->directory() == directory; });
    if (!known && runs_.size() < max_runs) {
        runs_.push_back(std::make_unique<Run>(directory));
    }
}

} // namespace lockstep::serve
