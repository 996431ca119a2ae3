#include "import_listing.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace lockstep::data {

namespace {

/// Folders that are sets, not classes.
std::string set_named(std::string const& folder) {
    if (folder == "val" || folder == "valid") {
        return "validation";
    }
    return folder == "train" || folder == "validation" || folder == "test" ? folder : "";
}

/// A file below the source and the names of the folders on the way to it.
struct FoundFile {
    std::filesystem::path path;
    std::vector<std::string> folders;
};

std::vector<FoundFile> find_files(ListingOptions const& options) {
    namespace fs = std::filesystem;
    std::error_code failure;
    std::vector<FoundFile> files;
    auto const follow = fs::directory_options::follow_directory_symlink;
    fs::recursive_directory_iterator at(options.source, follow, failure);
    for (; !failure && at != fs::end(at); at.increment(failure)) {
        auto const path = at->path();
        bool const frame = has_ending(path, options.frame_endings);
        if (!at->is_regular_file() || !(frame || has_ending(path, options.endings))) {
            continue;
        }
        FoundFile file{frame ? path.parent_path() : path, {}};
        for (auto const& folder : file.path.lexically_relative(options.source).parent_path()) {
            file.folders.push_back(folder.string());
        }
        files.push_back(std::move(file));
    }
    if (failure) {
        throw Error(ExitCode::no_input, {concat("cannot list ", options.source.string()),
                                         failure.message(), "Name a directory that can be read"});
    }
    // Directories give their entries in any order.
    std::sort(files.begin(), files.end(),
              [](FoundFile const& a, FoundFile const& b) { return a.path < b.path; });
    // A folder was found once for each of its frames.
    files.erase(
        std::unique(files.begin(), files.end(),
                    [](FoundFile const& a, FoundFile const& b) { return a.path == b.path; }),
        files.end());
    return files;
}

Listing from_folders(ListingOptions const& options) {
    if (!options.split_by.empty() && options.split_by != "folder") {
        throw Error(ExitCode::usage, {concat("--split-by ", options.split_by),
                                      "without --labels there are only folders",
                                      "Write --split-by folder: the one below the class"});
    }
    Listing listing;
    std::vector<std::string> classes;
    for (auto& file : find_files(options)) {
        auto& folders = file.folders;
        Listing::Entry entry{file.path, 0, {}, {}};
        if (!folders.empty() && !set_named(folders.front()).empty()) {
            entry.set = set_named(folders.front());
            folders.erase(folders.begin());
        }
        if (folders.empty() || (!options.split_by.empty() && folders.size() < 2)) {
            throw Error(ExitCode::data,
                        {file.path.string(),
                         folders.empty() ? "it lies in no folder of a class"
                                         : "it lies in no folder below its class to split by",
                         "Put it into one, or name the classes in a table: --labels FILE.csv"});
        }
        entry.group =
            options.split_by.empty() ? file.path.string() : concat(folders[0], "/", folders[1]);
        classes.push_back(folders[0]);
        listing.entries.push_back(std::move(entry));
    }
    std::set<std::string> const names(classes.begin(), classes.end());
    listing.class_names.assign(names.begin(), names.end());
    for (std::size_t i = 0; i < classes.size(); ++i) {
        listing.entries[i].label = std::distance(names.begin(), names.find(classes[i]));
    }
    return listing;
}

Listing from_table(ListingOptions const& options) {
    auto const table = read_csv(options.labels.path);
    auto const file = table.column(options.labels.file);
    auto const label = table.column(options.labels.label);
    auto const group = options.split_by.empty() ? file : table.column(options.split_by);
    std::set<std::string> names;
    for (auto const& row : table.rows) {
        if (row.fields[label].empty()) {
            throw Error(ExitCode::data, {concat(table.path.string(), ", line ", row.line),
                                         concat("its ", options.labels.label, " is empty"),
                                         "Name the class of every file"});
        }
        names.insert(row.fields[label]);
    }
    Listing listing;
    listing.class_names = ordered_names(names);
    for (auto const& row : table.rows) {
        auto const at =
            std::find(listing.class_names.begin(), listing.class_names.end(), row.fields[label]);
        listing.entries.push_back(
            {listed_file(table, row, file, options.source, !options.frame_endings.empty()),
             at - listing.class_names.begin(), row.fields[group], listed_set(table, row)});
    }
    return listing;
}

} // namespace

std::string Listing::identity() const {
    std::string text = joined(class_names, ",") + "\n";
    for (auto const& entry : entries) {
        std::error_code missing; // a file that is not there is a bad item, told when it is read
        auto const there = std::filesystem::exists(entry.path, missing);
        text += concat(there ? stamp(entry.path) : entry.path.string() + " missing\n", entry.label,
                       " ", entry.group, " ", entry.set, "\n");
    }
    return text;
}

std::filesystem::path listed_file(CsvTable const& table, CsvTable::Row const& row,
                                  std::size_t column, std::filesystem::path const& source,
                                  bool folders) {
    auto const& name = row.fields[column];
    auto path = source / name;
    std::error_code missing; // that is told when it is read
    if (name.empty() || (!folders && std::filesystem::is_directory(path, missing))) {
        throw Error(ExitCode::data,
                    {concat(table.path.string(), ", line ", row.line),
                     name.empty() ? concat("its ", table.columns[column], " is empty")
                                  : concat(path.string(), " is a directory"),
                     "Name a file in every line"});
    }
    return path;
}

std::string listed_set(CsvTable const& table, CsvTable::Row const& row) {
    auto const column = table.find("set");
    auto const name = column ? row.fields[*column] : "";
    auto const set = set_named(name);
    if (set.empty() && !name.empty()) {
        throw Error(ExitCode::data,
                    {concat(table.path.string(), ", line ", row.line), concat("its set is ", name),
                     "There are train, validation and test"});
    }
    return set;
}

std::vector<std::string> ordered_names(std::set<std::string> const& names) {
    std::vector<std::string> ordered(names.begin(), names.end());
    bool const numbers = std::all_of(ordered.begin(), ordered.end(), [](std::string const& name) {
        return !name.empty() && name.size() < 10 &&
               std::all_of(name.begin(), name.end(),
                           [](unsigned char c) { return std::isdigit(c) != 0; });
    });
    if (numbers) {
        std::sort(ordered.begin(), ordered.end(), [](std::string const& a, std::string const& b) {
            return std::pair(std::stol(a), a) < std::pair(std::stol(b), b);
        });
    }
    return ordered;
}

std::vector<std::filesystem::path> files_in(std::filesystem::path const& directory,
                                            std::vector<std::string> const& endings) {
    std::vector<std::filesystem::path> files;
    for (auto const& file : std::filesystem::directory_iterator(directory)) {
        if (has_ending(file.path(), endings)) {
            files.push_back(file.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

bool has_ending(std::filesystem::path const& path, std::vector<std::string> const& endings) {
    auto ending = path.extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

Listing list_files(ListingOptions const& options) {
    auto listing = options.labels.path.empty() ? from_folders(options) : from_table(options);
    if (listing.entries.empty()) {
        throw Error(ExitCode::no_input,
                    {concat("nothing to import in ", options.source.string()),
                     concat("no file there ends with ", joined(options.endings, ", ")),
                     "Name a directory with a folder for each class"});
    }
    return listing;
}

} // namespace lockstep::data
