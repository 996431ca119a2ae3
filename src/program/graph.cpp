#include "program/graph.hpp"

#include <ATen/core/List.h>
#include <ATen/ops/scalar_tensor.h>

namespace lockstep::program {

namespace {

template <class Item, class Convert>
c10::IValue list_by(std::vector<c10::IValue> const& items, Convert const& convert) {
    c10::List<Item> list;
    list.reserve(items.size());
    for (auto const& item : items) {
        list.push_back(convert(item));
    }
    return list;
}

double as_double(c10::IValue const& value) {
    return value.isInt() ? static_cast<double>(value.toInt()) : value.toDouble();
}

void note_uses(Argument const& argument, std::vector<bool>& used, std::vector<std::size_t>* last) {
    if (argument.kind == Argument::Kind::slot && !used[argument.slot]) {
        used[argument.slot] = true;
        if (last != nullptr) {
            last->push_back(argument.slot);
        }
    }
    for (auto const& item : argument.items) {
        note_uses(item, used, last);
    }
}

} // namespace

c10::IValue list_of(c10::TypePtr const& element, std::vector<c10::IValue> const& items) {
    using Optional = std::optional<at::Tensor>;
    switch (element->kind()) {
    case c10::TypeKind::TensorType:
        return list_by<at::Tensor>(items, [](auto const& item) { return item.toTensor(); });
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
        return list_by<std::int64_t>(items, [](auto const& item) { return item.toInt(); });
    case c10::TypeKind::FloatType:
        return list_by<double>(items, as_double);
    case c10::TypeKind::BoolType:
        return list_by<bool>(items, [](auto const& item) { return item.toBool(); });
    case c10::TypeKind::OptionalType:
        return list_by<Optional>(items, [](auto const& item) {
            return item.isNone() ? Optional() : Optional(item.toTensor());
        });
    default:
        break;
    }
    c10::impl::GenericList list(element);
    for (auto const& item : items) {
        list.push_back(item);
    }
    return list;
}

c10::IValue number_as_tensor(c10::IValue const& value) {
    if (value.isTensor() || value.isNone()) {
        return value;
    }
    auto const type = value.isComplexDouble() ? at::kComplexDouble
                      : value.isDouble()      ? at::kDouble
                      : value.isBool()        ? at::kBool
                                              : at::kLong;
    auto tensor = at::scalar_tensor(value.toScalar(), at::TensorOptions(type));
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
}

void find_last_uses(Graph& graph) {
    std::vector<bool> used(graph.slots, false);
    for (auto const& output : graph.outputs) {
        note_uses(output, used, nullptr);
    }
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
        for (auto const& argument : node->arguments) {
            note_uses(argument, used, &node->last_uses);
        }
        for (auto& result : node->results) {
            for (auto& slot : result.slots) {
                if (slot && !used[*slot]) {
                    slot.reset();
                }
            }
        }
    }
}

} // namespace lockstep::program
