#include "base/text.hpp"

#include <algorithm>
#include <numeric>

#include "channel_tracer.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t groups_at = 8; // in the arguments of a convolution

} // namespace

std::map<std::string, ChannelTracer::Rule> const& ChannelTracer::rules() {
    static auto const all = [] {
        using Self = ChannelTracer;
        std::map<std::string, Rule> table{
            {"aten::convolution", &Self::convolution},
            {"aten::_convolution", &Self::convolution}, // of traced scripts
            {"aten::linear", &Self::linear},
            {"aten::addmm", &Self::linear},
            {"aten::matmul", &Self::linear},
            {"aten::batch_norm", &Self::batch_norm},
            {"aten::instance_norm", &Self::instance_norm},
            {"aten::group_norm", &Self::group_norm},
            {"aten::layer_norm", &Self::norm_of_extents},
            {"aten::rms_norm", &Self::norm_of_extents},
            {"aten::prelu", &Self::prelu},
            {"aten::cat", &Self::concatenation},
            {"aten::mean", &Self::reduction},
            {"aten::sum", &Self::reduction},
            {"aten::amax", &Self::reduction},
            {"aten::permute", &Self::permutation},
            {"aten::transpose", &Self::permutation},
        };
        for (auto const* const name :
             {"relu",       "gelu",       "silu",        "elu",        "sigmoid",     "tanh",
              "hardtanh",   "hardswish",  "hardsigmoid", "leaky_relu", "softplus",    "relu6",
              "clone",      "contiguous", "to",          "_to_copy",   "dropout",     "detach",
              "alias",      "mish",       "selu",        "celu",       "log_sigmoid", "hardshrink",
              "softshrink", "threshold",  "rrelu"}) {
            table[concat("aten::", name)] = &Self::by_element;
        }
        for (auto const* const name :
             {"max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "upsample_nearest",
              "_upsample_nearest_exact", "reflection_pad", "replication_pad"}) {
            for (auto const* const dimensions : {"1d", "2d", "3d"}) {
                table[concat("aten::", name, dimensions)] = &Self::by_place;
            }
        }
        for (auto const* const name :
             {"upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d",
              "upsample_trilinear3d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"}) {
            table[concat("aten::", name)] = &Self::by_place;
        }
        for (auto const* const name : {"add", "sub", "mul", "div", "maximum", "minimum"}) {
            table[concat("aten::", name)] = &Self::of_two;
        }
        for (auto const* const name : {"view", "reshape", "flatten"}) {
            table[concat("aten::", name)] = &Self::reshape;
        }
        return table;
    }();
    return all;
}

std::set<std::string> ChannelTracer::known() {
    std::set<std::string> names;
    for (auto const& [name, rule] : rules()) {
        names.insert(name);
    }
    return names;
}

/// What takes the channels of its input and makes new ones.
void ChannelTracer::layer(nn::RecordedCall const& call, Layer const& parts,
                          std::size_t input_extent, std::int64_t axis) {
    auto const given = input(call, parts.input);
    auto const& weight = parts.weight;
    auto const& bias = parts.bias;
    if (!weight || (parts.has_bias && !bias)) {
        unknown(call);
        return;
    }
    auto const& shape = graph_.tensors_[*weight].shape;
    bool const fits = given.channels.empty() ||
                      (given.axis == axis &&
                       static_cast<std::int64_t>(given.channels.size()) == shape[input_extent]);
    if (fits) {
        label(*weight, input_extent,
              given.channels.empty() ? [&] {
                  auto all = fresh(shape[input_extent]);
                  keep(all); // the model's own input
                  return all;
              }()
                                     : given.channels);
    } else {
        keep(given.channels);
    }
    auto const made = fresh(shape[1 - input_extent]);
    label(*weight, 1 - input_extent, made);
    if (bias) {
        label(*bias, 0, made);
    }
    give(call, made, axis);
    count_product(*weight);
}

