#include "listing.hpp"

#include "base/text.hpp"
#include "data/class_names.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "find_files.hpp"
#include "listed_file.hpp"

namespace lockstep::import {

namespace {

/// The folders that stand for a class, or for a set, hold something.
void require_files(FoundTree const& tree, ListingOptions const& options) {
    std::set<std::vector<std::string>> full;
    for (auto const& file : tree.files) {
        auto folders = file.folders;
        if (std::filesystem::is_directory(file.path)) {
            folders.push_back(file.path.filename().string());
        }
        for (; !folders.empty(); folders.pop_back()) {
            full.insert(folders);
        }
    }
    for (auto const& folder : tree.folders) {
        auto const depth = set_named(folder.front()).empty() ? 1U : 2U;
        if (folder.size() > depth || full.contains(folder)) {
            continue;
        }
        auto path = options.source;
        for (auto const& name : folder) {
            path /= name;
        }
        throw Error(ExitCode::data,
                    {path.string(),
                     concat("this class or set has no file whose name ends with ",
                            list_text(options.endings, "or"),
                            tree.skipped.empty() ? ""
                                                 : concat("; skipped in the whole source: ",
                                                          joined(tree.skipped, ", and "))),
                     "Convert the files in this folder to such a format, or remove the folder"});
    }
}

std::map<std::string, std::int64_t> places_of(std::vector<std::string> const& names) {
    std::map<std::string, std::int64_t> places;
    for (auto const& name : names) {
        places.emplace(name, static_cast<std::int64_t>(places.size()));
    }
    return places;
}

/// The folders of what seem to be classes hold folders alone, which may be the classes.
void look_for_classes_below(ListingOptions const& options,
                            std::map<std::string, std::set<std::string>> const& inner,
                            std::vector<std::string>& remarks) {
    auto const& [first, folders] = *inner.begin();
    if (inner.size() == 1 && folders.size() > 1) {
        auto const folder = options.source / first;
        throw Error(ExitCode::data,
                    {folder.string(),
                     concat("this folder would be the only class, and holds only folders, such as ",
                            *folders.begin()),
                     concat("If these are the classes, name ", folder.string(), " as the source")});
    }
    bool const same =
        std::ranges::all_of(inner, [&](auto const& each) { return each.second == folders; });
    if (inner.size() > 1 && folders.size() > 1 && same) {
        std::vector<std::string> names;
        for (auto const& each : inner) {
            names.push_back(each.first);
        }
        remarks.push_back(concat("warning: the classes are ", list_text(names),
                                 ", whose folders all hold the same folders: ",
                                 list_text({folders.begin(), folders.end()}),
                                 ". If these are the classes, name the folders of the sets train, "
                                 "validation and test"));
    }
}

Listing from_folders(ListingOptions const& options) {
    if (!options.split_by.empty() && options.split_by != "folder") {
        throw Error(ExitCode::usage, {concat("--split-by ", options.split_by),
                                      "without --labels FILE.csv, there are no columns to split by",
                                      "Add --labels FILE.csv, or write --split-by folder to split "
                                      "by the folders inside the class folders"});
    }
    Listing listing;
    std::vector<std::string> classes;
    std::map<std::string, std::string> set_folders; // the first of each set
    std::set<std::string> merged;
    std::size_t in_deeper_sets = 0;
    std::map<std::string, std::set<std::string>> inner; // folders in those of classes
    std::size_t deeper = 0;
    auto tree = find_files(options.source, options.endings, options.frame_endings);
    if (!tree.files.empty()) {
        require_files(tree, options);
    }
    for (auto const& kind : tree.skipped) {
        listing.remarks.push_back(concat("skipped ", kind));
    }
    for (auto& file : tree.files) {
        auto& folders = file.folders;
        Listing::ListedFile entry{file.path, 0, {}, {}};
        if (!folders.empty() && !set_named(folders.front()).empty()) {
            entry.set = set_named(folders.front());
            auto const& first = set_folders.emplace(entry.set, folders.front()).first->second;
            if (first != folders.front()) {
                merged.insert(concat("folders ", first, " and ", folders.front(),
                                     " both became the set ", entry.set));
            }
            folders.erase(folders.begin());
        }
        if (folders.empty()) {
            throw Error(ExitCode::data, {file.path.string(), "the file is not in a class folder",
                                         "Move the file into the folder of its class, or list the "
                                         "classes in a table with --labels FILE.csv"});
        }
        if (!options.split_by.empty() && folders.size() < 2) {
            throw Error(
                ExitCode::data,
                {file.path.string(),
                 "with --split-by folder, each file must be in a subfolder of its class folder",
                 "Move the file into a subfolder, or list all files in a table (--labels "
                 "FILE.csv) and split by a column of this table"});
        }
        if (folders.size() > 1) {
            ++deeper;
            inner[folders[0]].insert(folders[1]);
        }
        in_deeper_sets += folders.size() > 1 && !set_named(folders[1]).empty() ? 1 : 0;
        entry.group =
            options.split_by.empty() ? file.path.string() : concat(folders[0], "/", folders[1]);
        classes.push_back(folders[0]);
        listing.entries.push_back(std::move(entry));
    }
    listing.remarks.insert(listing.remarks.end(), merged.begin(), merged.end());
    for (std::size_t i = 0; i < classes.size(); ++i) {
        if (i == 0 || classes[i] != classes[i - 1]) {
            data::require_name(classes[i],
                               concat("the class folder of ", listing.entries[i].path.string()));
        }
    }
    listing.class_names = data::ordered_names({classes.begin(), classes.end()});
    if (listing.class_names.size() == 1 && in_deeper_sets == classes.size()) {
        auto const inner = options.source / classes.front();
        throw Error(ExitCode::data, {inner.string(),
                                     "this folder would be the only class, but the folders in it "
                                     "have the names of sets",
                                     concat("Name ", inner.string(), " as the source")});
    }
    if (options.split_by.empty() && deeper == classes.size()) {
        look_for_classes_below(options, inner, listing.remarks);
    }
    auto const places = places_of(listing.class_names);
    for (std::size_t i = 0; i < classes.size(); ++i) {
        listing.entries[i].label = places.at(classes[i]);
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
            throw Error(ExitCode::data,
                        {concat(table.path.string(), ", line ", row.line),
                         concat("the value in column ", options.labels.label, " is empty"),
                         "Write the class of the file into this column"});
        }
        if (names.insert(row.fields[label]).second) {
            data::require_name(row.fields[label], table.place_of(row, label));
        }
    }
    Listing listing;
    SetColumn const sets(table, options.split_by);
    listing.remarks = table.remarks;
    listing.remarks.push_back(sets.remark);
    std::erase(listing.remarks, "");
    listing.looked_in = options;
    listing.class_names = data::ordered_names(names);
    auto const places = places_of(listing.class_names);
    for (auto const& row : table.rows) {
        listing.entries.push_back(
            {listed_file(table, row, file, options.source, !options.frame_endings.empty()),
             places.at(row.fields[label]), row.fields[group], listed_set(table, row, sets),
             row.line});
    }
    return listing;
}

Listing from_anywhere(ListingOptions const& options) {
    Listing listing;
    auto sources = options.more;
    sources.insert(sources.begin(), options.source);
    for (auto const& source : sources) {
        if (std::filesystem::is_regular_file(source)) {
            listing.entries.push_back({source, -1, source.string(), {}});
            continue;
        }
        auto tree = find_files(source, options.endings, options.frame_endings);
        for (auto const& kind : tree.skipped) {
            listing.remarks.push_back(concat("skipped ", kind));
        }
        for (auto& file : tree.files) {
            listing.entries.push_back({file.path, -1, file.path.string(), {}});
        }
    }
    return listing;
}

/// What `require_once` says of an entry.
std::string meaning_of(Listing const& listing, Listing::ListedFile const& entry) {
    return entry.label < 0
               ? std::string()
               : concat("label \"", listing.class_names[static_cast<std::size_t>(entry.label)],
                        "\"");
}

} // namespace

