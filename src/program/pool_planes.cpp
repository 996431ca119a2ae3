#include "program/pool_planes.hpp"

#include "base/vector_clones.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace lockstep::program {

namespace {

// What is always inlined gets the instructions of the clone that it is inlined into.

constexpr int elements = 8;
using FloatVector = float __attribute__((vector_size(elements * sizeof(float))));
using PlaceVector = std::int32_t __attribute__((vector_size(elements * sizeof(std::int32_t))));
using ByteVector = std::uint8_t __attribute__((vector_size(elements)));

constexpr auto lowest = -std::numeric_limits<float>::infinity();

struct Range {
    std::int64_t first;
    std::int64_t last;
};

/// The part of an output's window that is within the inputs.
[[gnu::always_inline]] inline Range within(PoolWindows const& windows, std::size_t dimension,
                                           std::int64_t output) {
    auto const begin = output * windows.stride[dimension] - windows.padding[dimension];
    return {std::max<std::int64_t>(0, -begin),
            std::min(windows.kernel[dimension], windows.inputs[dimension] - begin)};
}

/// A row of outputs, and the rows of inputs that it sees.
struct PooledRow {
    std::size_t count; ///< of rows of inputs
    std::array<float const*, PoolWindows::max_places> inputs;
    std::array<std::int32_t, PoolWindows::max_places> first_places;
    float* outputs;
    std::uint8_t* places;
};

[[gnu::always_inline]] inline void find_inputs(PoolWindows const& windows, float const* plane,
                                               std::array<std::int64_t, 2> at, PooledRow& row) {
    row.count = 0;
    auto const deep = within(windows, 0, at[0]);
    auto const high = within(windows, 1, at[1]);
    auto const [depth, height] = std::array{at[0] * windows.stride[0] - windows.padding[0],
                                            at[1] * windows.stride[1] - windows.padding[1]};
    for (auto d = deep.first; d < deep.last; ++d) {
        for (auto h = high.first; h < high.last; ++h) {
            row.inputs[row.count] =
                plane + ((depth + d) * windows.inputs[1] + height + h) * windows.inputs[2];
            row.first_places[row.count++] =
                static_cast<std::int32_t>((d * windows.kernel[1] + h) * windows.kernel[2]);
        }
    }
}

/// LibTorch's ReLU: zero in place of what is below it, everything else as it is.
template <class Values>
[[gnu::always_inline]] inline Values rectified(Values values) {
    return values < 0 ? Values{} : values;
}

/// Pools rows whose windows have this width and stride; 0: that of `windows`.
template <int fixed_width, int fixed_stride, bool rectifies>
struct RowPool {
    PoolWindows const& windows;
    std::int64_t width = fixed_width > 0 ? fixed_width : windows.kernel[2];
    std::int64_t stride = fixed_stride > 0 ? fixed_stride : windows.stride[2];
    std::int64_t padding = windows.padding[2];
    Range inner = inner_outputs(); ///< whose windows are within the inputs

    [[gnu::always_inline]] Range inner_outputs() const {
        auto const room = windows.inputs[2] + padding - width;
        auto const first = std::min(windows.outputs[2], (padding + stride - 1) / stride);
        auto const last = room < 0 ? 0 : std::min(windows.outputs[2], room / stride + 1);
        return {first, std::max(first, last)};
    }

    /// FloatVector at neighbouring outputs, and not beyond the last of them.
    [[gnu::always_inline]] void load(float const* from, FloatVector& values) const {
        if (stride == 1) {
            std::memcpy(&values, from, sizeof(values));
        } else if (stride == 2) {
            FloatVector low;
            FloatVector high;
            std::memcpy(&low, from, sizeof(low));
            std::memcpy(&high, from + elements - 1, sizeof(high));
            values = __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15);
        } else {
            for (int i = 0; i < elements; ++i) {
                values[i] = from[i * stride];
            }
        }
    }

    /// The same for `count` outputs that may see columns beside the inputs.
    [[gnu::always_inline]] void load_within(float const* inputs, std::int64_t column,
                                            std::int64_t count, FloatVector& values) const {
        std::array<float, elements> part{};
        part.fill(lowest);
        for (std::int64_t i = 0; i < count; ++i, column += stride) {
            if (column >= 0 && column < windows.inputs[2]) {
                part[static_cast<std::size_t>(i)] =
                    rectifies ? rectified(inputs[column]) : inputs[column];
            }
        }
        std::memcpy(&values, part.data(), sizeof(values));
    }

