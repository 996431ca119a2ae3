#include "documents.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "import/source.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <set>

#include "find_files.hpp"
#include "listed_file.hpp"
#include "source_file.hpp"

namespace lockstep::import {

namespace {

/// Many text sets are published as Parquet tables, which no library of the distributions reads.
[[noreturn]] void refuse_parquet(std::filesystem::path const& path) {
    throw Error(
        ExitCode::data,
        {concat("cannot import ", path.string()),
         "it is a Parquet table, which this program does not read",
         concat("Convert each such file to lines of JSON (needs the Python packages pandas and "
                "pyarrow): python3 -c \"import pandas; pandas.read_parquet('",
                path.string(),
                "').to_json('OUT.jsonl', orient='records', lines=True, force_ascii=False)\"")});
}

[[noreturn]] void refuse_line(std::string const& line, std::string const& why,
                              std::string const& next) {
    throw Error(ExitCode::data, {line, why, concat(next, ", or skip such lines with --skip-bad")});
}

/// A line of JSON, which has to be an object.
nlohmann::json parsed(std::string const& bytes, std::string const& line) {
    nlohmann::json json;
    if (nests_deeper(bytes)) {
        refuse_line(line, concat("the line nests more than ", max_json_depth, " levels deep"),
                    "Correct the line");
    }
    try {
        static_cast<void>(decoded(bytes, line));
        json = nlohmann::json::parse(bytes);
    } catch (nlohmann::json::parse_error const& error) {
        std::string_view reason = error.what();
        reason.remove_prefix(std::min(reason.rfind(" - ") + 3, reason.size()));
        std::string const found(reason.substr(0, reason.find("; last read")));
        auto const at = std::min(error.byte, bytes.size());
        auto const around = bytes.substr(at - std::min<std::size_t>(at, 3), 12);
        bool const number = around.find("NaN") != around.npos || around.find("Inf") != around.npos;
        refuse_line(line, concat("the line is not valid JSON: ", found, " at byte ", error.byte),
                    number ? "JSON has no NaN or Infinity: write null instead"
                           : "Correct the line");
    }
    if (!json.is_object()) {
        refuse_line(line,
                    concat("the line is not a JSON object, but ",
                           json.is_null()    ? ""
                           : json.is_array() ? "an "
                                             : "a ",
                           json.type_name()),
                    "Write an object such as {\"text\": \"...\"}");
    }
    return json;
}

/// The keys of a line, if it is right; what is wrong is told when it is read.
std::vector<std::string> keys_of(std::string const& bytes) {
    std::vector<std::string> keys;
    auto const json = nests_deeper(bytes)
                          ? nlohmann::json()
                          : nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) {
        for (auto const& [key, _] : json.items()) {
            keys.push_back(key);
        }
    }
    return keys;
}

bool is_parquet(std::filesystem::path const& path) {
    return kind_of_file(path).name == "a Parquet table";
}

} // namespace

Documents::Documents(DocumentOptions const& options)
    : root_(std::filesystem::is_directory(options.source) ? options.source
                                                          : options.source.parent_path()),
      text_(options.text), prompt_(options.prompt) {
    if (!options.split_by.empty() && options.split_by != "folder") {
        throw Error(ExitCode::usage,
                    {concat("--split-by ", options.split_by), "texts have no columns, only folders",
                     "Write --split-by folder, or leave --split-by out"});
    }
    if (std::filesystem::is_directory(options.source)) {
        auto const tree = find_files(options.source, options.endings, {});
        remarks_ = tree.skipped;
        for (auto& remark : remarks_) {
            remark = concat("skipped: ", remark);
        }
        for (auto const& file : tree.files) {
            if (file.path.extension() == ".parquet") { // which --endings names
                refuse_parquet(file.path);
            }
            add({file.path, options.split_by.empty() ? "" : joined(file.folders, "/"),
                 file.folders.empty() ? "" : set_named(file.folders.front()),
                 file.path.extension() == ".jsonl"});
        }
        auto const tables = tree.files.empty() ? find_files(options.source, {".parquet"}, {}).files
                                               : std::vector<FoundFile>();
        if (!tables.empty()) {
            refuse_parquet(tables.front().path);
        }
    } else if (is_parquet(options.source)) {
        refuse_parquet(options.source);
    } else {
        add({options.source, "", "", options.source.extension() == ".jsonl"});
    }
    if (places_.empty()) {
        throw Error(ExitCode::no_input,
                    {concat("no texts in ", options.source.string()),
                     files_.empty() ? concat("it has no file whose name ends with ",
                                             list_text(options.endings, "or"))
                                    : std::string(std::filesystem::is_directory(options.source)
                                                      ? "its .jsonl files have no lines with text"
                                                      : "it has no lines with text"),
                     "Name a text file or a folder with text files, or give other endings, such as "
                     "--endings .tex,.c"});
    }
    if (blank_lines_ > 0) {
        remarks_.push_back(concat("skipped: ", count_text(blank_lines_, "blank line")));
    }
    if (auto const left_out = further_keys(); !left_out.empty()) {
        remarks_.push_back(left_out);
    }
    if (text_ != DocumentOptions().text &&
        std::ranges::find(files_, true, &File::lines) == files_.end()) {
        throw Error(ExitCode::usage,
                    {concat("--text ", text_),
                     concat(options.source.string(),
                            " has only plain text, and only the lines of .jsonl files have keys"),
                     "Leave --text out, or name a .jsonl file"});
    }
    auto const whole = std::ranges::find(files_, false, &File::lines);
    if (!prompt_.empty() && whole != files_.end()) {
        throw Error(ExitCode::usage,
                    {concat("--prompt ", prompt_),
                     concat(whole->path.string(),
                            " is plain text, and only the lines of .jsonl files have keys"),
                     std::filesystem::is_directory(options.source)
                         ? "Leave other files out with --endings .jsonl"
                         : "Name a .jsonl file, or leave --prompt out"});
    }
}