std::string Listing::identity() const {
    std::string text = joined(class_names, ",") + "\n";
    for (auto const& entry : entries) {
        auto seen = concat(entry.path.string(), " missing\n"); // that is told when it is read
        try {
            seen = stamp(entry.path);
        } catch (Error const&) {
        }
        text += concat(seen, entry.label, " ", entry.group, " ", entry.set, "\n");
    }
    return text;
}

std::string unlisted(Listing const& listing) {
    auto const& where = listing.looked_in;
    if (where.endings.empty()) {
        return "";
    }
    std::set<std::pair<dev_t, ino_t>> listed;
    for (auto const& entry : listing.entries) {
        listed.insert(place_of(entry.path));
    }
    try {
        auto const found = find_files(where.source, where.endings, where.frame_endings).files;
        std::int64_t more = 0;
        std::string first;
        for (auto const& file : found) {
            if (!listed.contains(place_of(file.path))) {
                first = more++ == 0 ? file.path.string() : first;
            }
        }
        return more == 0 ? ""
                         : concat("left out ", more, " of ", found.size(), " files in ",
                                  where.source.string(), " that the table does not list, such as ",
                                  first);
    } catch (Error const& error) {
        return concat("did not look for files that the table does not list: ", error.text().what,
                      ": ", error.text().why);
    }
}

