#include <algorithm>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;
using Id = GraphParts::Id;
using Wholes = std::vector<std::int64_t>;

/// What an entry along an axis is made of: entries before, each with its weight. All entries have
/// as many; those that need fewer repeat one with the weight 0.
struct Taps {
    std::int64_t entries = 0;
    std::int64_t each = 0;
    Wholes places;
    std::vector<float> weights;

    bool only_moves() const {
        return each == 1 && std::ranges::all_of(weights, [](float weight) { return weight == 1; });
    }
    bool changes(std::int64_t before) const {
        bool const same = only_moves() && entries == before && std::ranges::is_sorted(places) &&
                          places.back() == before - 1;
        return !same;
    }
    /// How often each entry is repeated; 0 where they are not repeated alike.
    std::int64_t factor(std::int64_t before) const {
        auto const times = entries / before;
        if (!only_moves() || times * before != entries) {
            return 0;
        }
        for (std::int64_t at = 0; at < entries; ++at) {
            if (places[static_cast<std::size_t>(at)] != at / times) {
                return 0;
            }
        }
        return times;
    }
};

Taps taps_of(torch::Tensor const& matrix) { // [before, after]
    auto const before = matrix.size(0);
    Taps taps{matrix.size(1), 1, {}, {}};
    auto const weight = matrix.accessor<float, 2>();
    for (std::int64_t at = 0; at < taps.entries; ++at) {
        std::int64_t used = 0;
        for (std::int64_t from = 0; from < before; ++from) {
            used += weight[from][at] != 0 ? 1 : 0;
        }
        taps.each = std::max(taps.each, used);
    }
    for (std::int64_t at = 0; at < taps.entries; ++at) {
        auto const end = static_cast<std::size_t>((at + 1) * taps.each);
        std::int64_t last = 0;
        for (std::int64_t from = 0; from < before; ++from) {
            if (weight[from][at] != 0) {
                taps.places.push_back(last = from);
                taps.weights.push_back(weight[from][at]);
            }
        }
        taps.places.resize(end, last);
        taps.weights.resize(end, 0);
    }
    return taps;
}

/// What the operator does along an axis of images of so many dimensions, as LibTorch does it to
/// images that are the same along all others. Its lists are those of the dimensions.
Taps taps_along(LoweredCall& call, std::size_t dimension, std::size_t dimensions,
                std::int64_t before) {
    constexpr std::int64_t alike = 2; // LibTorch's antialias takes images of width 1 for others
    Wholes form(dimensions + 2, 1);
    form[1] = before; // of which each has one entry that is not 0
    form[dimension + 2] = before;
    auto whole = Wholes(dimensions + 2, alike);
    whole[0] = 1;
    whole[1] = before;
    whole[dimension + 2] = before;
    auto arguments = call.given();
    arguments.front() = torch::eye(before).view(form).expand(whole).contiguous();
    for (auto& each : arguments) {
        if (each.isIntList()) {
            auto list = Wholes(dimensions, alike);
            list[dimension] = each.toIntVector().at(dimension);
            each = list;
        } else if (each.isDoubleList()) {
            auto list = std::vector<double>(dimensions, 1);
            list[dimension] = each.toDoubleVector().at(dimension);
            each = list;
        }
    }
    auto found = call.applied(std::move(arguments))[0];
    for (auto at = dimensions; at-- > 0;) {
        found = at == dimension ? found : found.select(static_cast<std::int64_t>(at) + 1, 0);
    }
    return taps_of(found.contiguous());
}

Id resampled(LoweredCall& call, Id x, std::size_t axis, Taps const& taps) {
    if (taps.only_moves()) {
        return call.gather(x, call.wholes(taps.places), static_cast<std::int64_t>(axis));
    }
    auto const found = call.gather(x, call.wholes(taps.places, {taps.entries, taps.each}),
                                   static_cast<std::int64_t>(axis));
    Wholes form(call.shape(found).size() - axis, 1);
    form[0] = taps.entries;
    form[1] = taps.each;
    auto const weighted = call.binary("Mul", found, call.graph().reals(taps.weights, form));
    return call.reduce("ReduceSum", weighted, {static_cast<std::int64_t>(axis) + 1}, false);
}

