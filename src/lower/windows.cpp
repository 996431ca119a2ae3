#include <algorithm>
#include <limits>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;
using deploy::Shape;
using Id = GraphParts::Id;
using Wholes = std::vector<std::int64_t>;

/// One value for each dimension.
Wholes spread(Wholes values, std::size_t dimensions) {
    return values.size() == 1 ? Wholes(dimensions, values.front()) : values;
}

Wholes both_sides(Wholes const& padding) {
    auto pads = padding;
    pads.insert(pads.end(), padding.begin(), padding.end());
    return pads;
}

/// `pads`: before and behind each dimension.
void convolve(LoweredCall& call, Wholes const& stride, Wholes const& pads, Wholes const& dilation,
              std::int64_t groups) {
    auto const x = call.tensor(0);
    auto const weight = call.tensor(1);
    auto const dimensions = call.shape(weight).size() - 2;
    if (call.shape(x).size() != dimensions + 2) {
        call.refuse("its input has no batch dimension");
    }
    Wholes kernel;
    for (auto at = call.shape(weight).begin() + 2; at != call.shape(weight).end(); ++at) {
        kernel.push_back(at->count);
    }
    std::vector<Id> inputs{x, weight};
    if (call.has(2)) {
        inputs.push_back(call.tensor(2));
    }
    call.give(call.graph().add("Conv", inputs, {Element::f32, call.result_shape()},
                               {{"kernel_shape", kernel},
                                {"strides", spread(stride, dimensions)},
                                {"pads", pads},
                                {"dilations", spread(dilation, dimensions)},
                                {"group", groups}}));
}

void lower_convolution(LoweredCall& call) { // convNd
    auto const& weight = call.shape(call.tensor(1));
    auto const dimensions = weight.size() - 2;
    Wholes pads(2 * dimensions, 0);
    if (call.text(4).empty()) {
        pads = both_sides(spread(call.wholes_of(4), dimensions));
    } else if (call.text(4) == "same") {
        auto const dilation = spread(call.wholes_of(5), dimensions);
        for (std::size_t i = 0; i < dimensions; ++i) {
            auto const both = dilation[i] * (weight[i + 2].count - 1);
            pads[i] = both / 2;
            pads[dimensions + i] = both - both / 2;
        }
    }
    convolve(call, call.wholes_of(3), pads, call.wholes_of(5), call.whole(6));
}

/// Strides, padding and so on of a transposed convolution.
struct Transposed {
    Wholes stride;
    Wholes padding;
    Wholes output_padding;
    Wholes dilation;
    std::int64_t groups;
};

void convolve_transposed(LoweredCall& call, Transposed const& form) {
    auto const x = call.tensor(0);
    auto const weight = call.tensor(1);
    auto const dimensions = call.shape(weight).size() - 2;
    if (call.shape(x).size() != dimensions + 2) {
        call.refuse("its input has no batch dimension");
    }
    auto const strides = spread(form.stride, dimensions);
    auto pads = both_sides(spread(form.padding, dimensions));
    auto more = spread(form.output_padding, dimensions);
    Wholes kernel;
    for (std::size_t i = 0; i < dimensions; ++i) {
        kernel.push_back(call.shape(weight)[i + 2].count);
        // This onnxruntime refuses, but less padding behind is the same.
        if (more[i] >= strides[i]) {
            auto& behind = pads[dimensions + i];
            auto const less = std::min(more[i], behind);
            behind -= less;
            more[i] -= less;
        }
        if (more[i] >= strides[i]) {
            call.refuse("its output_padding must be below its stride, or at most its padding");
        }
    }
    std::vector<Id> inputs{x, weight};
    if (call.has(2)) {
        inputs.push_back(call.tensor(2));
    }
    call.give(call.graph().add("ConvTranspose", inputs, {Element::f32, call.result_shape()},
                               {{"kernel_shape", kernel},
                                {"strides", strides},
                                {"pads", pads},
                                {"output_padding", more},
                                {"dilations", spread(form.dilation, dimensions)},
                                {"group", form.groups}}));
}

void lower_transposed_convolution(LoweredCall& call) { // conv_transposeNd
    convolve_transposed(call, {call.wholes_of(3), call.wholes_of(4), call.wholes_of(5),
                               call.wholes_of(7), call.whole(6)});
}

void lower_any_convolution(LoweredCall& call) { // convolution, _convolution
    if (call.flag(6)) {
        convolve_transposed(call, {call.wholes_of(3), call.wholes_of(4), call.wholes_of(7),
                                   call.wholes_of(5), call.whole(8)});
        return;
    }
    auto const dimensions = call.shape(call.tensor(1)).size() - 2;
    convolve(call, call.wholes_of(3), both_sides(spread(call.wholes_of(4), dimensions)),
             call.wholes_of(5), call.whole(8));
}

/// Pads and other lists of a window, one value for each dimension.
Wholes const& extents_in(deploy::Attributes const& form, char const* name) {
    return std::get<Wholes>(form.at(name));
}

/// The extents that a window covers.
Wholes windows_of(deploy::Attributes const& form) {
    auto windows = extents_in(form, "kernel_shape");
    for (std::size_t i = 0; i < windows.size() && form.contains("dilations"); ++i) {
        windows[i] = extents_in(form, "dilations")[i] * (windows[i] - 1) + 1;
    }
    return windows;
}

