// Every operator without an implementation of its own for torch's backend "sim" runs as the CPU's
// kernel, later, on the worker of the current stream. Its caller gets the results' shapes at once:
// they are learnt by running the operator on zeros, once for each form of arguments. Where values
// decide shapes, or a result is a number, the host waits, as it does on other devices.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <string>
#include <unordered_map>

#include "torch_operator.hpp"

namespace lockstep::sim {

namespace {

using at::Tensor;
using c10::IValue;

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

Prepared prepare(Operator const& op, std::vector<IValue> const& arguments, Stream const& on) {
    Prepared prepared;
    std::unordered_map<void*, Tensor> views; // a tensor given twice is one tensor
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        prepared.arguments.push_back(mapped(arguments[i], [&](Tensor const& tensor) {
            if (!is_on_device(tensor)) {
                bool const number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
                if (tensor.dim() > 0) {
                    refuse_in_recording(on, "values of the host");
                }
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

/// Memory of its own for its new tensors.
std::vector<Tensor> fresh_for(Forecast const& forecast, Stream const& on) {
    std::vector<Tensor> fresh;
    for (auto const& shape : forecast.fresh) {
        fresh.push_back(make(shape, device_of(on)));
    }
    return fresh;
}

/// Calls the CPU's kernel. The results in the places `grown`, whose memory it replaces, are given
/// memory of their own meanwhile.
std::vector<IValue> called(Operator const& op, std::vector<IValue> values,
                           std::vector<std::size_t> const& grown) {
    std::vector<std::pair<Tensor, Tensor>> moved;
    for (auto const place : grown) {
        auto const view = values[place].toTensor();
        moved.emplace_back(view, at::empty({0}, view.options()));
        values[place] = moved.back().second;
    }
    op.handle.callBoxed(&values);
    for (auto const& [view, own] : moved) {
        view.copy_(own);
    }
    return values;
}

/// Launches it.
void run_later(Operator& op, Forecast const& forecast, Prepared prepared, Stream& on,
               std::vector<Tensor> const& fresh) {
    std::vector<Tensor> views;
    for (auto const& each : fresh) {
        views.push_back(each.defined() ? kernel_view(each) : Tensor());
        if (each.defined()) {
            prepared.ranges.push_back(range_of(each, true));
        }
    }
    launch_torch(on, op.name.c_str(), prepared.ranges,
                 [&op, arguments = std::move(prepared.arguments), views, grown = forecast.grown,
                  shapes = forecast.fresh] { // recorded work runs more than once
                     auto const made = fresh_of(called(op, arguments, grown), op);
                     TORCH_CHECK(shapes_of(made) == shapes, "sim: the shapes of ", op.name,
                                 " depend on values");
                     for (std::size_t i = 0; i < made.size(); ++i) {
                         if (made[i].defined()) {
                             views[i].copy_(made[i]);
                         }
                     }
                 });
}

void return_results(Operator const& op, std::vector<Tensor> const& fresh,
                    std::vector<IValue> const& arguments, torch::jit::Stack& stack) {
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
    auto const run = [&op, results] { op.handle.callBoxed(results.get()); };
    if (has_kernels()) {
        launch_torch(on, op.name.c_str(), prepared.ranges, run);
    } else { // of zeros
        launch(on, op.name.c_str(), {}, {});
        at::AutoDispatchBelowADInplaceOrView const below;
        run();
    }
    synchronize(on);
    for (std::size_t i = 0; i < op.result_is.size(); ++i) {
        if (op.result_is[i] >= 0) {
            stack.push_back(arguments[static_cast<std::size_t>(op.result_is[i])]);
            continue;
        }
        stack.push_back(mapped((*results)[i], [&](Tensor const& tensor) {
            auto made = make(shape_of(tensor), device_of(on));
            if (has_kernels()) {
                launch_torch(on, op.name.c_str(), {range_of(made, true)},
                             [tensor, view = kernel_view(made)] { view.copy_(tensor); });
            }
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
        run_and_wait(op, prepare(op, arguments, on), on, arguments, *stack);
        return;
    }
    resize_given(op, arguments, forecast.given);
    auto const fresh = fresh_for(forecast, on);
    if (has_kernels()) {
        run_later(op, forecast, prepare(op, arguments, on), on, fresh);
    } else {
        launch(on, op.name.c_str(), {}, {});
    }
    return_results(op, fresh, arguments, *stack);
}

// Those that torch would take apart, or refuse, on devices that it does not know.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    for (auto const* const name :
         {"convolution_overrideable", "convolution_backward_overrideable", "native_layer_norm",
          "native_group_norm", "_foreach_copy_", "_foreach_add_.List", "_foreach_add_.Scalar",
          "_foreach_add_.Tensor"}) {
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
