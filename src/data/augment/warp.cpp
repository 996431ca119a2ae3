#include "data/augment/warp.hpp"

#include "base/vector_clones.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::data {

namespace {

/// Calls `use(plane, channel)` with every picture of a grid.
template <class Value, class Use>
void for_planes(Grid<Value>& grid, Use use) {
    for (std::int64_t channel = 0; channel < grid.channels(); ++channel) {
        for (std::int64_t depth = 0; depth < grid.depth(); ++depth) {
            use(grid.plane(channel, depth), channel);
        }
    }
}

/// Two neighbours, and the share of the second.
struct Taps {
    std::vector<std::int32_t> low;
    std::vector<std::int32_t> high;
    std::vector<float> share;

    Taps(std::int64_t from, std::int64_t count, std::int64_t to) {
        auto const scale = static_cast<float>(count) / static_cast<float>(to);
        for (std::int64_t i = 0; i < to; ++i) {
            auto const at = std::max(scale * (static_cast<float>(i) + 0.5F) - 0.5F, 0.0F);
            auto const first = std::min(static_cast<std::int64_t>(at), count - 1);
            low.push_back(static_cast<std::int32_t>(from + first));
            high.push_back(static_cast<std::int32_t>(from + std::min(first + 1, count - 1)));
            share.push_back(at - static_cast<float>(first));
        }
    }
};

LOCKSTEP_VECTOR_CLONES void between_columns(float const* __restrict from, std::int32_t const* low,
                                            std::int32_t const* high, float const* share,
                                            std::int64_t count, float* __restrict to) {
    for (std::int64_t i = 0; i < count; ++i) {
        to[i] = from[low[i]] * (1.0F - share[i]) + from[high[i]] * share[i];
    }
}

LOCKSTEP_VECTOR_CLONES void between_rows(float const* __restrict one, float const* __restrict other,
                                         float share, std::int64_t count, float* __restrict to) {
    auto const rest = 1.0F - share;
    for (std::int64_t i = 0; i < count; ++i) {
        to[i] = one[i] * rest + other[i] * share;
    }
}

void resize_values(Grid<float>& grid, Crop const& crop, std::vector<float>& work) {
    grid.put_places_last();
    auto const width = grid.width();
    auto const height = grid.height();
    Taps const columns(crop.left, crop.width, width);
    Taps const rows(0, crop.height, height);
    work.resize(static_cast<std::size_t>(crop.height * width));
    for_planes(grid, [&](float* plane, std::int64_t) {
        for (std::int64_t y = 0; y < crop.height; ++y) {
            between_columns(plane + (crop.top + y) * width, columns.low.data(), columns.high.data(),
                            columns.share.data(), width, work.data() + y * width);
        }
        for (std::int64_t y = 0; y < height; ++y) {
            auto const at = static_cast<std::size_t>(y);
            between_rows(work.data() + rows.low[at] * width, work.data() + rows.high[at] * width,
                         rows.share[at], width, plane + y * width);
        }
    });
}

/// The nearest of `count` elements for each of `to`.
std::vector<std::int64_t> nearest_of(std::int64_t from, std::int64_t count, std::int64_t to) {
    auto const scale = static_cast<float>(count) / static_cast<float>(to);
    std::vector<std::int64_t> nearest;
    for (std::int64_t i = 0; i < to; ++i) {
        nearest.push_back(
            from +
            std::min(static_cast<std::int64_t>(scale * (static_cast<float>(i) + 0.5F)), count - 1));
    }
    return nearest;
}

template <class Value>
void resize_classes(Grid<Value>& grid, Crop const& crop, std::vector<Value>& work) {
    grid.put_places_last();
    auto const width = grid.width();
    auto const height = grid.height();
    auto const columns = nearest_of(crop.left, crop.width, width);
    auto const rows = nearest_of(crop.top, crop.height, height);
    for_planes(grid, [&](Value* plane, std::int64_t) {
        work.assign(plane, plane + height * width);
        for (std::int64_t y = 0; y < height; ++y) {
            auto const* const from = work.data() + rows[static_cast<std::size_t>(y)] * width;
            for (std::int64_t x = 0; x < width; ++x) {
                plane[y * width + x] = from[columns[static_cast<std::size_t>(x)]];
            }
        }
    });
}

/// A row of the new picture: where it begins in the old one, and the step from element to element.
struct WarpedRow {
    double x;
    double y;
    double step_x;
    double step_y;

