#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "torch_shape.hpp"
#include "torch_sim.hpp"

namespace lockstep::sim {

/// The value with what `replace` returns for each of its tensors.
template <class Replace>
c10::IValue mapped(c10::IValue const& value, Replace const& replace) {
    if (value.isTensor()) {
        return value.toTensor().defined() ? c10::IValue(replace(value.toTensor())) : value;
    }
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (auto const& each : value.toTensorVector()) {
            list.push_back(replace(each));
        }
        return list;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (auto const& each : value.toOptionalTensorVector()) {
            list.push_back(each && each->defined() ? std::optional(replace(*each)) : each);
        }
        return list;
    }
    if (value.isDevice() && value.toDevice().type() == device_type) {
        return c10::Device(c10::kCPU);
    }
    return value;
}

template <class Visit>
void for_each_tensor(c10::IValue const& value, Visit const& visit) {
    mapped(value, [&](at::Tensor const& tensor) {
        visit(tensor);
        return tensor;
    });
}

/// What an operator's results look like for one form of arguments.
struct Forecast {
    bool known = false;       ///< else the operator has to be waited for
    std::vector<Shape> fresh; ///< of new tensors
    std::vector<Shape> given; ///< of arguments that are written to, afterwards
    /// Places of those whose memory the CPU's kernel replaces on the way: mse_loss first takes a
    /// given result for that of each element, and makes it larger.
    std::vector<std::size_t> grown{};
};

/// An operator of torch as the CPU has it, and what is known of its results.
struct Operator {
    explicit Operator(c10::OperatorHandle const& op);

    /// The CPU's arguments: convolutions have other ones there.
    void adapt(std::vector<c10::IValue>& arguments) const {
        if (has_bias_sizes) {
            arguments.insert(arguments.begin() + 3, c10::IValue(std::vector<std::int64_t>{
                                                        arguments[0].toTensor().size(1)}));
        }
    }

    c10::OperatorHandle handle;
    std::string name;
    std::vector<bool> writes;   ///< each argument: whether it is written to
    std::vector<int> result_is; ///< each result: the argument that it is; -1: new
    bool waits = false;         ///< always
    bool takes_host = false;    ///< tensors of the host beside those of a device
    bool has_bias_sizes = false;
    std::mutex mutex;
    std::unordered_map<std::string, Forecast> forecasts; ///< by form_of
};

Operator& operator_of(c10::OperatorHandle const& op);

/// New tensors among the results, undefined ones too.
std::vector<at::Tensor> fresh_of(std::vector<c10::IValue> const& results, Operator const& op);

/// What its results will look like, from an earlier call of this form or a run on zeros.
Forecast look_up(Operator& op, std::vector<c10::IValue> const& arguments);

} // namespace lockstep::sim