void require_once(Listing& listing, std::vector<std::string> const& meanings) {
    std::map<std::pair<dev_t, ino_t>, std::size_t> places;
    std::size_t twice = 0;
    std::string last;
    for (std::size_t i = 0; i < listing.entries.size(); ++i) {
        auto const& entry = listing.entries[i];
        auto const place = place_of(entry.path);
        if (place.second == 0) {
            continue; // that is told when it is read
        }
        auto const [at, added] = places.emplace(place, i);
        if (added) {
            continue;
        }
        auto const& first = listing.entries[at->second];
        auto const said = [&](std::size_t one) {
            auto const& of = listing.entries[one];
            return concat(of.line > 0 ? concat(" on line ", of.line)
                                      : concat(" as ", of.path.string()),
                          meanings[one].empty() ? "" : concat(" with ", meanings[one]),
                          of.set.empty() ? "" : concat(" in set ", of.set));
        };
        if (entry.set != first.set || meanings[i] != meanings[at->second]) {
            throw Error(ExitCode::data, {entry.path.string(),
                                         concat("the same file is listed twice,", said(at->second),
                                                ", and", said(i)),
                                         "Name each file once"});
        }
        last = entry.path.string();
        ++twice;
    }
    if (twice > 0) {
        listing.remarks.push_back(
            concat(twice, twice == 1 ? " file is" : " files are", " listed twice, such as ", last));
    }
}

Listing list_files(ListingOptions const& options) {
    auto listing = options.unlabelled            ? from_anywhere(options)
                   : options.labels.path.empty() ? from_folders(options)
                                                 : from_table(options);
    listing.root = options.unlabelled ? std::filesystem::path() : options.source;
    std::vector<std::string> labels;
    for (auto const& entry : listing.entries) {
        labels.push_back(meaning_of(listing, entry));
    }
    require_once(listing, labels);
    if (listing.entries.empty()) {
        throw Error(
            ExitCode::no_input,
            {concat(options.unlabelled ? "no samples in " : "nothing to import in ",
                    options.source.string()),
             options.labels.path.empty()
                 ? concat("the directory has no file whose name ends with ",
                          list_text(options.endings, "or"), listing.remarks.empty() ? "" : "; ",
                          joined(listing.remarks, ", and "))
                 : concat(options.labels.path.string(), " lists no file"),
             options.unlabelled ? "Name such files, or a directory that has some"
             : options.labels.path.empty()
                 ? "Name a directory with such files, in a folder for each class"
                 : "List the files in this table"});
    }
    return listing;
}

} // namespace lockstep::import
