#include "lowered_call.hpp"

#include "base/text.hpp"

#include <ATen/native/TypeProperties.h>

#include <algorithm>

namespace lockstep::lower {

using deploy::Element;
using deploy::Extent;
using deploy::Shape;
using Id = GraphParts::Id;

namespace {

Extent extent_of(std::int64_t two, std::int64_t three) {
    if (two == three) {
        return {two, false};
    }
    auto const each = three - two;
    if (two != each * LoweredCall::batches[0]) {
        nn::refuse_export("a size is not a multiple of the batch size",
                          concat("it is ", two, " for 2 samples and ", three, " for 3"));
    }
    return {each, true};
}

Element element_of(torch::Tensor const& tensor) {
    switch (tensor.scalar_type()) {
    case torch::kFloat32:
        return Element::f32;
    case torch::kInt64:
        return Element::i64;
    case torch::kUInt8:
        return Element::u8;
    case torch::kChar:
        return Element::i8;
    case torch::kBool:
        return Element::boolean;
    default:
        nn::refuse_export(concat("it computes in ", c10::toString(tensor.scalar_type())),
                          "exported models can compute only in float32, int64 and bool");
    }
}

std::vector<std::byte> bytes_in(torch::Tensor const& tensor) {
    auto const flat = tensor.contiguous();
    auto const* const first = static_cast<std::byte const*>(flat.const_data_ptr());
    return {first, first + flat.nbytes()};
}

/// Without the extents that grow with the batch, along which everything must be the same.
torch::Tensor without_batch(torch::Tensor tensor, Shape const& shape) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
        auto const axis = static_cast<std::int64_t>(i);
        if (shape[i].batch) {
            auto const first = tensor.slice(axis, 0, 1);
            if (!torch::equal(first.expand_as(tensor), tensor)) {
                nn::refuse_export("a constant depends on a sample's position in the batch",
                                  "each sample must be computed independently");
            }
            tensor = first;
        }
    }
    return tensor;
}

} // namespace

Shape shape_of(torch::Tensor const& two, torch::Tensor const& three) {
    if (two.dim() != three.dim()) {
        nn::refuse_export("a tensor has different numbers of dimensions for different batch sizes",
                          "a single graph cannot represent this");
    }
    Shape shape;
    for (std::int64_t i = 0; i < two.dim(); ++i) {
        shape.push_back(extent_of(two.size(i), three.size(i)));
    }
    return shape;
}

LoweredCall::LoweredCall(deploy::Graph& graph, ValueTable& table, nn::RecordedCall const& two,
                         nn::RecordedCall const& three)
    : GraphParts(graph), table_(table), two_(two), three_(three) {}

bool LoweredCall::has(std::size_t at) const {
    if (at >= two_.arguments.size() || two_.arguments[at].isNone()) {
        return false;
    }
    return !two_.arguments[at].isTensor() || two_.arguments[at].toTensor().defined();
}

bool LoweredCall::is_tensor(std::size_t at) const {
    return has(at) && two_.arguments[at].isTensor();
}

std::size_t LoweredCall::first_flat(std::size_t at) const {
    std::size_t flat = 0;
    for (std::size_t before = 0; before < at; ++before) {
        auto const& argument = two_.arguments[before];
        flat += argument.isTensor()       ? 1
                : argument.isTensorList() ? argument.toTensorVector().size()
                                          : 0;
    }
    return flat;
}

torch::Tensor LoweredCall::applied(std::vector<c10::IValue> arguments) const {
    auto const op = c10::Dispatcher::singleton().findSchemaOrThrow(
        two_.schema->name().c_str(), two_.schema->overload_name().c_str());
    op.callBoxed(&arguments);
    return arguments.front().toTensor();
}

