#include "nn/lowered_call.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

void lower_linear(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const weight = call.tensor(1);
    bool const flat = call.shape(x).size() == 2;
    auto const turned =
        call[weight].constant ? call.transposed_constant(weight) : call.transpose(weight, {1, 0});
    if (call.shape(x).size() < 2) {
        call.refuse("its input has no batch dimension");
    }
    if (flat && call.has(2)) {
        call.give(call.graph().add("Gemm", {x, turned, call.tensor(2)},
                                   {Element::f32, call.result_shape()}));
        return;
    }
    auto const product = call.matmul(x, turned);
    call.give(call.has(2) ? call.binary("Add", product, call.tensor(2)) : product);
}

/// addmm: beta · a + alpha · b c
void lower_addmm(LoweredCall& call) {
    if ((call.has(3) && call.number(3) != 1) || (call.has(4) && call.number(4) != 1)) {
        call.refuse("its alpha or beta is not 1");
    }
    call.give(call.binary("Add", call.matmul(call.tensor(1), call.tensor(2)), call.tensor(0)));
}

void lower_matmul(LoweredCall& call) {
    auto a = call.tensor(0);
    auto b = call.tensor(1);
    if (call.shape(a).size() == 1) {
        auto row = call.shape(a);
        row.insert(row.begin(), deploy::Extent{});
        a = call.reshape(a, row);
    }
    if (call.shape(b).size() == 1) {
        auto column = call.shape(b);
        column.push_back({});
        b = call.reshape(b, column);
    }
    auto const product = call.matmul(a, b);
    auto const wanted = call.result_shape();
    call.give(call.shape(product).size() == wanted.size() ? product
                                                          : call.reshape(product, wanted));
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

void convolve_transposed(LoweredCall& call, Transposed form) {
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
        if (more[i] >=
            strides[i]) { // which onnxruntime refuses, but less padding behind is the same
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

struct NormPlaces {
    std::size_t mean;
    std::size_t epsilon;
};
void norm_of_batches(LoweredCall& call, NormPlaces places) {
    if (!call.has(places.mean) || !call.has(places.mean + 1)) {
        call.refuse("it takes its statistics from the batch");
    }
    auto const mean = call.tensor(places.mean);
    auto const channels = call.shape(mean).front().count;
    auto const or_all = [&](std::size_t at, float value) {
        return call.has(at)
                   ? call.tensor(at)
                   : call.graph().reals(
                         std::vector<float>(static_cast<std::size_t>(channels), value), {channels});
    };
    call.give(call.graph().add(
        "BatchNormalization",
        {call.tensor(0), or_all(1, 1), or_all(2, 0), mean, call.tensor(places.mean + 1)},
        {Element::f32, call.result_shape()}, {{"epsilon", call.number(places.epsilon)}}));
    while (call.results() > 1 && call.gave() < call.results()) {
        call.give_nothing();
    }
}

void lower_batch_norm(LoweredCall& call) {
    if (call.flag(5)) {
        call.refuse("it takes its statistics from the batch");
    }
    norm_of_batches(call, {3, 7});
}

void lower_layer_norm(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const extents = call.wholes_of(1);
    auto const rank = static_cast<std::int64_t>(call.shape(x).size());
    auto const count =
        std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<Id> inputs{x};
    inputs.push_back(
        call.has(2)
            ? call.tensor(2)
            : call.graph().reals(std::vector<float>(static_cast<std::size_t>(count), 1), extents));
    if (call.has(3)) {
        inputs.push_back(call.tensor(3));
    }
    call.give(call.graph().add(
        "LayerNormalization", inputs, {Element::f32, call.result_shape()},
        {{"axis", rank - static_cast<std::int64_t>(extents.size())}, {"epsilon", call.number(4)}}));
    while (call.gave() < call.results()) {
        call.give_nothing();
    }
}

/// x / sqrt(mean(x²) + epsilon) · weight
void lower_rms_norm(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const rank = static_cast<std::int64_t>(call.shape(x).size());
    auto const count = static_cast<std::int64_t>(call.wholes_of(1).size());
    Wholes axes(static_cast<std::size_t>(count));
    std::iota(axes.begin(), axes.end(), rank - count);
    auto const square = call.reduce("ReduceMean", call.binary("Mul", x, x), axes, true);
    auto const epsilon =
        call.has(3) ? call.number(3) : double{std::numeric_limits<float>::epsilon()};
    auto const root = call.unary("Sqrt", call.binary("Add", square, call.graph().real(epsilon)));
    auto const scaled = call.binary("Div", x, root);
    call.give(call.has(2) ? call.binary("Mul", scaled, call.tensor(2)) : scaled);
}

void lower_group_norm(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const shape = call.shape(x);
    auto const groups = call.whole(1);
    auto const each = deploy::elements(shape) / groups;
    auto const grouped = call.reshape(x, Shape{shape[0], {groups, false}, {each, false}});
    auto const centred = call.binary("Sub", grouped, call.reduce("ReduceMean", grouped, {2}, true));
    auto const variance =
        call.reduce("ReduceMean", call.binary("Mul", centred, centred), {2}, true);
    auto const root =
        call.unary("Sqrt", call.binary("Add", variance, call.graph().real(call.number(4))));
    auto found = call.reshape(call.binary("Div", centred, root), shape);
    Shape channels(shape.size() - 1);
    channels[0] = shape[1];
    if (call.has(2)) {
        found = call.binary("Mul", found, call.reshape(call.tensor(2), channels));
    }
    if (call.has(3)) {
        found = call.binary("Add", found, call.reshape(call.tensor(3), channels));
    }
    call.give(found);
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
    while (call.gave() < call.results()) {
        call.give_nothing();
    }
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

Lowering reduction(std::string kind) { // of (self, axes, keep)
    return [kind](LoweredCall& call) {
        auto const x = call.cast(call.tensor(0), call.result_element());
        if (!call.has(1) || call.is_tensor(1)) {
            call.refuse("it reduces over all samples of a batch");
        }
        auto const rank = static_cast<std::int64_t>(call.shape(x).size());
        auto axes = call.wholes_of(1);
        for (auto& axis : axes) {
            axis = axis < 0 ? axis + rank : axis;
        }
        if (axes.empty()) {
            call.refuse("it reduces over all samples of a batch");
        }
        call.give(call.reduce(kind, x, axes, call.flag(2)));
    };
}

Lowering softmax(std::string kind) {
    return [kind](LoweredCall& call) {
        auto const x = call.tensor(0);
        call.give(call.softmax(kind, x, call.axis(1, call.shape(x).size())));
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

Lowerings lower_layers() {
    Lowerings table{
        {"aten::linear", lower_linear},
        {"aten::addmm", lower_addmm},
        {"aten::convolution", lower_any_convolution},
        {"aten::_convolution", lower_any_convolution},
        {"aten::batch_norm", lower_batch_norm},
        {"aten::_native_batch_norm_legit_no_training",
         [](LoweredCall& call) {
             norm_of_batches(call, {3, 6});
         }},
        {"aten::layer_norm", lower_layer_norm},
        {"aten::native_layer_norm", lower_layer_norm},
        {"aten::rms_norm", lower_rms_norm},
        {"aten::group_norm", lower_group_norm},
        {"aten::mean", reduction("ReduceMean")},
        {"aten::sum", reduction("ReduceSum")},
        {"aten::amax", reduction("ReduceMax")},
        {"aten::softmax", softmax("Softmax")},
        {"aten::_softmax", softmax("Softmax")},
        {"aten::log_softmax", softmax("LogSoftmax")},
        {"aten::_log_softmax", softmax("LogSoftmax")},
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
    for (auto const* const name : {"matmul", "mm", "bmm", "mv"}) {
        table[std::string("aten::") + name] = lower_matmul;
    }
    return table;
}

} // namespace lockstep::nn
