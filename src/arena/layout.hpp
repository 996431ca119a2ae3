#pragma once

#include "comm/partition.hpp"
#include "h5/file.hpp"
#include "lockstep/nn/model.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// Elements to which entries, slices and the arena are rounded up: fused update kernels round
/// differently in a ragged tail, and sums depend on alignment.
constexpr std::int64_t arena_unit = 64;

using comm::Range;
using comm::reduction_block;

/// A parameter's place in the arena.
struct ParameterRange {
    std::string name; ///< "features.0.weight"
    std::vector<std::int64_t> shape;
    std::int64_t first = 0;
    std::int64_t count = 0;
    bool trained = true;        ///< frozen parameters are not
    std::string type = "Float"; ///< of the module's parameter, as torch names it
};

/// Where each parameter lies: in reverse order of registration, close to the order in which
/// gradients become ready. A parameter that several modules share occurs once, under its first
/// name. A pure function of the model.
struct Layout {
    std::vector<ParameterRange> entries;
    std::int64_t size = 0;       ///< elements, padding included; whole reduction blocks
    std::int64_t parameters = 0; ///< elements that are trained

    static Layout of(nn::Model const& model);

    /// Elements that are not trained, or not yet.
    std::int64_t frozen() const;

    /// Makes the entries of these names trained ones, and returns their numbers.
    std::vector<std::size_t> thaw(std::vector<std::string> const& names);

    /// One line for each entry, from which differences between models can be told.
    std::string text() const;

    /// Throws  Error 64 when a parameter is of a type that float32 cannot represent
    static void check_types(nn::Model const& model);
    /// Each entry as a dataset PREFIX/NAME onto the flat array `source`.
    std::vector<h5::View> views(std::string const& prefix, std::string const& source) const;
};

/// "features.0.weight" as a path: "features/0/weight".
std::string path_of(std::string name);

} // namespace lockstep::train
