#include <ATen/core/LegacyTypeDispatch.h>

#include <optional>

#include "torch_operator.hpp"

namespace lockstep::sim {

namespace {

using at::Tensor;
using c10::IValue;

template <class T>
void append(std::string& form, T const& value) {
    form.append(reinterpret_cast<char const*>(&value), sizeof value);
}

void append_tensor(std::string& form, Tensor const& tensor) {
    if (!tensor.defined()) {
        form += 'u';
        return;
    }
    form += tensor.is_cpu() ? 'c' : 'd';
    append(form, tensor.scalar_type());
    append(form, tensor.dim());
    for (auto const each : tensor.sizes()) {
        append(form, each);
    }
    for (auto const each : tensor.strides()) {
        append(form, each);
    }
}

/// False: what decides shapes cannot be told apart.
bool append_form(std::string& form, IValue const& value) {
    if (value.isTensor()) {
        append_tensor(form, value.toTensor());
    } else if (value.isNone()) {
        form += 'n';
    } else if (value.isInt()) {
        form += 'i';
        append(form, value.toInt());
    } else if (value.isDouble()) {
        form += 'f'; // no shape depends on it
    } else if (value.isBool()) {
        form += 'b';
        append(form, value.toBool());
    } else if (value.isString()) {
        form += value.toStringRef();
        form += '\0';
    } else if (value.isDevice() || value.isGenerator()) {
        form += 'g';
    } else if (value.isList()) {
        form += '[';
        for (IValue const& each : value.toListRef()) {
            if (!append_form(form, each)) {
                return false;
            }
        }
        form += ']';
    } else {
        return false;
    }
    return true;
}

std::optional<std::string> form_of(std::vector<IValue> const& arguments) {
    std::string form;
    for (auto const& each : arguments) {
        if (!append_form(form, each)) {
            return std::nullopt;
        }
    }
    return form;
}

/// Runs the operator on zeros.
Forecast forecast_of(Operator const& op, std::vector<IValue> const& arguments) {
    Forecast forecast;
    try {
        at::AutoDispatchBelowADInplaceOrView const below;
        std::vector<IValue> stack;
        std::vector<Tensor> given;
        std::vector<std::pair<std::size_t, std::size_t>> bytes; // of given results, by place
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            stack.push_back(mapped(arguments[i], [&](Tensor const& tensor) {
                auto const options = tensor.options().device(at::kCPU).pinned_memory(false);
                auto zeros = at::empty_strided(tensor.sizes(), tensor.strides(), options).zero_();
                mark_number_as(tensor, zeros);
                if (op.writes[i]) {
                    given.push_back(zeros);
                    bytes.emplace_back(i, zeros.storage().nbytes());
                }
                return zeros;
            }));
        }
        op.adapt(stack);
        op.handle.callBoxed(&stack);
        for (std::size_t i = 0; i < stack.size(); ++i) {
            if (op.result_is[i] < 0 && !stack[i].isTensor() && !stack[i].isTensorList()) {
                return {}; // a number
            }
        }
        forecast = {true, shapes_of(fresh_of(stack, op)), shapes_of(given)};
        for (std::size_t at = 0; at < given.size(); ++at) {
            auto const& [place, before] = bytes[at];
            if (given[at].storage().nbytes() > before && arguments[place].isTensor()) {
                forecast.grown.push_back(place);
            }
        }
    } catch (std::exception const&) { // zeros do not suit it: it is waited for
        return {};
    }
    return forecast;
}

} // namespace

Forecast look_up(Operator& op, std::vector<IValue> const& arguments) {
    auto const form = op.waits ? std::nullopt : form_of(arguments);
    if (!form) {
        return {};
    }
    std::lock_guard const lock(op.mutex);
    auto found = op.forecasts.find(*form);
    if (found == op.forecasts.end()) {
        found = op.forecasts.emplace(*form, forecast_of(op, arguments)).first;
    }
    return found->second;
}

} // namespace lockstep::sim
