#include "torch_operator.hpp"

namespace lockstep::sim {

Operator::Operator(c10::OperatorHandle const& op)
    : handle(op), name(c10::toString(op.operator_name())) {
    auto const& schema = op.schema();
    for (auto const& argument : schema.arguments()) {
        writes.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
    }
    for (auto const& result : schema.returns()) {
        auto const* const alias = result.alias_info();
        int from = -1;
        for (std::size_t i = 0; alias != nullptr && i < schema.arguments().size(); ++i) {
            auto const* const given = schema.arguments()[i].alias_info();
            if (given != nullptr && given->beforeSets() == alias->beforeSets()) {
                from = static_cast<int>(i);
            }
        }
        TORCH_CHECK(alias == nullptr || (from >= 0 && writes[static_cast<std::size_t>(from)]),
                    "sim: ", name, " returns a view and has no implementation");
        result_is.push_back(from);
    }
    waits = handle.hasTag(at::Tag::data_dependent_output) ||
            handle.hasTag(at::Tag::dynamic_output_shape) ||
            (has_kernels() && handle.hasTag(at::Tag::nondeterministic_seeded));
    takes_host = name.find("index") != std::string::npos;
    auto const cpu = [](char const* which) {
        return c10::Dispatcher::singleton().findSchemaOrThrow(which, "");
    };
    if (name == "aten::convolution_overrideable") {
        handle = cpu("aten::convolution");
    } else if (name == "aten::convolution_backward_overrideable") {
        handle = cpu("aten::convolution_backward");
        has_bias_sizes = true;
    }
}

Operator& operator_of(c10::OperatorHandle const& op) {
    static std::mutex mutex;
    static auto& known = *new std::unordered_map<c10::OperatorName, std::unique_ptr<Operator>>;
    std::lock_guard const lock(mutex);
    auto& found = known[op.operator_name()];
    if (!found) {
        found = std::make_unique<Operator>(op);
    }
    return *found;
}

std::vector<at::Tensor> fresh_of(std::vector<c10::IValue> const& results, Operator const& op) {
    std::vector<at::Tensor> fresh;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (op.result_is[i] >= 0) {
            continue;
        }
        if (results[i].isTensorList()) {
            auto const list = results[i].toTensorVector();
            fresh.insert(fresh.end(), list.begin(), list.end());
        } else {
            fresh.push_back(results[i].isTensor() ? results[i].toTensor() : at::Tensor());
        }
    }
    return fresh;
}

} // namespace lockstep::sim
