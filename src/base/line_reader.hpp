#pragma once

#include "base/file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// The lines of a text file, one after the other, whatever its size. Of a line that is longer than
/// `longest_line` only so much is given. What does not exist has no lines, and neither has what is
/// no file: a pipe would never end.
class LineReader {
  public:
    static constexpr std::size_t longest_line = std::size_t{16} << 20;

    /// Begins at the byte `from`.
    ///
    /// Throws  Error 66 or 74 where the file cannot be read, here and below
    explicit LineReader(std::filesystem::path const& path, std::uint64_t from = 0);

    /// The next line without its end; false behind the last, which may lack one.
    [[nodiscard]] bool next(std::string& line);
    bool has_end() const noexcept { return has_end_; }      ///< the line that was given last
    std::uint64_t place() const noexcept { return place_; } ///< of the byte behind that line

  private:
    bool fill();

    std::optional<File> file_;
    std::string part_;   ///< of the file, from `place_` - `at_` on
    std::size_t at_ = 0; ///< in `part_`
    std::uint64_t place_;
    bool has_end_ = false;
};

} // namespace lockstep
