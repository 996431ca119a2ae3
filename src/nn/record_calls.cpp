#include "nn/record_calls.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/operator_fault.hpp"
#include "program/operators.hpp"

#include <ATen/core/enum_tag.h>
#include <ATen/core/op_registration/op_registration.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/library.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

namespace lockstep::nn {

void refuse_export(std::string const& what, std::string const& why, std::string const& change) {
    throw Error(ExitCode::usage,
                {"this model cannot be exported", why.empty() ? what : concat(what, "; ", why),
                 concat(change, ", try --format torchscript, or use --format safetensors and load "
                                "the weights by name")});
}

void refuse_packed(Recording const& recording) {
    constexpr auto packing = "aten::_pack_padded_sequence";
    if (std::ranges::find(recording.calls, packing, &RecordedCall::name) != recording.calls.end()) {
        refuse_export(concat("operator ", packing, " packs sequences"),
                      "exported graphs compute all steps of every sample",
                      "Give recurrent layers padded sequences (leave out pack_padded_sequence)");
    }
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

/// What `RecordedCall::place` says of the call that this thread makes, of an exported program or a
/// script.
std::string place_of_call() {
    std::string module;
    std::string line;
    if (auto const* const node = program::running_node()) {
        module = node->module;
        line = node->origin;
    } else if (auto const stack = torch::jit::currentCallstack(); !stack.empty()) {
        for (auto const& level : torch::jit::currentModuleHierarchy()) {
            auto const name = level.substr(0, level.find('('));
            bool const is_name = !name.empty() && name != "TOP" && name != "SELF" &&
                                 name.find(':') == std::string::npos;
            module += is_name ? concat(module.empty() ? "" : ".", name) : std::string();
        }
        if (auto const at = stack.front().range.file_line_col()) {
            line = concat(std::get<0>(*at), ", line ", std::get<1>(*at));
        }
    }
    if (module.empty() && line.empty()) {
        return {};
    }
    return concat(" (", module.empty() ? "" : concat("in module ", module),
                  module.empty() || line.empty() ? "" : ", ", line, ")");
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
    return name.starts_with("aten::sym_") || others.contains(name) ||
           (name.starts_with("aten::is_") && name != "aten::is_nonzero");
}

/// Whether an operator's results are the same for all tensors of a form.
bool takes_form_only(std::string const& name) {
    static std::set<std::string> const names{"aten::zeros_like", "aten::ones_like",
                                             "aten::full_like",  "aten::new_zeros",
                                             "aten::new_ones",   "aten::new_full"};
    return names.contains(name);
}

struct Notes {
    Recording recording;
    std::set<std::string> const& known;
    std::map<void const*, std::size_t> numbers; ///< of values, by their implementation
    std::size_t count = 0;
    /// Constants that are random, by their storage (functions such as torch::randn return another
    /// tensor than the operator), and the operators that drew them.
    std::map<void const*, std::pair<torch::Tensor, std::string>> drawn;
    std::set<void const*> computed; ///< storages of values
    std::set<void const*> lasting;  ///< storages of parameters that a recorded call takes
    std::optional<Error> refused;   ///< TorchScript's interpreter makes texts of exceptions

    std::optional<std::size_t> number_of(torch::Tensor const& tensor) const {
        auto const found = numbers.find(tensor.unsafeGetTensorImpl());
        return found == numbers.end() ? std::nullopt : std::optional(found->second);
    }
};

/// Nothing for a tensor without values.
void const* storage_of(torch::Tensor const& tensor) {
    return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl()
                                                    : nullptr;
}

class Recorder : public c10::OperatorKernel {
  public:
    explicit Recorder(Notes& notes) : notes_(notes) {}

    void operator()(c10::OperatorHandle const& op, c10::DispatchKeySet keys, torch::Stack* stack) {
        try {
            call_and_note(op, keys, stack);
        } catch (Error const& error) {
            notes_.refused = error;
            throw;
        }
    }

  private:
    void call_and_note(c10::OperatorHandle const& op, c10::DispatchKeySet keys,
                       torch::Stack* stack) {
        auto const& schema = op.schema();
        auto const name = plain_name(schema.name());
        auto const first = stack->size() - schema.arguments().size();
        RecordedCall call{name, &schema, {stack->begin() + static_cast<long>(first), stack->end()},
                          {},   {},      place_of_call()};
        bool depends = false;
        for (auto const& argument : call.arguments) {
            for_tensors(argument, [&](torch::Tensor const& tensor) {
                call.values.push_back(notes_.number_of(tensor));
                if (call.values.back()) {
                    depends = true;
                    return;
                }
                auto const* const storage = storage_of(tensor);
                if (notes_.computed.contains(storage)) {
                    refuse_export(concat("operator ", schema.name(),
                                         " takes a tensor that shares memory with a computed "
                                         "tensor (through .data, or because a part of a constant "
                                         "was overwritten)",
                                         call.place),
                                  "an exported graph cannot contain such a tensor");
                }
                if (auto const drawn = notes_.drawn.find(storage); drawn != notes_.drawn.end()) {
                    call.drawn_by = drawn->second.second;
                }
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
            require_fixed(op, call);
            op.callBoxed(stack);
            note_drawn(op, call, *stack, first);
            return;
        }
        auto const read = constants_read(call);
        keep_constants(call);
        if (op.hasTag(at::Tag::inplace_view)) {
            keep_form(call.arguments.front().toTensor());
        } else {
            require_whole(call);
        }
        op.callBoxed(stack);
        note(std::move(call), *stack, first, read);
    }

    /// What is not a parameter may be changed before the call is looked at.
    void keep_constants(RecordedCall& call) {
        std::size_t at = 0;
        auto const kept = [&](torch::Tensor const& tensor) {
            if (call.values[at++] || !tensor.defined()) {
                return tensor;
            }
            if (!tensor.requires_grad()) {
                return tensor.clone();
            }
            notes_.lasting.insert(storage_of(tensor));
            return tensor;
        };
        for (auto& argument : call.arguments) {
            if (argument.isTensor()) {
                argument = kept(argument.toTensor());
            } else if (argument.isTensorList()) {
                c10::List<torch::Tensor> list;
                for (auto const& tensor : argument.toTensorVector()) {
                    list.push_back(kept(tensor));
                }
                argument = list;
            } else {
                for_tensors(argument, [&](torch::Tensor const&) { ++at; });
            }
        }
    }

    /// What depends on no input is computed once, for all runs of the graph.
    void require_fixed(c10::OperatorHandle const& op, RecordedCall const& call) const {
        auto const& schema = op.schema();
        if (!call.drawn_by.empty() && !asks_for_form(call.name) &&
            std::ranges::none_of(schema.returns(), [](auto const& each) {
                return each.type()->kind() == c10::TypeKind::TensorType ||
                       each.type()->kind() == c10::TypeKind::ListType;
            })) {
            refuse_export(
                concat("operator ", call.drawn_by, " draws a number at random", call.place),
                "an exported graph gives the same outputs each time");
        }
        for (std::size_t at = 0; at < call.arguments.size(); ++at) {
            auto const* const alias = schema.arguments()[at].alias_info();
            if (alias != nullptr && alias->isWrite() && call.arguments[at].isTensor() &&
                notes_.lasting.contains(storage_of(call.arguments[at].toTensor()))) {
                refuse_export(
                    concat("operator ", schema.name(), " changes a parameter", call.place),
                    "an exported graph cannot contain such a write");
            }
        }
    }

    /// What an operator such as transpose_ gives another form keeps it where it was a result
    /// before.
    void keep_form(torch::Tensor const& changed) {
        auto const form = torch::empty_strided(changed.sizes(), changed.strides(),
                                               changed.options().device(torch::kMeta));
        auto const keep = [&](std::vector<torch::Tensor>& values) {
            std::ranges::replace_if(
                values, [&](auto const& value) { return value.is_same(changed); }, form);
        };
        keep(notes_.recording.inputs);
        for (auto& call : notes_.recording.calls) {
            keep(call.results);
        }
    }

    /// Random numbers, and constants that are made of them.
    void note_drawn(c10::OperatorHandle const& op, RecordedCall const& call,
                    torch::Stack const& stack, std::size_t first) {
        auto const by = call.drawn_by.empty() && program::draws_with(op, call.arguments)
                            ? call.schema->name()
                            : call.drawn_by;
        for (auto at = first; !by.empty() && at < stack.size(); ++at) {
            for_tensors(stack[at], [&](torch::Tensor const& tensor) {
                if (auto const* const storage = storage_of(tensor)) {
                    notes_.drawn[storage] = {tensor, by};
                }
            });
        }
    }

    /// Views of what is changed in place would change unnoticed.
    void require_whole(RecordedCall const& call) const {
        for (std::size_t at = 0; at < call.arguments.size(); ++at) {
            auto const* const alias = call.schema->arguments()[at].alias_info();
            if (alias != nullptr && alias->isWrite() && call.arguments[at].isTensor() &&
                has_views(call.arguments[at].toTensor())) {
                refuse_export(concat("operator ", call.schema->name(),
                                     " writes into a tensor that has views", call.place),
                              "an exported graph cannot contain such a write");
            }
        }
    }

    /// Whether another value shares its memory. LibTorch's own views, such as in a linear layer of
    /// sequences, are none.
    bool has_views(torch::Tensor const& tensor) const {
        auto const shares = [&](torch::Tensor const& value) {
            return !value.is_same(tensor) && storage_of(value) != nullptr &&
                   storage_of(value) == storage_of(tensor);
        };
        auto const& [inputs, calls, output] = notes_.recording;
        return std::ranges::any_of(inputs, shares) ||
               std::ranges::any_of(calls, [&](RecordedCall const& each) {
                   return std::ranges::any_of(each.results, shares);
               });
    }

    /// The storages of constants that a call reads and does not change: a result may be a view.
    static std::set<void const*> constants_read(RecordedCall const& call) {
        std::set<void const*> read;
        std::size_t flat = 0;
        for (std::size_t at = 0; at < call.arguments.size(); ++at) {
            auto const* const alias = call.schema->arguments()[at].alias_info();
            for_tensors(call.arguments[at], [&](torch::Tensor const& tensor) {
                if (!call.values[flat++] && (alias == nullptr || !alias->isWrite())) {
                    read.insert(storage_of(tensor));
                }
            });
        }
        return read;
    }

    void note(RecordedCall call, torch::Stack const& stack, std::size_t first,
              std::set<void const*> const& read) {
        for (auto at = first; at < stack.size(); ++at) {
            for_tensors(stack[at],
                        [&](torch::Tensor const& tensor) { call.results.push_back(tensor); });
        }
        if (call.results.empty()) {
            if (asks_for_form(call.name)) {
                return;
            }
            refuse_packed(notes_.recording);
            refuse_export(concat("operator ", call.schema->name(), " takes values out of a tensor",
                                 call.place),
                          "an exported graph cannot depend on the values of its inputs");
        }
        for (auto const& result : call.results) {
            notes_.numbers[result.unsafeGetTensorImpl()] = notes_.count++;
            if (auto const* const storage = storage_of(result);
                storage != nullptr && !read.contains(storage)) {
                notes_.computed.insert(storage);
            }
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
    Notes notes{{inputs, {}, 0}, known, {}, 0, {}, {}, {}, std::nullopt};
    for (auto const& input : inputs) {
        notes.numbers[input.unsafeGetTensorImpl()] = notes.count++;
        notes.computed.insert(storage_of(input));
    }
    torch::Library library(torch::Library::IMPL, "_", mode, __FILE__, __LINE__);
    library.fallback(torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Recorder>(notes)));
    torch::Tensor result;
    try {
        c10::impl::IncludeDispatchKeyGuard const recording(mode);
        result = function(inputs);
    } catch (std::exception const&) {
        if (notes.refused) {
            throw *notes.refused;
        }
        throw;
    }
    auto const output = notes.number_of(result);
    if (!output) {
        refuse_export("its output depends on no input", "there is nothing to compute");
    }
    notes.recording.output = *output;
    return std::move(notes.recording);
}

} // namespace lockstep::nn