/// What the first lines have besides their texts: looking at all would read the files once more.
std::string Documents::further_keys() const {
    constexpr std::uint64_t max_bytes = std::uint64_t{1} << 20;
    constexpr std::size_t max_keys = 8;
    std::set<std::string> further;
    std::uint64_t bytes = 0;
    for (std::int64_t i = 0; i < count() && bytes + place(i).count <= max_bytes; ++i) {
        if (place(i).line > 0) {
            bytes += place(i).count;
            for (auto& key : keys_of(bytes_of(place(i)))) {
                further.insert(std::move(key));
            }
        }
    }
    further.erase(text_);
    further.erase(prompt_);
    std::vector<std::string> names(further.begin(), further.end());
    auto const more = names.size() > max_keys;
    names.resize(std::min(names.size(), max_keys));
    return names.empty() ? ""
                         : concat("left out what the lines have besides the key ", text_,
                                  prompt_.empty() ? "" : concat(" and the key ", prompt_), ": ",
                                  joined(names, ", "), more ? ", …" : "");
}

std::string Documents::bytes_of(FilePart const& where) const {
    std::string bytes(where.count, '\0');
    lockstep::File::open_read(files_[where.file].path)
        .read_at(where.first, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

void Documents::add(File file) {
    auto const number = files_.size();
    auto const path = file.path;
    bool const lines = file.lines;
    files_.push_back(std::move(file));
    if (!lines) {
        auto const size = lockstep::File::open_read(path).size();
        places_.push_back({number, 0, size, 0});
        bytes_ += size;
        return;
    }
    lockstep::File::open_read(path); // refuses what is not a file: a pipe would never end
    std::ifstream stream(path, std::ios::binary);
    std::string line;
    std::uint64_t first = 0;
    for (std::int64_t count = 1; std::getline(stream, line); ++count) {
        if (trimmed(line).empty()) {
            ++blank_lines_;
        } else {
            places_.push_back({number, first, line.size(), count});
            bytes_ += line.size();
        }
        first += line.size() + 1;
    }
    if (!stream.eof()) {
        throw Error(ExitCode::no_input, {concat("cannot read ", path.string()),
                                         "a read error occurred in the middle of the file",
                                         "Check the disk of this file for faults (dmesg), or copy "
                                         "the file again from its source"});
    }
}

std::string Documents::name(std::int64_t document) const {
    return name_below({}, document);
}

std::string Documents::origin(std::int64_t document) const {
    return name_below(root_, document);
}

std::string Documents::name_below(std::filesystem::path const& root, std::int64_t document) const {
    auto const& where = place(document);
    auto const& whole = files_[where.file].path;
    auto const path = (root.empty() ? whole : whole.lexically_relative(root)).string();
    return where.line == 0 ? path : concat(path, ":", where.line);
}

std::string Documents::group(std::int64_t document) const {
    return files_[place(document).file].group;
}

std::string Documents::set(std::int64_t document) const {
    return files_[place(document).file].set;
}

std::string Documents::identity() const {
    std::string all = concat(text_, "\n");
    if (!prompt_.empty()) {
        all += concat("after ", prompt_, "\n");
    }
    for (auto const& file : files_) {
        all += concat(stamp(file.path), " ", file.group, "\n");
    }
    return all;
}

Document Documents::read(std::int64_t document) const {
    auto const& where = place(document);
    auto bytes = bytes_of(where);
    if (where.line == 0) {
        require_text(files_[where.file].path, bytes);
        return {{}, std::move(bytes)};
    }
    auto const json = parsed(bytes, name(document));
    auto const value = [&](std::string const& key, std::string const& option) {
        if (!json.contains(key)) {
            std::vector<std::string> keys;
            for (auto const& [own, _] : json.items()) {
                keys.push_back(own);
            }
            throw Error(ExitCode::data,
                        {name(document),
                         concat("the line has no key ", key, "; its keys are ", joined(keys, ", ")),
                         concat("Name the key of the ", option, " with --", option,
                                " KEY, or skip such lines with --skip-bad")});
        }
        if (!json.at(key).is_string()) {
            refuse_line(name(document),
                        concat("the value of the key ", key, " is not a text, but ",
                               json.at(key).is_null() ? "" : "a ", json.at(key).type_name()),
                        concat("Write a text, name another key with --", option, " KEY"));
        }
        return json.at(key).get<std::string>();
    };
    return {prompt_.empty() ? std::string() : value(prompt_, "prompt"), value(text_, "text")};
}

} // namespace lockstep::import
