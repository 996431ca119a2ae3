#include "nn/lowered_call.hpp"

#include <algorithm>

namespace lockstep::nn {

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

void convolve(LoweredCall& call, Wholes const& stride, Wholes const& padding,
              Wholes const& dilation, std::int64_t groups) {
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
                                {"pads", both_sides(spread(padding, dimensions))},
                                {"dilations", spread(dilation, dimensions)},
                                {"group", groups}}));
}

void lower_convolution(LoweredCall& call) { // convNd
    Wholes padding;
    if (call.text(4).empty()) {
        padding = call.wholes_of(4);
    } else if (call.text(4) == "valid") {
        padding = {0};
    } else {
        call.refuse("its padding is a string, not numbers");
    }
    convolve(call, call.wholes_of(3), padding, call.wholes_of(5), call.whole(6));
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
    convolve(call, call.wholes_of(3), call.wholes_of(4), call.wholes_of(5), call.whole(8));
}

/// Extents of a pooled input where incomplete windows are left out.
Shape pooled(Shape shape, deploy::Attributes const& form) {
    auto const of = [&](char const* name, std::size_t i) {
        return std::get<Wholes>(form.at(name)).at(i);
    };
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) {
        auto const dilation = form.contains("dilations") ? of("dilations", i) : 1;
        auto const window = dilation * (of("kernel_shape", i) - 1) + 1;
        shape[i + 2].count =
            (shape[i + 2].count + 2 * of("pads", i) - window) / of("strides", i) + 1;
    }
    return shape;
}

void pool(LoweredCall& call, std::string const& kind, deploy::Attributes const& form) {
    auto const x = call.tensor(0);
    auto const shape = call.shape(x);
    if (shape.size() != std::get<Wholes>(form.at("kernel_shape")).size() + 2) {
        call.refuse("its input has no batch dimension");
    }
    if (!(pooled(shape, form) == call.result_shape())) {
        call.refuse("it has incomplete windows (ceil_mode)");
    }
    call.give(call.graph().add(kind, {x}, {Element::f32, call.result_shape()}, form));
    call.give_nothing_more();
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
        pool(call, "MaxPool", form);
    };
}

Lowering average_pool(std::size_t dimensions) {
    return [dimensions](LoweredCall& call) {
        if (call.has(6)) {
            call.refuse("its divisor_override is set");
        }
        auto form = window_of(call, dimensions);
        form["count_include_pad"] = std::int64_t{call.flag(5) ? 1 : 0};
        pool(call, "AveragePool", form);
    };
}

Lowering adaptive_pool(std::size_t dimensions) {
    return [dimensions](LoweredCall& call) {
        auto const x = call.tensor(0);
        auto const from = call.shape(x);
        auto const to = call.result_shape();
        Wholes window;
        Wholes axes;
        for (auto i = from.size() - dimensions; i < from.size(); ++i) {
            if (from[i].count % to[i].count != 0) {
                call.refuse("its windows differ in size");
            }
            window.push_back(from[i].count / to[i].count);
            axes.push_back(static_cast<std::int64_t>(i));
        }
        if (std::ranges::all_of(to.end() - static_cast<long>(dimensions), to.end(),
                                [](auto const& extent) { return extent.count == 1; })) {
            call.give(call.reduce("ReduceMean", x, axes, true));
            return;
        }
        pool(call, "AveragePool",
             {{"kernel_shape", window},
              {"strides", window},
              {"pads", Wholes(2 * dimensions, 0)},
              {"count_include_pad", std::int64_t{1}}});
    };
}

Lowering upsample(std::size_t dimensions) {
    return [dimensions](LoweredCall& call) {
        auto const x = call.tensor(0);
        auto const to = call.result_shape();
        Wholes factors;
        for (auto i = to.size() - dimensions; i < to.size(); ++i) {
            if (to[i].count % call.shape(x)[i].count != 0) {
                call.refuse("its factor is not a whole number");
            }
            factors.push_back(to[i].count / call.shape(x)[i].count);
        }
        call.give(call.graph().add("Resize", {x}, {Element::f32, to}, {{"factors", factors}}));
    };
}

} // namespace

Lowerings lower_windows() {
    Lowerings table{
        {"aten::convolution", lower_any_convolution},
        {"aten::_convolution", lower_any_convolution},
        {"aten::max_pool2d_with_indices", max_pool(2)},
        {"aten::max_pool3d_with_indices", max_pool(3)},
        {"aten::_adaptive_avg_pool2d", adaptive_pool(2)},
        {"aten::_adaptive_avg_pool3d", adaptive_pool(3)},
    };
    for (std::size_t const dimensions : {1, 2, 3}) {
        auto const of = [&](char const* name) {
            return std::string("aten::") + name + std::to_string(dimensions) + "d";
        };
        table[of("conv")] = lower_convolution;
        table[of("conv_transpose")] = lower_transposed_convolution;
        table[of("max_pool")] = max_pool(dimensions);
        table[of("avg_pool")] = average_pool(dimensions);
        table[of("adaptive_avg_pool")] = adaptive_pool(dimensions);
        table[of("upsample_nearest")] = upsample(dimensions);
    }
    return table;
}

} // namespace lockstep::nn
