#pragma once

#include "checkpoint/reader.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// Which parts of a state's arrays somebody holds, and where they lie in one block of memory; with
/// the state's record and layout, so that a reader needs no more than all holders' tables.
class PartsTable {
  public:
    /// `with_record`: else the record and the layout stay empty, for holders whose reader has
    /// another one's.
    explicit PartsTable(Snapshot const& snapshot, bool with_record = true);
    /// Throws  Error 65 that names `name`, for a text that is not of this kind
    PartsTable(std::string const& text, std::string const& name);

    /// As the second constructor takes it.
    std::string text() const;

    Record const& record() const noexcept { return record_; }
    std::string const& layout() const noexcept { return layout_; } ///< as `layout_text`

    /// Bytes of the block.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Copies the parts of the snapshot that this was made of. Shape: block [bytes()]
    void copy(Snapshot const& snapshot, std::span<std::byte> block) const;

    /// Some bytes of an array.
    struct Range {
        std::size_t array = 0;
        std::uint64_t first = 0; ///< byte of the array
        std::uint64_t bytes = 0;
    };
    /// Where in the block the range begins; nothing where it is not in one of the parts.
    std::optional<std::size_t> place_of(Range const& range) const;
    /// The bytes from a byte of an array on that are in one part; 0 where it is in none.
    std::uint64_t bytes_from(std::size_t array, std::uint64_t first) const;

  private:
    struct Part {
        std::uint64_t first = 0; ///< byte of the array
        std::uint64_t bytes = 0;
        std::size_t place = 0; ///< in the block
    };
    void add(std::size_t array, std::uint64_t first, std::uint64_t bytes);
    Part const* part_at(std::size_t array, std::uint64_t byte) const;

    Record record_;
    std::string layout_;
    std::vector<std::vector<Part>> parts_; ///< of each array, ascending
    std::size_t bytes_ = 0;
};

/// Copies a range, which lies in one part, from the holder with that index.
using FetchPart = std::function<void(std::size_t holder, PartsTable::Range const& range,
                                     std::span<std::byte> into)>;

/// The state whose parts these holders have, read from them when it is asked for.
/// The first table has the record and the layout. `name` says in messages where the state is.
std::shared_ptr<Reader const> reader_of_parts(std::filesystem::path name,
                                              std::vector<PartsTable> tables, FetchPart fetch);

} // namespace lockstep::checkpoint