/// One dimension after the other.
void resample(LoweredCall& call, std::size_t dimensions) {
    auto x = call.tensor(0);
    auto const first = call.shape(x).size() - dimensions;
    std::vector<Taps> all;
    Wholes factors;
    for (std::size_t i = 0; i < dimensions; ++i) {
        call.require_own(x, static_cast<std::int64_t>(first + i));
        auto const before = call.shape(x)[first + i].count;
        all.push_back(taps_along(call, i, dimensions, before));
        factors.push_back(all.back().factor(before));
    }
    if (first == 2 && std::ranges::find(factors, 0) == factors.end()) {
        call.give(call.graph().add("Resize", {x}, {Element::f32, call.result_shape()},
                                   {{"factors", factors}}));
        return;
    }
    for (std::size_t i = 0; i < dimensions; ++i) {
        if (all[i].changes(call.shape(x)[first + i].count)) {
            x = resampled(call, x, first + i, all[i]);
        }
    }
    call.give(x);
}

/// The windows of an adaptive pool along each dimension have one size, or differ.
bool divides(LoweredCall& call, Id x, std::size_t dimensions) {
    auto const from = call.shape(x);
    auto const to = call.result_shape();
    for (auto i = from.size() - dimensions; i < from.size(); ++i) {
        if (from[i].count % to[i].count != 0) {
            return false;
        }
    }
    return true;
}

Id pooled_evenly(LoweredCall& call, Id x, std::size_t dimensions, bool mean) {
    auto const from = call.shape(x);
    auto const to = call.result_shape();
    Wholes window;
    Wholes axes;
    for (auto i = from.size() - dimensions; i < from.size(); ++i) {
        window.push_back(from[i].count / to[i].count);
        axes.push_back(static_cast<std::int64_t>(i));
    }
    bool const one = std::ranges::all_of(to.end() - static_cast<long>(dimensions), to.end(),
                                         [](auto const& extent) { return extent.count == 1; });
    if (one || from.size() != dimensions + 2) {
        if (!one) {
            call.refuse("its input has no batch dimension");
        }
        return call.reduce(mean ? "ReduceMean" : "ReduceMax", x, axes, true);
    }
    deploy::Attributes form{
        {"kernel_shape", window}, {"strides", window}, {"pads", Wholes(2 * dimensions, 0)}};
    if (mean) {
        form["count_include_pad"] = std::int64_t{1};
    }
    return call.graph().add(mean ? "AveragePool" : "MaxPool", {x}, {Element::f32, to}, form);
}

Lowering adaptive_average(std::size_t dimensions) {
    return [dimensions](LoweredCall& call) {
        auto const x = call.tensor(0);
        if (divides(call, x, dimensions)) {
            call.give(pooled_evenly(call, x, dimensions, true));
        } else {
            resample(call, dimensions);
        }
    };
}

Lowering adaptive_maximum(std::size_t dimensions) {
    return [dimensions](LoweredCall& call) {
        auto x = call.tensor(0);
        if (divides(call, x, dimensions)) {
            call.give(pooled_evenly(call, x, dimensions, false));
            call.give_nothing_more();
            return;
        }
        auto const to = call.result_shape();
        for (auto axis = to.size() - dimensions; axis < to.size(); ++axis) {
            call.require_own(x, static_cast<std::int64_t>(axis));
            auto const before = call.shape(x)[axis].count;
            auto const after = to[axis].count;
            auto const each = (before + after - 1) / after + 1;
            Wholes places;
            for (std::int64_t at = 0; at < after; ++at) {
                auto const end = ((at + 1) * before + after - 1) / after;
                for (std::int64_t i = 0; i < each; ++i) {
                    places.push_back(std::min(at * before / after + i, end - 1));
                }
            }
            auto const windows =
                call.gather(x, call.wholes(places, {after, each}), static_cast<std::int64_t>(axis));
            x = call.reduce("ReduceMax", windows, {static_cast<std::int64_t>(axis) + 1}, false);
        }
        call.give(x);
        call.give_nothing_more();
    };
}

/// The place that an entry beyond the ends, `at`, is taken from.
using Beyond = std::int64_t (*)(std::int64_t at, std::int64_t count);

std::int64_t reflected(std::int64_t at, std::int64_t count) {
    return at < 0 ? -at : at >= count ? 2 * (count - 1) - at : at;
}

std::int64_t repeated(std::int64_t at, std::int64_t count) {
    return std::clamp(at, std::int64_t{0}, count - 1);
}

std::int64_t around(std::int64_t at, std::int64_t count) {
    return (at % count + count) % count;
}

/// Entries from `first` on, `after` of them.
Id moved(LoweredCall& call, Id x, std::size_t axis, std::int64_t first, std::int64_t after,
         Beyond place) {
    auto const count = call.shape(x)[axis].count;
    Wholes places;
    for (auto at = first; at < first + after; ++at) {
        places.push_back(place(at, count));
    }
    return call.gather(x, call.wholes(places), static_cast<std::int64_t>(axis));
}

