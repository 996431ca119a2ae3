#pragma once

#include "base/file.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace lockstep::search {

/// A search's record: JSON lines that are only appended to. Each has a sequence number and a
/// checksum, and is on disk before the search acts on it.
class Journal {
  public:
    /// Reads and checks the existing records. A last line without an end was left by a kill, and is
    /// cut off. The caller has locked the directory.
    ///
    /// Throws  Error 65 for a line that was changed, or is missing; 73 or 74
    explicit Journal(std::filesystem::path path);

    /// Reads a journal that another process may be writing: nothing is changed.
    ///
    /// Throws  Error 66 when there is none, 65 when it is damaged
    static std::vector<nlohmann::json> read(std::filesystem::path const& path);

    /// The records that existed when it was opened.
    std::vector<nlohmann::json> const& before() const noexcept { return before_; }

    /// Adds a record, durably. `allowed` throws where the directory is no longer ours.
    ///
    /// Throws  Error 74 when it cannot be written
    void append(nlohmann::json record);
    void set_guard(std::function<void()> allowed) { allowed_ = std::move(allowed); }

  private:
    std::filesystem::path path_;
    std::vector<nlohmann::json> before_;
    std::int64_t next_ = 0;
    bool is_broken_ = false; ///< what a failed write left in the file is not known
    std::optional<File> file_;
    std::function<void()> allowed_;
};

} // namespace lockstep::search