/// Notes that the newest value comes from products with a weight.
void ChannelTracer::count_product(std::size_t weight) {
    auto const& [result, channels, axis] = values_.back();
    auto const all = std::accumulate(result.begin(), result.end(), std::int64_t{1},
                                     std::multiplies<>()); // of all samples
    auto const samples = result.front();
    graph_.products_.push_back({weight, all / samples / result[static_cast<std::size_t>(axis)]});
}

void ChannelTracer::convolution(nn::RecordedCall const& call) {
    constexpr std::size_t transposed_at = 6;
    if (auto const groups = call.arguments[groups_at].toInt(); groups != 1) {
        grouped_convolution(call, groups);
        return;
    }
    layer(call,
          {0, tensor_of(call.arguments[1]), is_there(call.arguments[2]),
           tensor_of(call.arguments[2])},
          call.arguments[transposed_at].toBool() ? 0 : 1, 1);
}

/// A group goes whole, its inputs with its outputs, so that those that remain have the same size.
/// In a depthwise convolution each channel is a group.
void ChannelTracer::grouped_convolution(nn::RecordedCall const& call, std::int64_t groups) {
    constexpr std::size_t transposed_at = 6;
    auto const given = input(call);
    auto const weight = tensor_of(call.arguments[1]);
    auto const bias = tensor_of(call.arguments[2]);
    if (!takes_sizes_ || call.arguments[transposed_at].toBool() || !weight ||
        (is_there(call.arguments[2]) && !bias) || given.channels.empty() || given.axis != 1) {
        unknown(call);
        return;
    }
    auto const count = static_cast<std::size_t>(groups);
    auto const inputs = given.channels.size() / count;
    auto const outputs = static_cast<std::size_t>(graph_.tensors_[*weight].shape[0]) / count;
    std::vector<int> made;
    for (std::size_t group = 0; group < count; ++group) {
        auto const first = given.channels[group * inputs];
        for (std::size_t i = 1; i < inputs; ++i) {
            tie(first, given.channels[group * inputs + i]);
        }
        made.insert(made.end(), outputs, first);
    }
    label(*weight, 0, made);
    if (bias) {
        label(*bias, 0, made);
    }
    give(call, std::move(made), 1);
    count_product(*weight);
}

/// aten::linear, or a product with the transposed weight, to which a bias is added at once or by
/// another operator.
void ChannelTracer::linear(nn::RecordedCall const& call) {
    auto const& arguments = call.arguments;
    Layer parts;
    if (call.name == "aten::linear") {
        parts = {0, tensor_of(arguments[1]), is_there(arguments[2]), tensor_of(arguments[2])};
    } else if (call.name == "aten::addmm") {
        auto const bias = tensor_of(arguments[0]);
        bool const is_row = bias && graph_.tensors_[*bias].shape.size() == 1;
        parts = {1, transposed_of(arguments[2]), true, is_row ? bias : std::nullopt};
    } else {
        parts = {0, transposed_of(arguments[1]), false, std::nullopt};
    }
    layer(call, parts, 1, static_cast<std::int64_t>(call.results.front().dim()) - 1);
}

/// Scale, shift and statistics of each channel. What is not a parameter has lost its name on the
/// way: it has that of the scale's module.
void ChannelTracer::batch_norm(nn::RecordedCall const& call) {
    auto const given = input(call);
    auto const scale = tensor_of(call.arguments[1]);
    if (!scale || given.channels.empty() || given.axis != 1) {
        unknown(call);
        return;
    }
    auto const& name = graph_.tensors_[*scale].name;
    auto const module = name.substr(0, name.rfind('.') + 1);
    if (module.empty()) { // a function's, whose arguments may belong to any
        parts_of_norm(call, {1, 2, 3, 4}, 0);
        return;
    }
    for (std::size_t i = 0; i < graph_.tensors_.size(); ++i) {
        auto const& tensor = graph_.tensors_[i];
        if (tensor.name.starts_with(module) && tensor.shape.size() == 1 &&
            tensor.shape[0] == static_cast<std::int64_t>(given.channels.size())) {
            label(i, 0, given.channels);
        }
    }
    give(call, given.channels, given.axis);
}

