#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace lockstep::sim {

/// How often the host called what: kernels by their names, allocations, events, waits. In a mapped
/// file DIRECTORY/PID, as rows of a name and a number.
class CallCounts {
  public:
    struct Row {
        std::array<char, 56> name;
        std::uint64_t calls;
    };
    static constexpr std::size_t rows = 512; ///< further names count in the last one

    /// Empty: counts nothing. Throws  std::system_error
    explicit CallCounts(std::string const& directory);

    void add(char const* name);

  private:
    Row& row_of(char const* name);

    std::shared_ptr<Row> rows_; ///< the first of them; null: none
    std::size_t used_ = 0;
    std::unordered_map<char const*, Row*> found_;
};

} // namespace lockstep::sim