Id LoweredCall::constant(torch::Tensor const& two, torch::Tensor const& three) {
    auto const* const key = two.unsafeGetTensorImpl();
    if (auto const found = table_.constants.find(key); found != table_.constants.end()) {
        return found->second;
    }
    if (!two_.drawn_by.empty()) {
        refuse(concat("operator ", two_.drawn_by, " draws one of its arguments at random"));
    }
    auto const shape = shape_of(two, three);
    auto const a = without_batch(two, shape);
    if (!torch::equal(a, without_batch(three, shape))) {
        nn::refuse_export("a constant has different values for different batch sizes",
                          "each sample must be computed independently");
    }
    auto const name = table_.names.find(key);
    bool const lasts = name != table_.names.end() && two.requires_grad();
    auto const sizes = a.sizes();
    auto const id =
        graph().constant(lasts ? name->second : std::string(), element_of(a),
                         deploy::fixed_shape({sizes.begin(), sizes.end()}), bytes_in(a));
    if (lasts) {
        table_.constants[key] = id;
    }
    return id;
}

Id LoweredCall::any(torch::Tensor const& two, torch::Tensor const& three, std::size_t flat) {
    auto const value = two_.values.at(flat);
    if (!value) {
        return constant(two, three);
    }
    auto const id = table_.values.at(*value);
    if (id == ValueTable::absent) {
        refuse("it uses a result of an operator that cannot be exported");
    }
    return id;
}

Id LoweredCall::tensor(std::size_t at) {
    if (!is_tensor(at)) {
        refuse(concat("its argument ", two_.schema->arguments().at(at).name(), " is not a tensor"));
    }
    return any(two_.arguments[at].toTensor(), three_.arguments[at].toTensor(), first_flat(at));
}

std::vector<Id> LoweredCall::tensors(std::size_t at) {
    auto const two = two_.arguments.at(at).toTensorVector();
    auto const three = three_.arguments.at(at).toTensorVector();
    std::vector<Id> ids;
    auto const first = first_flat(at);
    for (std::size_t i = 0; i < two.size(); ++i) {
        ids.push_back(any(two[i], three.at(i), first + i));
    }
    return ids;
}

std::vector<LoweredCall::Item> LoweredCall::items(std::size_t at) {
    auto const two = two_.arguments.at(at).toListRef();
    auto const three = three_.arguments.at(at).toListRef();
    auto flat = first_flat(at);
    auto const counts = [&](std::size_t i) {
        auto const numbers = [](c10::IValue const& value, std::int64_t count) {
            auto const tensor = value.toTensor();
            return tensor.scalar_type() == torch::kInt64 && tensor.numel() == count &&
                   torch::equal(tensor.flatten(), torch::arange(count));
        };
        return !two_.values.at(flat) && numbers(two[i], batches[0]) &&
               numbers(three[i], batches[1]);
    };
    std::vector<Item> found(two.size());
    for (std::size_t i = 0; i < two.size(); ++i) {
        if (!two[i].isTensor()) {
            continue;
        }
        found[i].is_there = true;
        found[i].counts_samples = counts(i);
        if (!found[i].counts_samples) {
            found[i].tensor = any(two[i].toTensor(), three[i].toTensor(), flat);
        }
        ++flat;
    }
    return found;
}

Id LoweredCall::transposed_constant(Id matrix) {
    if (auto const found = table_.transposed.find(matrix); found != table_.transposed.end()) {
        return found->second;
    }
    auto const from = (*this)[matrix]; // the list of tensors grows
    auto const rows = static_cast<std::size_t>(from.shape[0].count);
    auto const columns = static_cast<std::size_t>(from.shape[1].count);
    auto const values = from.reals();
    std::vector<float> turned(values.size());
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            turned[column * rows + row] = values[row * columns + column];
        }
    }
    auto const bytes = std::as_bytes(std::span(turned));
    auto const named = from.name.starts_with('/') ? std::string() : from.name + "/transposed";
    return table_.transposed[matrix] = graph().constant(
               named, Element::f32, {from.shape[1], from.shape[0]}, {bytes.begin(), bytes.end()});
}