    /// As many outputs as there are elements, all of them inner ones; or at an edge, `count`
    /// outputs.
    template <bool at_edge>
    [[gnu::always_inline]] void pool_block(PooledRow const& row, std::int64_t output,
                                           std::int64_t count) const {
        auto const column = output * stride - padding;
        auto most = FloatVector{} + lowest;
        auto places = PlaceVector{} + row.first_places[0];
        for (int i = 0; at_edge && i < elements; ++i) {
            places[i] += static_cast<std::int32_t>(std::max<std::int64_t>(0, -column - i * stride));
        }
        for (std::size_t i = 0; i < row.count; ++i) {
            for (std::int32_t k = 0; k < width; ++k) {
                FloatVector values;
                if constexpr (at_edge) {
                    load_within(row.inputs[i], column + k, count, values);
                } else {
                    load(row.inputs[i] + column + k, values);
                    values = rectifies ? rectified(values) : values;
                }
                auto const wins = (values > most) | (values != values);
                most = wins ? values : most;
                places = wins ? PlaceVector{} + (row.first_places[i] + k) : places;
            }
        }
        auto const narrow = __builtin_convertvector(places, ByteVector);
        auto const stored = static_cast<std::size_t>(at_edge ? count : elements);
        std::memcpy(row.outputs + output, &most, stored * sizeof(float));
        std::memcpy(row.places + output, &narrow, stored);
    }

    [[gnu::always_inline]] void pool_edge(PooledRow const& row, Range outputs) const {
        for (auto output = outputs.first; output < outputs.last; output += elements) {
            pool_block<true>(row, output, std::min<std::int64_t>(elements, outputs.last - output));
        }
    }

    /// `beyond`: whether what is behind the last inner output may be written, and is written later.
    [[gnu::always_inline]] void pool(PooledRow const& row, bool beyond) const {
        auto output = inner.first;
        for (; output + elements <= inner.last; output += elements) {
            pool_block<false>(row, output, elements);
        }
        if (output < inner.last && (beyond || inner.last - inner.first >= elements)) {
            pool_block<false>(row, beyond ? output : inner.last - elements, elements);
            output = inner.last;
        }
        pool_edge(row, {0, inner.first});
        pool_edge(row, {output, windows.outputs[2]});
    }
};

template <int fixed_width, int fixed_stride, bool rectifies>
[[gnu::always_inline]] inline void pool_all(PoolWindows const& windows, PlanesToPool planes) {
    RowPool<fixed_width, fixed_stride, rectifies> const pool{windows};
    auto const size = PoolWindows::product(windows.inputs);
    PooledRow row; // NOLINT: filled for each row
    row.outputs = planes.outputs;
    row.places = planes.places;
    for (std::int64_t plane = 0; plane < planes.count; ++plane) {
        auto const* const inputs = planes.inputs + plane * size;
        auto left = PoolWindows::product(windows.outputs);
        for (std::int64_t d = 0; d < windows.outputs[0]; ++d) {
            for (std::int64_t h = 0; h < windows.outputs[1]; ++h) {
                find_inputs(windows, inputs, {d, h}, row);
                auto const seen =
                    (pool.inner.last + elements) * pool.stride - pool.padding + pool.width;
                bool const beyond = pool.inner.last + elements <= left &&
                                    seen <= inputs + size - row.inputs[row.count - 1];
                pool.pool(row, beyond);
                row.outputs += windows.outputs[2];
                row.places += windows.outputs[2];
                left -= windows.outputs[2];
            }
        }
    }
}

template <int fixed_width, int fixed_stride>
[[gnu::always_inline]] inline void pool_either(PoolWindows const& windows, PlanesToPool planes) {
    windows.rectified ? pool_all<fixed_width, fixed_stride, true>(windows, planes)
                      : pool_all<fixed_width, fixed_stride, false>(windows, planes);
}

LOCKSTEP_VECTOR_CLONES void pool_2_by_2(PoolWindows const& windows, PlanesToPool planes) {
    pool_either<2, 2>(windows, planes);
}

LOCKSTEP_VECTOR_CLONES void pool_3_by_2(PoolWindows const& windows, PlanesToPool planes) {
    pool_either<3, 2>(windows, planes);
}

LOCKSTEP_VECTOR_CLONES void pool_by_1(PoolWindows const& windows, PlanesToPool planes) {
    pool_either<0, 1>(windows, planes);
}

LOCKSTEP_VECTOR_CLONES void pool_others(PoolWindows const& windows, PlanesToPool planes) {
    pool_either<0, 0>(windows, planes);
}

} // namespace

void pool_planes(PoolWindows const& windows, PlanesToPool planes) {
    auto const width = windows.kernel[2];
    auto const stride = windows.stride[2];
    auto* const pool = stride == 1   ? &pool_by_1
                       : stride != 2 ? &pool_others
                       : width == 2  ? &pool_2_by_2
                       : width == 3  ? &pool_3_by_2
                                     : &pool_others;
    pool(windows, planes);
}

} // namespace lockstep::program