Lowering padding(Beyond place) {
    return [place](LoweredCall& call) {
        auto x = call.tensor(0);
        auto const pads = call.wholes_of(1); // from the last axis on: before, after
        for (std::size_t i = 0; i + 1 < pads.size(); i += 2) {
            auto const axis = call.shape(x).size() - 1 - i / 2;
            if (pads[i] != 0 || pads[i + 1] != 0) {
                auto const after = call.shape(x)[axis].count + pads[i] + pads[i + 1];
                x = moved(call, x, axis, -pads[i], after, place);
            }
        }
        call.give(x);
    };
}

void lower_flip(LoweredCall& call) {
    auto x = call.tensor(0);
    auto const rank = static_cast<std::int64_t>(call.shape(x).size());
    for (auto axis : call.wholes_of(1)) {
        axis += axis < 0 ? rank : 0;
        Wholes places;
        for (auto at = call.shape(x).at(static_cast<std::size_t>(axis)).count; at-- > 0;) {
            places.push_back(at);
        }
        x = call.gather(x, call.wholes(places), axis);
    }
    call.give(x);
}

void lower_roll(LoweredCall& call) { // by argument 1, along argument 2
    auto x = call.tensor(0);
    auto const rank = static_cast<std::int64_t>(call.shape(x).size());
    auto const shifts = call.wholes_of(1);
    auto const axes = call.wholes_of(2);
    if (axes.empty()) {
        call.refuse("it moves values from sample to sample");
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
        auto const axis = static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
        x = moved(call, x, axis, -shifts.at(i), call.shape(x).at(axis).count, around);
    }
    call.give(x);
}

/// (self, axis, size, step): windows along an axis, which become the last.
void lower_unfold(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const rank = call.shape(x).size();
    auto const axis = call.axis(1, rank);
    auto const size = call.whole(2);
    auto const after = call.result_shape().at(static_cast<std::size_t>(axis)).count;
    Wholes places;
    for (std::int64_t at = 0; at < after * size; ++at) {
        places.push_back(at / size * call.whole(3) + at % size);
    }
    auto const windows = call.gather(x, call.wholes(places, {after, size}), axis);
    Wholes order;
    for (std::int64_t i = 0; i <= static_cast<std::int64_t>(rank); ++i) {
        if (i != axis + 1) {
            order.push_back(i);
        }
    }
    order.push_back(axis + 1);
    call.give(call.transpose(windows, order));
}

/// aten::im2col, of (self, kernel, dilation, padding, stride): all windows of an image, as columns.
void lower_windows_of_image(LoweredCall& call) {
    auto x = call.tensor(0);
    auto const shape = call.shape(x);
    if (shape.size() != 4) {
        call.refuse("its input has no batch dimension");
    }
    Wholes const kernel = call.wholes_of(1);
    auto const pads = call.wholes_of(3);
    x = call.padded(x, {0, 0, pads[0], pads[1], 0, 0, pads[0], pads[1]}, 0);
    for (std::size_t i = 0; i < 2; ++i) {
        auto const axis = 2 + 2 * i; // the first has become two
        auto const dilation = call.wholes_of(2)[i];
        auto const step = call.wholes_of(4)[i];
        auto const after = (call.shape(x)[axis].count - dilation * (kernel[i] - 1) - 1) / step + 1;
        Wholes places;
        for (std::int64_t tap = 0; tap < kernel[i]; ++tap) {
            for (std::int64_t at = 0; at < after; ++at) {
                places.push_back(at * step + tap * dilation);
            }
        }
        x = call.gather(x, call.wholes(places, {kernel[i], after}),
                        static_cast<std::int64_t>(axis));
    }
    call.give(call.reshape(call.transpose(x, {0, 1, 2, 4, 3, 5}), call.result_shape()));
}