std::int64_t LoweredCall::whole(std::size_t at) const {
    auto const two = two_.arguments.at(at).toInt();
    if (two != three_.arguments.at(at).toInt()) {
        refuse(concat("its argument ", two_.schema->arguments().at(at).name(),
                      " depends on the batch size"));
    }
    return two;
}

std::vector<std::int64_t> LoweredCall::wholes_of(std::size_t at) const {
    if (two_.arguments.at(at).isInt()) {
        return {whole(at)};
    }
    auto const two = two_.arguments.at(at).toIntVector();
    if (two != three_.arguments.at(at).toIntVector()) {
        refuse(concat("its argument ", two_.schema->arguments().at(at).name(),
                      " depends on the batch size"));
    }
    return two;
}

double LoweredCall::number(std::size_t at) const {
    auto const of = [&](c10::IValue const& value) {
        return value.isTensor() ? value.toTensor().item().toDouble() : value.toScalar().toDouble();
    };
    auto const two = of(two_.arguments.at(at));
    if (two != of(three_.arguments.at(at))) {
        refuse(concat("its argument ", two_.schema->arguments().at(at).name(),
                      " depends on the batch size"));
    }
    return two;
}

bool LoweredCall::flag(std::size_t at) const {
    return has(at) && two_.arguments[at].toBool();
}

std::string LoweredCall::text(std::size_t at) const {
    return has(at) && two_.arguments[at].isString() ? two_.arguments[at].toStringRef()
                                                    : std::string();
}

std::int64_t LoweredCall::axis(std::size_t at, std::size_t rank) const {
    auto const given = whole(at);
    return given < 0 ? given + static_cast<std::int64_t>(rank) : given;
}

std::vector<std::int64_t> LoweredCall::axes(std::size_t at, std::size_t rank) const {
    auto found = has(at) && !is_tensor(at) ? wholes_of(at) : std::vector<std::int64_t>{};
    if (found.empty()) {
        refuse("it reduces over all samples of a batch");
    }
    for (auto& axis : found) {
        axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
    }
    return found;
}

Id LoweredCall::operand(std::size_t at, Element element) {
    if (is_tensor(at)) {
        auto const& given = two_.arguments[at].toTensor();
        if (given.scalar_type() == torch::kFloat64 && given.numel() == 1) {
            return graph().real(number(at)); // a number of C++ that became a tensor
        }
        return cast(tensor(at), element);
    }
    auto const value = number(at);
    if (element == Element::i64) {
        return graph().whole(static_cast<std::int64_t>(value));
    }
    return cast(graph().real(value), element);
}

Element LoweredCall::promoted(std::size_t a, std::size_t b) const {
    auto const type = [&](std::size_t at) {
        auto const& value = two_.arguments.at(at);
        return value.isTensor() ? value.toTensor() : c10::scalar_to_tensor(value.toScalar());
    };
    auto one = type(a);
    auto other = type(b);
    if (!is_tensor(b)) {
        other.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return element_of(torch::empty({0}, at::result_type(one, other)));
}

Shape LoweredCall::result_shape(std::size_t at) const {
    return shape_of(two_.results.at(at), three_.results.at(at));
}

Element LoweredCall::result_element(std::size_t at) const {
    return element_of(two_.results.at(at));
}

void LoweredCall::give(Id id) {
    auto const shape_wanted = result_shape(given_);
    if (!(shape(id) == shape_wanted)) {
        id = expanded(id, shape_wanted);
    }
    table_.values.push_back(id);
    ++given_;
}

void LoweredCall::give_nothing_more() {
    for (; given_ < two_.results.size(); ++given_) {
        table_.values.push_back(ValueTable::absent);
    }
}

void LoweredCall::refuse(std::string const& why) const {
    nn::refuse_export(why);
}

void LoweredCall::refuse_dropout() const {
    refuse("it drops values at random, in evaluation, too");
}

} // namespace lockstep::lower
