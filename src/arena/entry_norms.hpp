#pragma once

#include "arena/layout.hpp"

#include <vector>

namespace lockstep::train {

/// The sum of squares, in double, of each arena unit of `values`, added by pairwise halves: a
/// device's own reductions may use another order for another number of units.
///
/// Shape  values [n * arena_unit] float32; returns [n] float64, on the same device
torch::Tensor squares_by_halves(torch::Tensor const& values);

/// Writes the same sums; on a CPU by a faster loop, in another order.
///
/// Shape  values [n * arena_unit] float32; into [n] float64, on the same device
void write_unit_squares(torch::Tensor const& values, torch::Tensor const& into);

/// The layout of an arena's sums of squares: one for each segment, which is the part of an entry in
/// a reduction block. A rank that owns whole reduction blocks owns whole segments, so the norm of
/// an entry, a sum of its segments in a fixed tree, does not depend on the owners.
class Segments {
  public:
    explicit Segments(Layout const& layout);

    /// Segments of all entries.
    std::size_t count() const noexcept { return first_of_.back(); }
    /// The segment that holds element `element` of the arena, which belongs to `entry`.
    std::size_t of(std::size_t entry, std::int64_t element) const;
    /// The norm of each entry.
    ///
    /// Shape  squares [count()]; returns [entries]
    std::vector<double> norms(std::span<double const> squares) const;

  private:
    std::vector<std::int64_t> first_block_; ///< of each entry
    std::vector<std::size_t> first_of_;     ///< each entry's first segment: [entries + 1]
};

} // namespace lockstep::train