/// aten::col2im, of (self, size, kernel, dilation, padding, stride): windows are added where they
/// overlap, as a transposed convolution does it whose weights put each value of a window in its
/// place.
void lower_image_of_windows(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const kernel = call.wholes_of(2);
    auto const to = call.result_shape();
    if (to.size() != 4) {
        call.refuse("its input has no batch dimension");
    }
    auto const taps = kernel[0] * kernel[1];
    Wholes after(2);
    auto pads = call.wholes_of(4);
    pads.insert(pads.end(), {pads[0], pads[1]});
    Wholes more(2);
    for (std::size_t i = 0; i < 2; ++i) {
        auto const window = call.wholes_of(3)[i] * (kernel[i] - 1) + 1;
        auto const room = to[i + 2].count + 2 * pads[i] - window;
        after[i] = room / call.wholes_of(5)[i] + 1;
        more[i] = room % call.wholes_of(5)[i];
    }
    std::vector<float> weights;
    for (std::int64_t at = 0; at < to[1].count * taps * taps; ++at) {
        weights.push_back(at / taps % taps == at % taps ? 1 : 0);
    }
    auto const weight = call.graph().reals(weights, {to[1].count * taps, 1, kernel[0], kernel[1]});
    auto const windows =
        call.reshape(x, {to[0], {to[1].count * taps, false}, {after[0], false}, {after[1], false}});
    call.give(call.graph().add("ConvTranspose", {windows, weight}, {Element::f32, to},
                               {{"kernel_shape", kernel},
                                {"strides", call.wholes_of(5)},
                                {"pads", pads},
                                {"output_padding", more},
                                {"dilations", call.wholes_of(3)},
                                {"group", to[1].count}}));
}

/// (input, grid, mode, padding, whether the corners are at -1 and 1)
void lower_grid_sampler(LoweredCall& call) {
    if (call.whole(2) > 1) {
        call.refuse("its mode is bicubic, and only bilinear and nearest are supported");
    }
    auto grid = call.tensor(1);
    auto wanted = call.shape(grid);
    auto x = call.tensor(0);
    wanted.front() = call.result_shape().front(); // of all samples, or of each
    auto images = call.shape(x);
    images.front() = wanted.front();
    call.give(call.graph().add("GridSample",
                               {call.expanded(x, images), call.expanded(grid, wanted)},
                               {Element::f32, call.result_shape()},
                               {{"mode", call.whole(2)},
                                {"padding", call.whole(3)},
                                {"align_corners", std::int64_t{call.flag(4) ? 1 : 0}}}));
}

/// (theta, size, align corners): places in an image times each sample's matrix.
void lower_affine_grid(LoweredCall& call) {
    auto const theta = call.tensor(0);
    auto const shape = call.result_shape(); // [n, rows, columns, 2]
    if (shape.size() != 4) {
        call.refuse("it is for volumes, and only images are supported");
    }
    auto const places = shape[1].count * shape[2].count;
    auto arguments = call.given();
    arguments[0] = torch::eye(2, 3).unsqueeze(0);
    arguments[1] = Wholes{1, 1, shape[1].count, shape[2].count};
    auto const plain = call.applied(std::move(arguments)).reshape({places, 2});
    auto const ones = torch::cat({plain, torch::ones({places, 1})}, 1).contiguous();
    auto const* const first = ones.const_data_ptr<float>();
    auto const constant = call.graph().reals({first, first + ones.numel()}, {places, 3});
    call.give(call.reshape(call.matmul(constant, call.transpose(theta, {0, 2, 1})), shape));
}

} // namespace

Lowerings lower_resampling() {
    Lowerings table{
        {"aten::_adaptive_avg_pool2d", adaptive_average(2)},
        {"aten::_adaptive_avg_pool3d", adaptive_average(3)},
        {"aten::_pad_circular", padding(around)},
        {"aten::flip", lower_flip},
        {"aten::roll", lower_roll},
        {"aten::unfold", lower_unfold},
        {"aten::im2col", lower_windows_of_image},
        {"aten::col2im", lower_image_of_windows},
        {"aten::grid_sampler_2d", lower_grid_sampler},
        {"aten::affine_grid_generator", lower_affine_grid},
    };
    for (auto const& [name, dimensions] : {std::pair{"upsample_linear1d", 1},
                                           {"upsample_bilinear2d", 2},
                                           {"upsample_trilinear3d", 3},
                                           {"upsample_bicubic2d", 2},
                                           {"_upsample_bilinear2d_aa", 2},
                                           {"_upsample_bicubic2d_aa", 2}}) {
        table[std::string("aten::") + name] = [dimensions](LoweredCall& call) {
            resample(call, static_cast<std::size_t>(dimensions));
        };
    }
    for (std::size_t const dimensions : {1, 2, 3}) {
        auto const of = [&](char const* name) {
            return std::string("aten::") + name + std::to_string(dimensions) + "d";
        };
        auto const resampling = [dimensions](LoweredCall& call) { resample(call, dimensions); };
        table[of("upsample_nearest")] = resampling;
        table[of("_upsample_nearest_exact")] = resampling;
        table[of("adaptive_avg_pool")] = adaptive_average(dimensions);
        table[of("adaptive_max_pool")] = adaptive_maximum(dimensions);
        table[of("reflection_pad")] = padding(reflected);
        table[of("replication_pad")] = padding(repeated);
    }
    return table;
}

} // namespace lockstep::lower
