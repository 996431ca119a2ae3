#include "search/journal.hpp"

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::search {

namespace {

constexpr std::string_view sum_key = ",\"sum\":\"";
constexpr std::size_t tail_bytes = sum_key.size() + 16 + 2; ///< of a line, from the sum's key on

std::string line_of(nlohmann::json const& record) {
    auto text = record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text.pop_back(); // the closing brace
    auto const sum = hex(hash64(text));
    return concat(text, sum_key, sum, "\"}\n");
}

nlohmann::json checked(std::string const& line, std::int64_t number,
                       std::filesystem::path const& path) {
    auto const refuse = [&](std::string const& why) {
        throw Error(
            ExitCode::data,
            {concat(path.string(), ":", number + 1, " is damaged"), why,
             "Copy the file back from a backup, or start the search in another --directory"});
    };
    if (line.size() < tail_bytes || !line.ends_with("\"}") ||
        line.compare(line.size() - tail_bytes, sum_key.size(), sum_key) != 0) {
        refuse("it is not a line of a search's journal");
    }
    auto const body = line.substr(0, line.size() - tail_bytes);
    if (line.substr(body.size() + sum_key.size(), 16) != hex(hash64(body))) {
        refuse("its checksum does not match its text");
    }
    auto record = json_or_nothing(body + "}");
    if (!record.is_object() || !record.contains("seq") || record["seq"] != number) {
        refuse("lines before it are missing, or it occurs twice");
    }
    return record;
}

/// What a kill leaves behind the last whole line is the beginning of another one.
void require_beginning(std::string const& tail, std::int64_t number,
                       std::filesystem::path const& path) {
    auto const sum = tail.find(sum_key);
    if (sum != std::string::npos && sum + tail_bytes < tail.size()) {
        checked(tail, number, path); // it continues where a line ends
    }
}

/// All whole lines, and how many bytes they have.
std::pair<std::vector<nlohmann::json>, std::uint64_t>
read_lines(std::filesystem::path const& path) {
    auto const text = read_text(path);
    std::vector<nlohmann::json> records;
    std::size_t from = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
        records.push_back(checked(text.substr(from, end - from),
                                  static_cast<std::int64_t>(records.size()), path));
        from = end + 1;
    }
    require_beginning(text.substr(from), static_cast<std::int64_t>(records.size()), path);
    return {std::move(records), from};
}

} // namespace

Journal::Journal(std::filesystem::path path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) {
        auto [records, bytes] = read_lines(path_);
        file_.emplace(File::append(path_));
        if (bytes < file_->size()) {
            std::filesystem::resize_file(path_, bytes);
        }
        before_ = std::move(records);
        next_ = static_cast<std::int64_t>(before_.size());
        return;
    }
    file_.emplace(File::append(path_));
}

std::vector<nlohmann::json> Journal::read(std::filesystem::path const& path) {
    if (!std::filesystem::is_regular_file(path)) {
        throw Error(ExitCode::no_input,
                    {concat("no search in ", path.parent_path().string()),
                     concat(path.string(), " does not exist"), "Name the directory of a search"});
    }
    return read_lines(path).first;
}

void Journal::append(nlohmann::json record) {
    if (allowed_) {
        allowed_();
    }
    if (is_broken_) {
        throw Error(ExitCode::io, {concat("cannot write to ", path_.string()),
                                   "an earlier record may be incomplete in the file",
                                   "Start the same command again to continue"});
    }
    record["seq"] = next_;
    record["time"] = utc_now();
    is_broken_ =
        true; // until it is known to be there: a second one with its number would be refused
    file_->append_text(line_of(record));
    file_->sync();
    is_broken_ = false;
    ++next_;
}

} // namespace lockstep::search
