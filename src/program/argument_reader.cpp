#include "argument_reader.hpp"

#include "base/text.hpp"

#include <utility>

namespace lockstep::program {

namespace {

/// A type without "or nothing".
c10::TypePtr plain(c10::TypePtr const& type) {
    return type && type->kind() == c10::TypeKind::OptionalType
               ? type->castRaw<c10::OptionalType>()->getElementType()
               : type;
}

c10::TypePtr element_of(c10::TypePtr const& type) {
    return type && type->kind() == c10::TypeKind::ListType
               ? type->castRaw<c10::ListType>()->getElementType()
               : nullptr;
}

Argument constant(c10::IValue value) {
    Argument argument;
    argument.constant = std::move(value);
    return argument;
}

Argument list(std::vector<Argument> items, c10::TypePtr const& element) {
    std::vector<c10::IValue> constants;
    for (auto const& item : items) {
        if (item.kind == Argument::Kind::constant) {
            constants.push_back(item.constant);
        }
    }
    Argument argument;
    argument.element = element;
    if (constants.size() == items.size()) {
        argument.constant = list_of(element, constants);
    } else {
        argument.kind = Argument::Kind::list;
        argument.items = std::move(items);
    }
    return argument;
}

template <class One>
Argument list(Json const& json, c10::TypePtr const& element, One const& one) {
    std::vector<Argument> items;
    for (auto const& each : json) {
        items.push_back(one(each));
    }
    return list(std::move(items), element);
}

/// What LibTorch has as whole numbers, and takes without a look at which they are.
void require_kind(Json const& json, c10::Argument const& wanted) {
    auto const kind = plain(wanted.real_type())->kind();
    auto const* const name = kind == c10::TypeKind::ScalarTypeType     ? "as_scalar_type"
                             : kind == c10::TypeKind::LayoutType       ? "as_layout"
                             : kind == c10::TypeKind::MemoryFormatType ? "as_memory_format"
                                                                       : nullptr;
    if (name != nullptr && member_name(json) != name && member_name(json) != "as_none") {
        damaged_program(concat("argument ", wanted.name(), " of an operator is ", member_name(json),
                               ", but must be ", name));
    }
}

} // namespace

Argument ArgumentReader::slot(Json const& name) const {
    auto const found = names_.find(name.get<std::string>());
    if (found == names_.end()) {
        damaged_program(concat("its graph uses ", name.dump(), " before it is computed"));
    }
    Argument argument;
    argument.kind = Argument::Kind::slot;
    argument.slot = found->second;
    return argument;
}

Argument ArgumentReader::symbolic(Json const& json) const {
    if (json.contains("as_name")) {
        return slot(json.at("as_name"));
    }
    auto const& kind = member_name(json);
    auto const& value = member(json);
    return constant(kind == "as_int"    ? c10::IValue(value.get<std::int64_t>())
                    : kind == "as_bool" ? c10::IValue(value.get<bool>())
                                        : c10::IValue(real_of(value)));
}

Argument ArgumentReader::tensor(Json const& json) const {
    return slot(json.at("name"));
}

Argument ArgumentReader::optional_tensor(Json const& json) const {
    return json.contains("as_tensor") ? tensor(json.at("as_tensor")) : constant({});
}

Argument ArgumentReader::plain_argument(Json const& json, c10::TypePtr const& element) const {
    auto const& kind = member_name(json);
    auto const& value = member(json);
    auto const of = [&](c10::TypePtr const& type) { return element ? element : type; };
    auto const symbol = [this](Json const& each) { return symbolic(each); };
    if (kind == "as_none") {
        return constant({});
    }
    if (kind == "as_tensor") {
        return tensor(value);
    }
    if (kind == "as_optional_tensor") {
        return optional_tensor(value);
    }
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
        return symbolic(value);
    }
    if (kind == "as_int") {
        return constant(value.get<std::int64_t>());
    }
    if (kind == "as_float") {
        return constant(real_of(value));
    }
    if (kind == "as_bool") {
        return constant(value.get<bool>());
    }
    if (kind == "as_string") {
        return constant(value.get<std::string>());
    }
    if (kind == "as_complex") {
        return constant(c10::complex<double>(real_of(value.at("real")), real_of(value.at("imag"))));
    }
    if (kind == "as_scalar_type") {
        return constant(static_cast<std::int64_t>(scalar_type_of(value)));
    }
    if (kind == "as_layout") {
        return constant(static_cast<std::int64_t>(layout_of(value)));
    }
    if (kind == "as_memory_format") {
        return constant(static_cast<std::int64_t>(memory_format_of(value)));
    }
    if (kind == "as_device") {
        Argument argument;
        argument.kind = Argument::Kind::device;
        return argument;
    }
    if (kind == "as_graph") {
        Argument argument;
        argument.kind = Argument::Kind::graph;
        argument.graph = nested_(value.at("graph"));
        return argument;
    }
    if (kind == "as_tensors") {
        return list(value, of(c10::TensorType::get()),
                    [this](Json const& each) { return tensor(each); });
    }
    if (kind == "as_optional_tensors") {
        return list(value, of(c10::OptionalType::ofTensor()),
                    [this](Json const& each) { return optional_tensor(each); });
    }
    if (kind == "as_ints") {
        return list(value, of(c10::IntType::get()),
                    [](Json const& each) { return constant(each.get<std::int64_t>()); });
    }
    if (kind == "as_floats") {
        return list(value, of(c10::FloatType::get()),
                    [](Json const& each) { return constant(real_of(each)); });
    }
    if (kind == "as_bools") {
        return list(value, of(c10::BoolType::get()),
                    [](Json const& each) { return constant(each.get<bool>()); });
    }
    if (kind == "as_strings") {
        return list(value, of(c10::StringType::get()),
                    [](Json const& each) { return constant(each.get<std::string>()); });
    }
    if (kind == "as_sym_ints") {
        return list(value, of(c10::IntType::get()), symbol);
    }
    if (kind == "as_sym_floats") {
        return list(value, of(c10::FloatType::get()), symbol);
    }
    if (kind == "as_sym_bools") {
        return list(value, of(c10::BoolType::get()), symbol);
    }
    throw Error(ExitCode::usage,
                {concat("the exported program has an operator with an argument of kind ", kind),
                 "this version of Lockstep does not support such arguments",
                 "Change the model so that its operators take only tensors and numbers, then "
                 "export the model again"});
}

