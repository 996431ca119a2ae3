#include "find_files.hpp"

#include "base/letter_case.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <map>
#include <sys/stat.h>

#include "natural_order.hpp"

namespace lockstep::import {

namespace fs = std::filesystem;

namespace {

bool has_ending(fs::path const& path, std::vector<std::string> const& endings) {
    auto const ending = lower_case(path.extension().string());
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

bool is_hidden(fs::path const& path) {
    return path.filename().string().starts_with('.');
}

std::vector<fs::path> entries_of(fs::path const& folder) {
    std::error_code failure;
    std::vector<fs::path> entries;
    for (fs::directory_iterator at(folder, failure); !failure && at != fs::end(at);
         at.increment(failure)) {
        entries.push_back(at->path());
    }
    if (failure) {
        throw Error(ExitCode::no_input, {concat("cannot list ", folder.string()), failure.message(),
                                         "Name a directory that can be read"});
    }
    // Directories give their entries in any order.
    std::sort(entries.begin(), entries.end(), [](fs::path const& a, fs::path const& b) {
        return natural_less(a.native(), b.native());
    });
    return entries;
}

constexpr char const* links_above = "links to a folder above them";
constexpr char const* no_extension = "without an extension";
constexpr char const* hidden = "hidden";

std::string kind_text(std::string const& kind, bool one) {
    std::string const file = one ? "file" : "files";
    if (kind == links_above) {
        return one ? "link to a folder above it" : links_above;
    }
    if (kind == hidden) {
        return concat("hidden ", file, one ? " or folder" : " or folders");
    }
    return kind == no_extension ? concat(file, " ", kind) : concat(kind, " ", file);
}

/// Walks through folders and links to folders.
class TreeWalk {
  public:
    TreeWalk(std::vector<std::string> const& endings, std::vector<std::string> const& frame_endings)
        : endings_(endings), frame_endings_(frame_endings) {}

    void enter(fs::path const& folder) {
        above_.push_back(place_of(folder));
        bool frames = false;
        for (auto const& path : entries_of(folder)) {
            if (is_hidden(path)) {
                count_skipped(hidden, path);
            } else if (is_folder(path)) {
                enter_below(path);
            } else if (has_ending(path, frame_endings_)) {
                frames = true;
            } else if (has_ending(path, endings_)) {
                tree_.files.push_back({path, names_});
            } else {
                auto const ending = path.extension().string();
                count_skipped(ending.empty() ? no_extension : ending, path);
            }
        }
        if (frames) {
            auto folders = names_;
            if (!folders.empty()) {
                folders.pop_back();
            }
            tree_.files.push_back({folder, folders});
        }
        above_.pop_back();
    }

    FoundTree result() && {
        for (auto const& [kind, found] : skipped_) {
            tree_.skipped.push_back(concat(found.count, " ", kind_text(kind, found.count == 1),
                                           ", such as ", found.first));
        }
        std::sort(tree_.files.begin(), tree_.files.end(),
                  [](FoundFile const& a, FoundFile const& b) {
                      return natural_less(a.path.native(), b.path.native());
                  });
        return std::move(tree_);
    }

  private:
    struct Skipped {
        std::int64_t count = 0;
        std::string first;
    };

    /// A link to nothing may have been a class.
    bool is_folder(fs::path const& path) const {
        std::error_code failure;
        auto const type = fs::status(path, failure).type();
        if (type == fs::file_type::not_found && fs::is_symlink(path, failure) &&
            !has_ending(path, endings_) && !has_ending(path, frame_endings_)) {
            throw Error(ExitCode::no_input, {concat("cannot open ", path.string()),
                                             "it is a link to a file that does not exist",
                                             "Put that file back, or remove the link"});
        }
        return type == fs::file_type::directory;
    }
    void enter_below(fs::path const& path) {
        if (std::find(above_.begin(), above_.end(), place_of(path)) != above_.end()) {
            count_skipped(links_above, path);
            return;
        }
        names_.push_back(path.filename().string());
        tree_.folders.push_back(names_);
        enter(path);
        names_.pop_back();
    }
    void count_skipped(std::string const& kind, fs::path const& path) {
        auto& found = skipped_[kind];
        if (found.count++ == 0) {
            found.first = path.string();
        }
    }

    std::vector<std::string> const& endings_;
    std::vector<std::string> const& frame_endings_;
    std::vector<std::pair<dev_t, ino_t>> above_; ///< the folders that are being walked through
    std::vector<std::string> names_;             ///< of those, below the source
    std::map<std::string, Skipped> skipped_;
    FoundTree tree_;
};

} // namespace

std::pair<dev_t, ino_t> place_of(fs::path const& path) {
    struct stat info {};
    ::stat(path.c_str(), &info); // what is wrong with it shows when it is read
    return {info.st_dev, info.st_ino};
}

FoundTree find_files(fs::path const& source, std::vector<std::string> const& endings,
                     std::vector<std::string> const& frame_endings) {
    TreeWalk walk(endings, frame_endings);
    walk.enter(source);
    return std::move(walk).result();
}

std::vector<fs::path> files_in(fs::path const& folder, std::vector<std::string> const& endings) {
    auto files = entries_of(folder);
    std::erase_if(
        files, [&](fs::path const& file) { return is_hidden(file) || !has_ending(file, endings); });
    return files;
}

} // namespace lockstep::import