/// With statistics as batch norm, which has the same arguments; else the scale and the shift, as
/// far as there are any.
void ChannelTracer::instance_norm(nn::RecordedCall const& call) {
    if (is_there(call.arguments[3])) {
        batch_norm(call);
    } else if (input(call).axis != 1) {
        unknown(call);
    } else {
        parts_of_norm(call, {1, 2}, 0);
    }
}

/// Each group loses as many channels, so that their number stays.
void ChannelTracer::group_norm(nn::RecordedCall const& call) {
    auto const given = input(call);
    if (given.channels.empty() || given.axis != 1) {
        unknown(call);
        return;
    }
    auto const groups = static_cast<std::size_t>(call.arguments[1].toInt());
    auto const each = given.channels.size() / groups;
    for (std::size_t i = each; i < given.channels.size(); ++i) {
        tie(given.channels[i % each], given.channels[i]);
    }
    parts_of_norm(call, {2, 3}, 0);
}

/// aten::layer_norm and aten::rms_norm, over the last extents: those of the scale and the shift.
void ChannelTracer::norm_of_extents(nn::RecordedCall const& call) {
    auto const given = input(call);
    auto const first = static_cast<std::int64_t>(given.shape.size()) -
                       static_cast<std::int64_t>(call.arguments[1].toIntVector().size());
    if (given.channels.empty() || (given.axis >= first && !takes_sizes_)) {
        unknown(call);
    } else if (given.axis < first) {
        by_element(call); // each channel alone
    } else {
        parts_of_norm(call, {2, 3}, static_cast<std::size_t>(given.axis - first));
    }
}

/// The scale, shift and statistics of a norm are these arguments, of which any may be missing.
/// `extent`: theirs of the channels.
void ChannelTracer::parts_of_norm(nn::RecordedCall const& call,
                                  std::initializer_list<std::size_t> arguments,
                                  std::size_t extent) {
    auto const given = input(call);
    for (auto const at : arguments) {
        if (is_there(call.arguments[at]) && !tensor_of(call.arguments[at])) {
            unknown(call);
            return;
        }
    }
    for (auto const at : arguments) {
        if (auto const tensor = tensor_of(call.arguments[at])) {
            label(*tensor, extent, given.channels);
        }
    }
    give(call, given.channels, given.axis);
}

void ChannelTracer::by_element(nn::RecordedCall const& call) {
    auto const given = input(call);
    give(call, given.channels, given.axis);
}

/// One slope for all channels, or one for each.
void ChannelTracer::prelu(nn::RecordedCall const& call) {
    auto const slopes = tensor_of(call.arguments[1]);
    if (slopes && graph_.tensors_[*slopes].shape.front() == 1) {
        by_element(call);
    } else if (input(call).channels.empty() || input(call).axis != 1) {
        unknown(call);
    } else {
        parts_of_norm(call, {1}, 0);
    }
}

void ChannelTracer::by_place(nn::RecordedCall const& call) {
    auto const given = input(call);
    if (given.axis != 1) {
        unknown(call);
        return;
    }
    give(call, given.channels, given.axis);
}

/// The extent of a parameter that lies along the channels of a value which it is added to, or
/// multiplied by, without making it larger.
std::optional<std::size_t> ChannelTracer::extent_along(std::size_t tensor,
                                                       Value const& value) const {
    auto const& shape = graph_.tensors_[tensor].shape;
    auto const missing = value.shape.size() - shape.size();
    auto const axis = static_cast<std::size_t>(value.axis);
    if (value.channels.empty() || shape.size() > value.shape.size() || axis < missing ||
        shape[axis - missing] != static_cast<std::int64_t>(value.channels.size())) {
        return std::nullopt;
    }
    for (std::size_t at = 0; at < shape.size(); ++at) {
        if (shape[at] != 1 && shape[at] != value.shape[missing + at]) {
            return std::nullopt;
        }
    }
    return axis - missing;
}

