#pragma once

#include "h5/file.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// The most bytes of a text of `TextRows`: a path of the longest kind fits, with a line number.
constexpr std::uint64_t max_row_text = 8192;

/// Reads short texts, one for each row of other datasets: NAME has the bytes of all (u8), and
/// NAME_offsets [texts + 1] the first byte of each, and the end. What is kept in memory is bounded.
class TextRows {
  public:
    /// The texts in a file; none where it has no such two datasets.
    static std::optional<TextRows> in(File const& file, std::string const& name);

    std::uint64_t count() const noexcept { return count_; }

    /// The text of a row; rows that follow each other are read together. `file` is the one that
    /// they were found in.
    ///
    /// Throws  Error 65 for a row that is not there, and where the offsets do not ascend from the
    ///         first byte to the last, or a text has more than `max_row_text` of them
    std::string at(File const& file, std::uint64_t row);

  private:
    TextRows(std::string name, std::uint64_t count, std::uint64_t bytes)
        : name_(std::move(name)), count_(count), bytes_(bytes) {}
    void read_block(File const& file, std::uint64_t first);

    std::string name_;
    std::uint64_t count_ = 0;
    std::uint64_t bytes_ = 0; ///< of all texts
    std::uint64_t first_ = 0; ///< row of the block in memory
    std::vector<std::int64_t> offsets_;
    std::string block_;
};

/// Writes such texts into a new file.
void write_text_rows(File& file, std::string const& name, std::span<std::string const> texts);

} // namespace lockstep::h5
