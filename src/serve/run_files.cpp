#include "run_files.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "records.hpp"

namespace lockstep::serve {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t log_part = 128 << 10;
constexpr std::uint64_t max_text = 4 << 20;
constexpr std::uint64_t max_picture = 16 << 20;
constexpr std::uint64_t max_search = 32 << 20;

struct Part {
    std::uint64_t first = 0;
    std::string text{};
};

/// Returns the `max` bytes of a file in a directory that end at `end`, or at the file's end.
Part end_of_file(std::filesystem::path const& directory, std::filesystem::path const& name,
                 std::uint64_t end, std::uint64_t max) {
    auto const file = open_below(directory, name);
    struct stat info {};
    if (!file.is_open() || ::fstat(file.get(), &info) != 0) {
        return {};
    }
    end = std::min(end, static_cast<std::uint64_t>(info.st_size));
    Part part{.first = end - std::min(end, max)};
    part.text.resize(end - part.first);
    auto const got = part.text.empty() ? 0
                                       : ::pread(file.get(), part.text.data(), part.text.size(),
                                                 static_cast<off_t>(part.first));
    part.text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return part;
}

std::uint64_t bytes_of(std::filesystem::path const& file) {
    std::error_code failure;
    auto const bytes = std::filesystem::file_size(file, failure);
    return failure ? 0 : bytes;
}

/// The records of a file of JSON lines; `change` may take parts of them away.
template <class Change>
std::string records_json(std::string const& text, Change&& change) {
    Json list = Json::array();
    for (auto const& line : split(text, '\n')) {
        auto record = parsed_record(line);
        if (record.is_object()) {
            change(record);
            list.push_back(std::move(record));
        }
    }
    return one_line(list);
}

char const* folder_of(Gallery gallery) {
    return gallery == Gallery::plots ? "plots" : gallery == Gallery::samples ? "samples" : "worst";
}

} // namespace

Descriptor open_below(std::filesystem::path const& directory, std::filesystem::path const& name) {
    Descriptor at(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (auto const& part : name.parent_path()) {
        if (at.is_open()) {
            at = Descriptor(
                ::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        }
    }
    if (!at.is_open()) {
        return {};
    }
    Descriptor file(::openat(at.get(), name.filename().c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    bool const regular = file.is_open() && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
    return regular ? std::move(file) : Descriptor{};
}

std::uint64_t log_bytes(std::filesystem::path const& run) {
    return bytes_of(run / "log.txt");
}

std::string log_json(std::filesystem::path const& run, std::uint64_t end) {
    auto part = end_of_file(run, "log.txt", end, log_part);
    auto const last = part.first + part.text.size();
    if (part.first > 0) { // the rest of a line of which the beginning is not here
        auto const cut = std::min(part.text.find('\n'), part.text.size() - 1) + 1;
        part.text.erase(0, cut);
        part.first += cut;
    }
    return one_line({{"first", part.first}, {"end", last}, {"text", part.text}});
}

std::string history_json(std::filesystem::path const& run) {
    auto const part = end_of_file(run, "history.jsonl", UINT64_MAX, max_text);
    return records_json(part.text, [](Json&) {});
}

std::string worst_json(std::filesystem::path const& run) {
    auto const part =
        end_of_file(run, std::filesystem::path("worst") / "worst.jsonl", UINT64_MAX, max_text);
    return records_json(part.text, [](Json&) {});
}

std::string search_json(std::filesystem::path const& search) {
    auto const part = end_of_file(search, "search.jsonl", UINT64_MAX, max_search);
    return records_json(part.text, [](Json& record) {
        record.erase("deck");
        auto const metrics = record.find("metrics");
        if (metrics != record.end() && metrics->is_object()) {
            for (auto metric = metrics->begin(); metric != metrics->end();) {
                bool const is_of_class = metric.key().find('.') != std::string::npos;
                metric = is_of_class ? metrics->erase(metric) : std::next(metric);
            }
        }
    });
}

std::uint64_t search_bytes(std::filesystem::path const& search) {
    return bytes_of(search / "search.jsonl");
}

std::string deck_text(std::filesystem::path const& run) {
    return end_of_file(run, "deck.ini", UINT64_MAX, max_text).text;
}

std::vector<std::string> picture_names(std::filesystem::path const& run, Gallery gallery) {
    std::vector<std::string> names;
    std::error_code failure;
    auto const folder = run / folder_of(gallery);
    if (std::filesystem::is_symlink(folder, failure)) {
        return names;
    }
    for (std::filesystem::directory_iterator entry(folder, failure), end;
         !failure && entry != end && names.size() < 1000; entry.increment(failure)) {
        if (entry->path().extension() == ".png") {
            names.push_back(entry->path().filename().string());
        }
    }
    std::ranges::sort(names);
    return names;
}

std::string picture_bytes(std::filesystem::path const& run, Gallery gallery, std::size_t place) {
    auto const names = picture_names(run, gallery);
    if (place >= names.size()) {
        return {};
    }
    auto part = end_of_file(run, std::filesystem::path(folder_of(gallery)) / names[place],
                            UINT64_MAX, max_picture);
    return part.first == 0 && part.text.starts_with("\x89PNG") ? std::move(part.text) : "";
}

} // namespace lockstep::serve