/// Traces an operator of two values, or of one and a number or a parameter.
void ChannelTracer::of_two(nn::RecordedCall const& call) {
    auto const is_number = [&](std::size_t at) {
        auto const& argument = call.arguments[at];
        return argument.isScalar() ||
               (argument.isTensor() && !call.values.at(at) && argument.toTensor().numel() == 1);
    };
    if (is_number(1)) {
        by_element(call);
        return;
    }
    for (auto const at : {std::size_t{0}, std::size_t{1}}) {
        auto const parameter = tensor_of(call.arguments[1 - at]);
        if (!parameter) {
            continue;
        }
        auto const given = input(call, at);
        if (auto const extent = extent_along(*parameter, given)) {
            label(*parameter, *extent, given.channels);
            give(call, given.channels, given.axis);
        } else {
            unknown(call);
        }
        return;
    }
    bool const both = call.arguments[0].isTensor() && call.arguments[1].isTensor() &&
                      call.values.at(0) && call.values.at(1);
    if (!both) {
        unknown(call);
        return;
    }
    auto const a = input(call, 0);
    auto const b = input(call, 1);
    if (a.channels.empty() || a.channels.size() != b.channels.size() || a.axis != b.axis ||
        a.shape.size() != b.shape.size()) {
        unknown(call);
        return;
    }
    tie(a.channels, b.channels);
    give(call, a.channels, a.axis);
}

void ChannelTracer::concatenation(nn::RecordedCall const& call) {
    std::vector<Value> parts;
    for (std::size_t i = 0; i < call.values.size(); ++i) {
        auto part = input(call, i);
        if (part.channels.empty() || (i > 0 && part.axis != parts.front().axis)) {
            unknown(call);
            return;
        }
        parts.push_back(std::move(part));
    }
    auto dimension = call.arguments.at(1).toInt();
    dimension += dimension < 0 ? static_cast<std::int64_t>(parts.front().shape.size()) : 0;
    auto channels = parts.front().channels;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        auto const& more = parts[i].channels;
        if (dimension == parts.front().axis) {
            channels.insert(channels.end(), more.begin(), more.end());
        } else {
            tie(channels, more);
        }
    }
    give(call, std::move(channels), parts.front().axis);
}

void ChannelTracer::reduction(nn::RecordedCall const& call) {
    auto const given = input(call);
    auto const rank = static_cast<std::int64_t>(given.shape.size());
    std::vector<std::int64_t> over;
    if (call.arguments.size() > 1 && call.arguments[1].isIntList()) {
        over = call.arguments[1].toIntVector();
    }
    std::ranges::for_each(over, [&](auto& each) { each += each < 0 ? rank : 0; });
    if (over.empty() || std::ranges::find(over, given.axis) != over.end()) {
        unknown(call);
        return;
    }
    bool const keeps = static_cast<std::int64_t>(call.results.front().dim()) == rank;
    auto const before =
        std::ranges::count_if(over, [&](std::int64_t each) { return each < given.axis; });
    give(call, given.channels, given.axis - (keeps ? 0 : before));
}

/// Extents before the channels stay; the channels' may take in those that follow.
void ChannelTracer::reshape(nn::RecordedCall const& call) {
    auto const given = input(call);
    auto const shape = call.results.front().sizes().vec();
    auto const axis = static_cast<std::size_t>(given.axis);
    if (given.channels.empty() || shape.size() <= axis ||
        !std::equal(given.shape.begin(), given.shape.begin() + given.axis, shape.begin())) {
        unknown(call);
        return;
    }
    auto const own = given.shape[axis];
    auto inner = std::int64_t{1};
    for (auto at = axis + 1; at < given.shape.size() && own * inner < shape[axis]; ++at) {
        inner *= given.shape[at];
    }
    if (own * inner != shape[axis]) {
        unknown(call);
        return;
    }
    std::vector<int> channels;
    for (auto const channel : given.channels) {
        channels.insert(channels.end(), static_cast<std::size_t>(inner), channel);
    }
    give(call, std::move(channels), given.axis);
}