/// What an input with its padding lacks behind, so that all windows of the result are complete
/// (ceil_mode).
Wholes lacking(Shape const& from, Shape const& to, deploy::Attributes const& form) {
    auto lacks = windows_of(form);
    for (std::size_t i = 0; i < lacks.size(); ++i) {
        auto const covered = (to[i + 2].count - 1) * extents_in(form, "strides")[i] + lacks[i];
        auto const padded = from[i + 2].count + 2 * extents_in(form, "pads")[i];
        lacks[i] = std::max(covered - padded, std::int64_t{0});
    }
    return lacks;
}

/// Pads the spatial extents of images with `value`.
Id with_padding(LoweredCall& call, Id x, Wholes const& pads, double value) {
    auto const dimensions = pads.size() / 2;
    Wholes all(2, 0);
    all.insert(all.end(), pads.begin(), pads.begin() + static_cast<long>(dimensions));
    all.insert(all.end(), 2, 0);
    all.insert(all.end(), pads.begin() + static_cast<long>(dimensions), pads.end());
    return call.padded(x, all, value);
}

Id pool_input(LoweredCall& call, std::size_t dimensions) {
    auto const x = call.tensor(0);
    if (call.shape(x).size() != dimensions + 2) {
        call.refuse("its input has no batch dimension");
    }
    return x;
}

Wholes added(Wholes pads, Wholes const& behind) {
    for (std::size_t i = 0; i < behind.size(); ++i) {
        pads[behind.size() + i] += behind[i];
    }
    return pads;
}

/// Kernel, strides and pads are arguments 1, 2 and 3.
deploy::Attributes window_of(LoweredCall& call, std::size_t dimensions) {
    auto const kernel = spread(call.wholes_of(1), dimensions);
    auto const stride = call.has(2) ? call.wholes_of(2) : Wholes{};
    return {{"kernel_shape", kernel},
            {"strides", stride.empty() ? kernel : spread(stride, dimensions)},
            {"pads", both_sides(spread(call.wholes_of(3), dimensions))}};
}

Lowering max_pool(std::size_t dimensions) {
    return [dimensions](LoweredCall& call) {
        auto form = window_of(call, dimensions);
        form["dilations"] = spread(call.wholes_of(4), dimensions);
        auto x = pool_input(call, dimensions);
        auto const to = call.result_shape();
        auto pads = added(extents_in(form, "pads"), lacking(call.shape(x), to, form));
        auto const& kernel = extents_in(form, "kernel_shape");
        for (std::size_t i = 0; i < dimensions; ++i) {
            if (pads[dimensions + i] >= kernel[i]) { // which onnxruntime refuses
                x = with_padding(call, x, pads, -std::numeric_limits<double>::infinity());
                pads.assign(2 * dimensions, 0);
            }
        }
        form["pads"] = pads;
        call.give(call.graph().add("MaxPool", {x}, {Element::f32, to}, form));
        call.give_nothing_more();
    };
}

/// (input, kernel, stride, padding, ceil_mode, whether padding counts, what to divide by instead)
Lowering average_pool(std::size_t dimensions) {
    return [dimensions](LoweredCall& call) {
        auto form = window_of(call, dimensions);
        auto x = pool_input(call, dimensions);
        auto const to = call.result_shape();
        auto const lacks = lacking(call.shape(x), to, form);
        bool const complete = std::ranges::count(lacks, 0) == static_cast<long>(dimensions);
        bool counts = call.flag(5);
        bool const divides = call.has(6);
        auto pads = extents_in(form, "pads");
        if (divides) { // all windows alike
            x = with_padding(call, x, added(pads, lacks), 0);
            pads.assign(2 * dimensions, 0);
        } else if (!complete && counts) { // the padding counts, what lacks behind it does not
            x = with_padding(call, x, pads, 0);
            pads = added(Wholes(2 * dimensions, 0), lacks);
            counts = false;
        } else {
            pads = added(pads, lacks);
        }
        form["pads"] = pads;
        form["count_include_pad"] = std::int64_t{counts ? 1 : 0};
        auto found = call.graph().add("AveragePool", {x}, {Element::f32, to}, form);
        if (divides) {
            double values = 1;
            for (auto const extent : extents_in(form, "kernel_shape")) {
                values *= static_cast<double>(extent);
            }
            found = call.binary("Mul", found, call.graph().real(values / call.number(6)));
        }
        call.give(found);
    };
}

} // namespace

Lowerings lower_windows() {
    Lowerings table{
        {"aten::convolution", lower_any_convolution},
        {"aten::_convolution", lower_any_convolution},
        {"aten::max_pool2d_with_indices", max_pool(2)},
        {"aten::max_pool3d_with_indices", max_pool(3)},
    };
    for (std::size_t const dimensions : {1, 2, 3}) {
        auto const of = [&](char const* name) {
            return std::string("aten::") + name + std::to_string(dimensions) + "d";
        };
        table[of("conv")] = lower_convolution;
        table[of("conv_transpose")] = lower_transposed_convolution;
        table[of("max_pool")] = max_pool(dimensions);
        table[of("avg_pool")] = average_pool(dimensions);
    }
    return table;
}

} // namespace lockstep::lower
