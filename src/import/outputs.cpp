#include "outputs.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <string_view>

namespace lockstep::import {

namespace fs = std::filesystem;

namespace {

/// Whether the end of a shard's name is there: -00000-of-00012.
bool is_shard_number(std::string_view text) {
    auto const numeric = [](std::string_view digits) {
        return digits.size() >= 5 && std::all_of(digits.begin(), digits.end(),
                                                 [](char c) { return c >= '0' && c <= '9'; });
    };
    auto const of = text.find("-of-");
    return text.starts_with('-') && of != text.npos && numeric(text.substr(1, of - 1)) &&
           numeric(text.substr(of + 4));
}

/// A set's file and its shards, among the files of their folder.
void add_set(std::vector<fs::path>& found, fs::path const& whole) {
    auto const folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
    auto const stem = whole.stem().string();
    std::error_code none; // no folder, no files
    for (fs::directory_iterator at(folder, none); !none && at != fs::end(at); at.increment(none)) {
        auto const& path = at->path();
        auto const name = path.stem().string();
        bool const ours = path.extension() == whole.extension() && name.starts_with(stem);
        if (ours && (name == stem || is_shard_number(std::string_view(name).substr(stem.size())))) {
            found.push_back(whole.parent_path() / path.filename());
        }
    }
}

} // namespace

std::vector<fs::path> outputs_at(fs::path const& out) {
    std::vector<fs::path> found;
    std::error_code none;
    if (!fs::is_directory(out, none)) {
        add_set(found, out);
    } else {
        for (auto const* const set : {"train.h5", "validation.h5", "test.h5"}) {
            add_set(found, out / set);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

void require_place(fs::path const& out, bool several_sets, bool may_replace) {
    std::error_code none;
    bool const there = fs::exists(out, none);
    bool const folder = fs::is_directory(out, none);
    if (there && folder != several_sets) {
        throw Error(ExitCode::cannot_create,
                    {out.string(),
                     folder ? "it is a directory, but a single set is written to a file"
                            : "it is a file, but several sets are written to a directory",
                     "Name another OUT"});
    }
    auto const found = may_replace ? std::vector<fs::path>{} : outputs_at(out);
    if (!found.empty()) {
        throw Error(ExitCode::cannot_create, {concat(found.front().string(), " already exists"),
                                              "an import replaces a data set only with --overwrite",
                                              "Name another OUT, or give --overwrite"});
    }
}

} // namespace lockstep::import