void ChannelTracer::permutation(nn::RecordedCall const& call) {
    auto const given = input(call);
    auto const rank = static_cast<std::int64_t>(given.shape.size());
    std::vector<std::int64_t> order(given.shape.size());
    std::iota(order.begin(), order.end(), 0);
    auto const positive = [&](std::int64_t at) { return at < 0 ? at + rank : at; };
    if (call.name == "aten::permute") {
        order = call.arguments[1].toIntVector();
        std::ranges::transform(order, order.begin(), positive);
    } else {
        std::swap(order.at(static_cast<std::size_t>(positive(call.arguments[1].toInt()))),
                  order.at(static_cast<std::size_t>(positive(call.arguments[2].toInt()))));
    }
    give(call, given.channels, std::ranges::find(order, given.axis) - order.begin());
}

/// Notes products with a weight whose channels are not followed; a weight that depends on the
/// inputs is none.
void ChannelTracer::count_fixed_product(nn::RecordedCall const& call) {
    static std::map<std::string, std::size_t> const weights{
        {"aten::convolution", 1}, {"aten::_convolution", 1}, {"aten::linear", 1},
        {"aten::matmul", 1},      {"aten::mm", 1},           {"aten::addmm", 2}};
    auto const found = weights.find(call.name);
    if (found == weights.end() || call.values.at(found->second)) {
        return;
    }
    auto const& argument = call.arguments[found->second];
    auto const& result = call.results.front();
    if (result.dim() < 2 || argument.toTensor().dim() < 2 || result.numel() == 0) {
        return;
    }
    bool const is_convolution = call.name.ends_with("convolution");
    auto const places = result.numel() / result.size(0) / result.size(is_convolution ? 1 : -1);
    graph_.fixed_macs_ += static_cast<double>(places * argument.toTensor().numel());
    if (!tensor_of(argument) && !transposed_of(argument)) {
        graph_.barriers_.insert(concat(call.name, " with a weight that is no parameter, but is "
                                                  "computed from some"));
    }
}

/// Nothing is known of what comes out, so all that goes in stays.
void ChannelTracer::unknown(nn::RecordedCall const& call) {
    count_fixed_product(call);
    bool const has_groups = rules().contains(call.name) &&
                            rules().at(call.name) == &ChannelTracer::convolution &&
                            call.arguments[groups_at].toInt() != 1;
    for (std::size_t i = 0; i < call.values.size(); ++i) {
        auto const& channels = input(call, i).channels;
        keep(channels);
        if (!channels.empty()) {
            graph_.barriers_.insert(has_groups ? concat(call.name, " with groups") : call.name);
        }
    }
    for (auto const& argument : call.arguments) {
        if (auto const tensor = tensor_of(argument)) {
            auto const& own = graph_.tensors_[*tensor];
            for (std::size_t extent = 0; extent < own.shape.size(); ++extent) {
                auto const all = fresh(own.shape[extent]);
                keep(all);
                label(*tensor, extent, all);
            }
        }
    }
}

/// All channels of an input have become one, such as by a group norm whose groups are those of the
/// convolution before it.
void ChannelTracer::tied(nn::RecordedCall const& call) {
    std::string module;
    for (auto const& argument : call.arguments) {
        if (auto const tensor = tensor_of(argument); tensor && module.empty()) {
            auto const& name = graph_.tensors_[*tensor].name;
            module = concat(" of ", name.substr(0, name.rfind('.')));
        }
    }
    graph_.barriers_.insert(
        concat(call.name, module, " (it ties all channels before it together)"));
}

} // namespace lockstep::train
