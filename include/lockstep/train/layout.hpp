#pragma once

#include "lockstep/h5/file.hpp"
#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// Elements to which entries, slices and the arena are rounded up: fused update kernels round
/// differently in a ragged tail, and sums depend on alignment.
constexpr std::int64_t arena_unit = 64;

/// Elements whose squares are summed as one: norms are sums over these fixed grains in a fixed
/// tree, so that they do not depend on who owns what. Slices of ranks end on grains.
constexpr std::int64_t grain = 4096;

/// A parameter's place in the arena.
struct Entry {
    std::string name; ///< "features.0.weight"
    std::vector<std::int64_t> shape;
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// Elements [first, last) of the arena: whole grains.
struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

/// Where each parameter lies: registration reversed, near the order in which gradients become
/// ready. A pure function of the model.
struct Layout {
    std::vector<Entry> entries;
    std::int64_t size = 0;       ///< elements, padding included; whole grains
    std::int64_t parameters = 0; ///< elements that are trained

    static Layout of(nn::Model const& model);

    std::int64_t grains() const noexcept { return size / grain; }
    /// Slices of the arena, one a rank, in whole grains: [ranks + 1].
    std::vector<std::int64_t> slices(int ranks) const;
    /// Each entry as a dataset PREFIX/NAME onto the flat array `source`.
    std::vector<h5::View> views(std::string const& prefix, std::string const& source) const;
};

/// "features.0.weight" as a path: "features/0/weight".
std::string path_of(std::string name);

} // namespace lockstep::train
