#include "nn/record_calls.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/core/op_registration/op_registration.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <map>

namespace lockstep::nn {

void refuse_export(std::string const& what, std::string const& why) {
    throw Error(ExitCode::usage,
                {"this model cannot be exported", why.empty() ? what : concat(what, "; ", why),
                 "Change that part of the model, try --format torchscript, or use "
                 "--format safetensors and load the weights by name"});
}

namespace {

constexpr auto mode = c10::DispatchKey::TESTING_ONLY_GenericMode; // LibTorch has no other for us

/// Calls `use` with each tensor of a value, lists item by item.
template <class Use>
void for_tensors(c10::IValue const& value, Use use) {
    if (value.isTensor()) {
        use(value.toTensor());
    } else if (value.isTensorList()) {
        for (auto const& tensor : value.toTensorVector()) {
            use(tensor);
        }
    } else if (value.isList()) {
        for (auto const& item : value.toListRef()) {
            for_tensors(item, use);
        }
    }
}

/// "aten::relu" of "aten::relu_".
std::string plain_name(std::string name) {
    if (name.ends_with('_') && !name.ends_with("__")) {
        name.pop_back();
    }
    return name;
}

/// Whether an operator only asks for a tensor's form.
bool asks_for_form(std::string const& name) {
    static std::set<std::string> const others{"aten::size",         "aten::stride",
                                              "aten::numel",        "aten::dim",
                                              "aten::is_same_size", "aten::storage_offset"};
    return name.starts_with("aten::sym_") || name.starts_with("aten::is_") || others.contains(name);
}

/// Whether an operator's results are the same for all tensors of a form.
bool takes_form_only(std::string const& name) {
    return name == "aten::zeros_like" || name == "aten::ones_like";
}

struct Notes {
    Recording recording;
    std::set<std::string> const& known;
    std::map<void const*, std::size_t> numbers; ///< of values, by their implementation
    std::size_t count = 0;

    std::optional<std::size_t> number_of(torch::Tensor const& tensor) const {
        auto const found = numbers.find(tensor.unsafeGetTensorImpl());
        return found == numbers.end() ? std::nullopt : std::optional(found->second);
    }
};

class Recorder : public c10::OperatorKernel {
  public:
    explicit Recorder(Notes& notes) : notes_(notes) {}

    void operator()(c10::OperatorHandle const& op, c10::DispatchKeySet keys, torch::Stack* stack) {
        auto const& schema = op.schema();
        auto const name = plain_name(schema.name());
        auto const first = stack->size() - schema.arguments().size();
        RecordedCall call{
            name, &schema, {stack->begin() + static_cast<long>(first), stack->end()}, {}, {}};
        bool depends = false;
        for (auto const& argument : call.arguments) {
            for_tensors(argument, [&](torch::Tensor const& tensor) {
                call.values.push_back(notes_.number_of(tensor));
                depends = depends || call.values.back();
            });
        }
        depends = depends && !takes_form_only(name);
        if (depends && !notes_.known.contains(name) &&
            op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
            op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, mode),
                               stack);
            return;
        }
        c10::impl::ExcludeDispatchKeyGuard const plainly(mode);
        if (!depends) {
            op.callBoxed(stack);
            return;
        }
        keep_constants(call);
        require_whole(call);
        op.callBoxed(stack);
        note(std::move(call), *stack, first);
    }

  private:
    /// What is not a parameter may be changed before the call is looked at.
    static void keep_constants(RecordedCall& call) {
        std::size_t at = 0;
        for (auto& argument : call.arguments) {
            if (argument.isTensor() && !call.values[at] && argument.toTensor().defined() &&
                !argument.toTensor().requires_grad()) {
                argument = argument.toTensor().clone();
            }
            for_tensors(argument, [&](torch::Tensor const&) { ++at; });
        }
    }

    /// Views of what is changed in place would change unnoticed.
    static void require_whole(RecordedCall const& call) {
        for (std::size_t at = 0; at < call.arguments.size(); ++at) {
            auto const* const alias = call.schema->arguments()[at].alias_info();
            if (alias != nullptr && alias->isWrite() && call.arguments[at].isTensor() &&
                call.arguments[at].toTensor().storage().use_count() > 1) {
                refuse_export(concat("operator ", call.schema->name(),
                                     " writes into a tensor that has views"),
                              "an exported graph cannot contain such a write");
            }
        }
    }

    void note(RecordedCall call, torch::Stack const& stack, std::size_t first) {
        for (auto at = first; at < stack.size(); ++at) {
            for_tensors(stack[at],
                        [&](torch::Tensor const& tensor) { call.results.push_back(tensor); });
        }
        if (call.results.empty()) {
            if (asks_for_form(call.name)) {
                return;
            }
            refuse_export(concat("operator ", call.schema->name(), " takes values out of a tensor"),
                          "an exported graph cannot depend on the values of its inputs");
        }
        for (auto const& result : call.results) {
            notes_.numbers[result.unsafeGetTensorImpl()] = notes_.count++;
        }
        notes_.recording.calls.push_back(std::move(call));
    }

    Notes& notes_;
};

} // namespace

bool is_recording() {
    return c10::impl::tls_is_dispatch_key_included(mode) &&
           !c10::impl::tls_is_dispatch_key_excluded(mode);
}

Recording
record_calls(std::function<torch::Tensor(std::vector<torch::Tensor> const&)> const& function,
             std::vector<torch::Tensor> const& inputs, std::set<std::string> const& known) {
    Notes notes{{inputs, {}, 0}, known, {}};
    for (auto const& input : inputs) {
        notes.numbers[input.unsafeGetTensorImpl()] = notes.count++;
    }
    torch::Library library(torch::Library::IMPL, "_", mode, __FILE__, __LINE__);
    library.fallback(torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Recorder>(notes)));
    torch::Tensor result;
    {
        c10::impl::IncludeDispatchKeyGuard const recording(mode);
        result = function(inputs);
    }
    auto const output = notes.number_of(result);
    if (!output) {
        refuse_export("its output depends on no input", "there is nothing to compute");
    }
    notes.recording.output = *output;
    return std::move(notes.recording);
}

} // namespace lockstep::nn