    WarpedRow(Affine const& affine, std::int64_t row, std::int64_t width, std::int64_t height)
        : step_x(affine[0]), step_y(affine[3]) {
        auto const first_x = 0.5 - 0.5 * static_cast<double>(width);
        auto const own_y = static_cast<double>(row) + 0.5 - 0.5 * static_cast<double>(height);
        x = affine[0] * first_x + affine[1] * own_y + affine[2] - first_x;
        y = affine[3] * first_x + affine[4] * own_y + affine[5] +
            0.5 * static_cast<double>(height) - 0.5;
    }
};

/// Makes a row of a picture with a frame of what is blank, one element wide before it and two after
/// it.
LOCKSTEP_VECTOR_CLONES void warp_row(float const* __restrict framed, std::int64_t width,
                                     std::int64_t height, WarpedRow const& row,
                                     float* __restrict to) {
    auto const stride = static_cast<std::int32_t>(width + 3);
    auto const last_x = static_cast<double>(width + 1);
    auto const last_y = static_cast<double>(height + 1);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(width); ++i) {
        auto x = row.x + row.step_x * i + 1;
        auto y = row.y + row.step_y * i + 1;
        x = x > 0 ? x : 0;
        x = x < last_x ? x : last_x;
        y = y > 0 ? y : 0;
        y = y < last_y ? y : last_y;
        auto const left = static_cast<std::int32_t>(x);
        auto const top = static_cast<std::int32_t>(y);
        auto const right_share = static_cast<float>(x - left);
        auto const low_share = static_cast<float>(y - top);
        auto const at = top * stride + left;
        auto const above = framed[at] * (1.0F - right_share) + framed[at + 1] * right_share;
        auto const below =
            framed[at + stride] * (1.0F - right_share) + framed[at + stride + 1] * right_share;
        to[i] = above * (1.0F - low_share) + below * low_share;
    }
}

void warp_values(Grid<float>& grid, Affine const& affine, std::vector<float>& work,
                 auto const& blank) {
    grid.put_places_last();
    auto const width = grid.width();
    auto const height = grid.height();
    auto const stride = width + 3;
    work.resize(static_cast<std::size_t>(stride * (height + 3)));
    for_planes(grid, [&](float* plane, std::int64_t channel) {
        std::ranges::fill(work, blank(channel));
        for (std::int64_t y = 0; y < height; ++y) {
            std::copy(plane + y * width, plane + (y + 1) * width,
                      work.data() + (y + 1) * stride + 1);
        }
        for (std::int64_t y = 0; y < height; ++y) {
            warp_row(work.data(), width, height, WarpedRow(affine, y, width, height),
                     plane + y * width);
        }
    });
}

template <class Value>
void warp_classes(Grid<Value>& grid, Affine const& affine, std::vector<Value>& work) {
    grid.put_places_last();
    auto const width = grid.width();
    auto const height = grid.height();
    for_planes(grid, [&](Value* plane, std::int64_t) {
        work.assign(plane, plane + height * width);
        for (std::int64_t y = 0; y < height; ++y) {
            WarpedRow const row(affine, y, width, height);
            for (std::int64_t i = 0; i < width; ++i) {
                auto const x = std::nearbyint(row.x + row.step_x * static_cast<double>(i));
                auto const from_y = std::nearbyint(row.y + row.step_y * static_cast<double>(i));
                bool const inside = x >= 0 && x < static_cast<double>(width) && from_y >= 0 &&
                                    from_y < static_cast<double>(height);
                plane[y * width + i] =
                    inside
                        ? work[static_cast<std::size_t>(static_cast<std::int64_t>(from_y) * width +
                                                        static_cast<std::int64_t>(x))]
                        : Value{};
            }
        }
    });
}

} // namespace

void resize(AugmentedSample& sample, Crop const& crop) {
    auto& buffers = sample.buffers();
    resize_values(sample.input(), crop, buffers.work);
    if (sample.class_target) {
        resize_classes(*sample.class_target, crop, buffers.class_work);
    }
    if (sample.real_target && sample.form().target->classes) {
        resize_classes(*sample.real_target, crop, buffers.work);
    } else if (sample.real_target) {
        resize_values(*sample.real_target, crop, buffers.work);
    }
}

Affine inverse_affine(AffineParts const& parts) {
    auto const radians = [](double degrees) { return degrees * std::numbers::pi / 180; };
    auto const turn = radians(parts.degrees);
    auto const tan_x = std::tan(radians(parts.shear_x));
    auto const shear_y = radians(parts.shear_y);
    auto const a = std::cos(turn - shear_y) / std::cos(shear_y);
    auto const b = -(a * tan_x + std::sin(turn));
    auto const c = std::sin(turn - shear_y) / std::cos(shear_y);
    auto const d = std::cos(turn) - c * tan_x;
    Affine inverse{d / parts.scale, -b / parts.scale, 0, -c / parts.scale, a / parts.scale, 0};
    auto const x = parts.center_x + parts.shift_x;
    auto const y = parts.center_y + parts.shift_y;
    inverse[2] = parts.center_x - inverse[0] * x - inverse[1] * y;
    inverse[5] = parts.center_y - inverse[3] * x - inverse[4] * y;
    return inverse;
}

void warp(AugmentedSample& sample, Affine const& affine) {
    auto& buffers = sample.buffers();
    warp_values(sample.input(), affine, buffers.work,
                [&](std::int64_t channel) { return sample.blank(channel); });
    if (sample.class_target) {
        warp_classes(*sample.class_target, affine, buffers.class_work);
    }
    if (sample.real_target && sample.form().target->classes) {
        warp_classes(*sample.real_target, affine, buffers.work);
    } else if (sample.real_target) {
        warp_values(*sample.real_target, affine, buffers.work, [](std::int64_t) { return 0.0F; });
    }
}

} // namespace lockstep::data
