// Every operator without an implementation of its own for torch's backend "sim" runs as the CPU's
// kernel, later, on the worker of the current stream. Its caller gets the results' shapes at once:
// they are learnt by running the operator on zeros, once for each form of arguments. Where values
// decide shapes, or a result is a number, the host waits, as it does on other devices.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <mutex>
#include <string>
#include <unordered_map>

#include "torch_sim.hpp"

namespace lockstep::sim {

namespace {

using at::Tensor;
using c10::IValue;

struct Shape {
    bool defined = true;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    at::ScalarType type = at::kFloat;

    friend bool operator==(Shape const&, Shape const&) = default;
};

Shape shape_of(Tensor const& tensor) {
    if (!tensor.defined()) {
        return {.defined = false, .sizes = {}, .strides = {}};
    }
    return {true, tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

std::vector<Shape> shapes_of(std::vector<Tensor> const& tensors) {
    std::vector<Shape> shapes;
    for (auto const& each : tensors) {
        shapes.push_back(shape_of(each));
    }
    return shapes;
}

Tensor make(Shape const& shape, int device) {
    auto const options =
        at::TensorOptions(shape.type).device(device_type, static_cast<c10::DeviceIndex>(device));
    return shape.defined ? at::empty_strided(shape.sizes, shape.strides, options) : Tensor();
}

/// The value with what `replace` returns for each of its tensors.
template <class Replace>
IValue mapped(IValue const& value, Replace const& replace) {
    if (value.isTensor()) {
        return value.toTensor().defined() ? IValue(replace(value.toTensor())) : value;
    }
    if (value.isTensorList()) {
        c10::List<Tensor> list;
        for (auto const& each : value.toTensorVector()) {
            list.push_back(replace(each));
        }
        return list;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<Tensor>> list;
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
void for_each_tensor(IValue const& value, Visit const& visit) {
    mapped(value, [&](Tensor const& tensor) {
        visit(tensor);
        return tensor;
    });
}

/// What an operator's results look like for one form of arguments.
struct Forecast {
    bool known = false;       ///< else the operator has to be waited for
    std::vector<Shape> fresh; ///< of new tensors
    std::vector<Shape> given; ///< of arguments that are written to, afterwards
};

struct Operator {
    explicit Operator(c10::OperatorHandle const& op);

    /// The CPU's arguments: convolutions have other ones there.
    void adapt(std::vector<IValue>& arguments) const {
        if (has_bias_sizes) {
            arguments.insert(arguments.begin() + 3,
                             IValue(std::vector<std::int64_t>{arguments[0].toTensor().size(1)}));
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
            handle.hasTag(at::Tag::nondeterministic_seeded);
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

/// New tensors among the results, undefined ones too.
std::vector<Tensor> fresh_of(std::vector<IValue> const& results, Operator const& op) {
    std::vector<Tensor> fresh;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (op.result_is[i] >= 0) {
            continue;
        }
        if (results[i].isTensorList()) {
            auto const list = results[i].toTensorVector();
            fresh.insert(fresh.end(), list.begin(), list.end());
        } else {
            fresh.push_back(results[i].isTensor() ? results[i].toTensor() : Tensor());
        }
    }
    return fresh;
}

/// Runs the operator on zeros.
Forecast forecast_of(Operator const& op, std::vector<IValue> const& arguments) {
    Forecast forecast;
    try {
        at::AutoDispatchBelowADInplaceOrView const below;
        std::vector<IValue> stack;
        std::vector<Tensor> given;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            stack.push_back(mapped(arguments[i], [&](Tensor const& tensor) {
                auto const options = tensor.options().device(at::kCPU).pinned_memory(false);
                auto zeros = at::empty_strided(tensor.sizes(), tensor.strides(), options).zero_();
                mark_number_as(tensor, zeros);
                if (op.writes[i]) {
                    given.push_back(zeros);
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
    } catch (std::exception const&) { // zeros do not suit it: it is waited for
        return {};
    }
    return forecast;
}

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

/// The device of the arguments, which is one, with numbers and indices of the host beside it.
int common_device(Operator const& op, std::vector<IValue> const& arguments) {
    int device = -1;
    for (auto const& argument : arguments) {
        for_each_tensor(argument, [&](Tensor const& tensor) {
            if (is_on_device(tensor)) {
                TORCH_CHECK(device < 0 || device == tensor.device().index(), "sim: ", op.name,
                            " is given tensors of two devices");
                device = tensor.device().index();
            } else {
                TORCH_CHECK(tensor.is_cpu() && (tensor.dim() == 0 || op.takes_host),
                            "sim: ", op.name, " is given a tensor on ", tensor.device(),
                            " beside those on a device");
            }
        });
    }
    TORCH_CHECK(device >= 0, "sim: ", op.name, " has no tensor on a device");
    return device;
}

/// out= may ask for another size.
void resize_given(Operator const& op, std::vector<IValue> const& arguments,
                  std::vector<Shape> const& shapes) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        for_each_tensor(arguments[i], [&](Tensor const& tensor) {
            if (op.writes[i] && tensor.sizes() != at::IntArrayRef(shapes[at++].sizes)) {
                tensor.resize_(shapes[at - 1].sizes);
            }
        });
    }
}

/// The arguments as the CPU's kernel takes them, and the memory that it uses.
struct Prepared {
    std::vector<IValue> arguments;
    std::vector<Range> ranges;
};

Prepared prepare(Operator const& op, std::vector<IValue> const& arguments) {
    Prepared prepared;
    std::unordered_map<void*, Tensor> views; // a tensor given twice is one tensor
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        prepared.arguments.push_back(mapped(arguments[i], [&](Tensor const& tensor) {
            if (!is_on_device(tensor)) {
                bool const number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
                return number ? tensor : tensor.clone();
            }
            prepared.ranges.push_back(range_of(tensor, op.writes[i]));
            auto& view = views[tensor.unsafeGetTensorImpl()];
            if (!view.defined()) {
                view = kernel_view(tensor);
            }
            return view;
        }));
    }
    op.adapt(prepared.arguments);
    return prepared;
}

/// Launches it, with memory of its own for its new tensors.
void run_later(Operator& op, Forecast const& forecast, Prepared prepared, Stream& on,
               std::vector<IValue> const& arguments, torch::jit::Stack& stack) {
    std::vector<Tensor> fresh;
    std::vector<Tensor> views;
    for (auto const& shape : forecast.fresh) {
        fresh.push_back(make(shape, device_of(on)));
        views.push_back(fresh.back().defined() ? kernel_view(fresh.back()) : Tensor());
        if (fresh.back().defined()) {
            prepared.ranges.push_back(range_of(fresh.back(), true));
        }
    }
    launch_torch(
        on, op.name.c_str(), prepared.ranges,
        [&op, values = std::move(prepared.arguments), views, shapes = forecast.fresh]() mutable {
            op.handle.callBoxed(&values);
            auto const made = fresh_of(values, op);
            TORCH_CHECK(shapes_of(made) == shapes, "sim: the shapes of ", op.name,
                        " depend on values");
            for (std::size_t i = 0; i < made.size(); ++i) {
                if (made[i].defined()) {
                    views[i].copy_(made[i]);
                }
            }
        });
    std::size_t at = 0;
    for (std::size_t i = 0; i < op.result_is.size(); ++i) {
        auto const kind = op.handle.schema().returns()[i].type()->kind();
        if (op.result_is[i] >= 0) {
            stack.push_back(arguments[static_cast<std::size_t>(op.result_is[i])]);
        } else if (kind == c10::TypeKind::ListType) { // the only result
            stack.push_back(IValue(std::vector<Tensor>(fresh)));
        } else {
            stack.push_back(IValue(fresh[at++]));
        }
    }
}

void run_and_wait(Operator& op, Prepared const& prepared, Stream& on,
                  std::vector<IValue> const& arguments, torch::jit::Stack& stack) {
    auto const results = std::make_shared<std::vector<IValue>>(prepared.arguments);
    launch_torch(on, op.name.c_str(), prepared.ranges,
                 [&op, results] { op.handle.callBoxed(results.get()); });
    synchronize(on);
    for (std::size_t i = 0; i < op.result_is.size(); ++i) {
        if (op.result_is[i] >= 0) {
            stack.push_back(arguments[static_cast<std::size_t>(op.result_is[i])]);
            continue;
        }
        stack.push_back(mapped((*results)[i], [&](Tensor const& tensor) {
            auto made = make(shape_of(tensor), device_of(on));
            launch_torch(on, op.name.c_str(), {range_of(made, true)},
                         [tensor, view = kernel_view(made)] { view.copy_(tensor); });
            return made;
        }));
    }
}

void run_on_stream(c10::OperatorHandle const& handle, torch::jit::Stack* stack) {
    auto& op = operator_of(handle);
    auto const first = stack->end() - static_cast<std::ptrdiff_t>(op.writes.size());
    std::vector<IValue> const arguments(std::make_move_iterator(first),
                                        std::make_move_iterator(stack->end()));
    stack->erase(first, stack->end());

    int const device = common_device(op, arguments);
    c10::DeviceGuard const guard({device_type, static_cast<c10::DeviceIndex>(device)});
    auto& on = current_stream(device);
    auto const forecast = look_up(op, arguments);
    if (!forecast.known) {
        run_and_wait(op, prepare(op, arguments), on, arguments, *stack);
        return;
    }
    resize_given(op, arguments, forecast.given);
    run_later(op, forecast, prepare(op, arguments), on, arguments, *stack);
}

// Those that torch would take apart, or refuse, on devices that it does not know.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    for (auto const* const name : {"convolution_overrideable", "convolution_backward_overrideable",
                                   "native_layer_norm", "native_group_norm"}) {
        m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_stream>());
    }
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_stream>());
}

/// Devices have a kernel for this; the CPU has none.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(Tensor const& input_gates, Tensor const& hidden_gates,
                                             Tensor const& before,
                                             std::optional<Tensor> const& input_bias,
                                             std::optional<Tensor> const& hidden_bias) {
    auto gates = input_gates + hidden_gates;
    if (input_bias && input_bias->defined()) {
        gates = gates + *input_bias + *hidden_bias;
    }
    auto const parts = gates.chunk(4, 1);
    auto const after = parts[1].sigmoid() * before + parts[0].sigmoid() * parts[2].tanh();
    return {parts[3].sigmoid() * after.tanh(), after, Tensor()};
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
    m.impl("_thnn_fused_lstm_cell", lstm_cell);
}

} // namespace

} // namespace lockstep::sim