Argument ArgumentReader::read(Json const& json) const {
    return plain_argument(json, nullptr);
}

Argument ArgumentReader::read(Json const& json, c10::Argument const& wanted) const {
    require_kind(json, wanted);
    return argument(json, wanted.type(), wanted.N().value_or(0));
}

Argument ArgumentReader::argument(Json const& json, c10::TypePtr const& wanted, int count) const {
    auto const type = plain(wanted);
    auto const element = element_of(type);
    auto result = plain_argument(json, element);
    auto const kind = type ? type->kind() : c10::TypeKind::AnyType;
    bool const is_constant = result.kind == Argument::Kind::constant;
    if (kind == c10::TypeKind::FloatType && is_constant && result.constant.isInt()) {
        result.constant = static_cast<double>(result.constant.toInt());
    }
    if (kind == c10::TypeKind::TensorType) {
        if (is_constant) {
            result.constant = number_as_tensor(result.constant);
        } else {
            result.as_tensor = member_name(json) != "as_tensor";
        }
    }
    bool const is_list = result.kind == Argument::Kind::list ||
                         (is_constant && (result.constant.isList() || result.constant.isNone()));
    if (element && !is_list && count > 0) {
        return list(std::vector<Argument>(static_cast<std::size_t>(count), result), element);
    }
    return result;
}

} // namespace lockstep::program
