#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::import {

struct DocumentOptions {
    std::filesystem::path source;     ///< a file, or a folder of files
    std::vector<std::string> endings; ///< of the files of a folder
    std::string text = "text";        ///< key of a line of JSON that has the text
    std::string prompt;               ///< key of what comes before the text; empty: nothing does
    std::string split_by;             ///< empty, or "folder"
};

struct Document {
    std::string prompt; ///< context, from which the text follows
    std::string text;
};

/// Texts of files, in natural order: a file is one, or each line of a .jsonl file that is not
/// blank.
class Documents {
  public:
    /// Reads .jsonl files once, to find their lines.
    ///
    /// Throws  Error 66 where there are none, 64 for another `split_by`, or for a prompt where a
    ///         file has no lines of JSON; 65 for a Parquet table, or a folder of nothing else
    explicit Documents(DocumentOptions const& options);

    std::int64_t count() const { return static_cast<std::int64_t>(places_.size()); }
    std::uint64_t bytes() const noexcept { return bytes_; } ///< of all
    std::string name(std::int64_t document) const;          ///< for messages
    std::string origin(std::int64_t document) const;        ///< the same, below the source
    std::string group(std::int64_t document) const; ///< the folder, if `split_by` is "folder"
    /// "train", "validation" or "test" where a folder of that name holds it, else "".
    std::string set(std::int64_t document) const;
    std::vector<std::string> const& remarks() const noexcept { return remarks_; }
    /// Names, sizes and times of change of all files.
    std::string identity() const;

    /// Throws  Error 65 for a line that is not JSON or has no such text, 66 or 74 for a file that
    ///         cannot be read
    Document read(std::int64_t document) const;

  private:
    struct File {
        std::filesystem::path path;
        std::string group;
        std::string set;
        bool lines = false; ///< of JSON
    };
    struct FilePart {
        std::size_t file = 0;
        std::uint64_t first = 0; ///< byte
        std::uint64_t count = 0;
        std::int64_t line = 0; ///< 0: the whole file
    };
    void add(File file);
    std::string further_keys() const; ///< a remark, or empty
    std::string bytes_of(FilePart const& where) const;
    FilePart const& place(std::int64_t document) const {
        return places_[static_cast<std::size_t>(document)];
    }

    std::string name_below(std::filesystem::path const& root, std::int64_t document) const;

    std::filesystem::path root_; ///< the source, or the directory that has it
    std::string text_;
    std::string prompt_;
    std::vector<File> files_;
    std::vector<FilePart> places_;
    std::vector<std::string> remarks_;
    std::uint64_t bytes_ = 0;
    std::int64_t blank_lines_ = 0;
};

} // namespace lockstep::import
