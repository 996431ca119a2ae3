#include "program/operators.hpp"

#include "base/text.hpp"
#include "program/filled.hpp"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

namespace lockstep::program {

namespace {

constexpr std::string_view prefix = "torch.ops.";

/// The operators that torch.export leaves in programs for training although an underscore begins
/// their names: they are LibTorch's own, and may not check what they are given.
constexpr std::array<std::string_view, 20> inner{"_adaptive_avg_pool2d",
                                                 "_adaptive_avg_pool3d",
                                                 "_assert_async",
                                                 "_assert_scalar",
                                                 "_cdist_forward",
                                                 "_convolution",
                                                 "_log_softmax",
                                                 "_native_batch_norm_legit",
                                                 "_pack_padded_sequence",
                                                 "_pad_packed_sequence",
                                                 "_scaled_dot_product_flash_attention_for_cpu",
                                                 "_softmax",
                                                 "_to_copy",
                                                 "_unsafe_view",
                                                 "_upsample_bicubic2d_aa",
                                                 "_upsample_bilinear2d_aa",
                                                 "_upsample_nearest_exact1d",
                                                 "_upsample_nearest_exact2d",
                                                 "_upsample_nearest_exact3d",
                                                 "_weight_norm"};

/// What reaches beyond the tensors that it is given, and the inner forms of batch norm and of a
/// loss, which take shapes as they are.
constexpr std::array<std::string_view, 12> forbidden{
    "from_file",         "set_",     "resize_as_",       "set_data",
    "resize_",           "resize",   "retain_grad",      "requires_grad_",
    "native_batch_norm", "ctc_loss", "cudnn_batch_norm", "resize_as"};

/// Parts of the names of operators that take indices or sizes as they are: derivatives, which
/// autograd calls with its own; sparse layouts; inner forms for quantised numbers or one library,
/// which only LibTorch itself calls; what computes without end for a huge degree; and pivots that
/// LAPACK follows.
constexpr std::array<std::string_view, 17> unchecked{
    "backward",       "sparse",   "segment_reduce",   "_csr",      "_csc",
    "_bsr",           "_bsc",     "quantized",        "lu_unpack", "batch_norm_update_stats",
    "choose_qparams", "fbgemm",   "mkldnn_rnn_layer", "slow_conv", "thnn_conv",
    "_polynomial_",   "ldl_solve"};

bool holds(auto const& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::unordered_set<c10::OperatorName> defined_operators() {
    auto& dispatcher = c10::Dispatcher::singleton();
    std::unordered_set<c10::OperatorName> names;
    for (auto const& name : dispatcher.getAllOpNames()) {
        if (dispatcher.findSchema(name)) { // and not only kernels of it
            names.insert(name);
        }
    }
    return names;
}

/// The names of the operators at the first call: libraries that are opened later bring theirs.
std::unordered_set<c10::OperatorName> const& operators_of_torch() {
    static auto const names = defined_operators();
    return names;
}

/// An operator outside aten. The user trusts the libraries that the deck names, with whatever they
/// are given; LibTorch's own inner operators trust their callers.
std::variant<c10::OperatorHandle, NoOperator> find_own(std::string_view library,
                                                       c10::OperatorName const& name) {
    if (operators_of_torch().contains(name)) {
        return NoOperator{
            concat("this operator belongs to the library ", library,
                   ", but of LibTorch's own operators, Lockstep runs only those of aten")};
    }
    auto const found = c10::Dispatcher::singleton().findSchema(name);
    if (!found) {
        return NoOperator{
            "no library that the deck names has registered this operator",
            concat("In model.operators, name the shared library that registers the operators of ",
                   library,
                   " with TORCH_LIBRARY. Operators that are written in Python cannot be run")};
    }
    return *found;
}

} // namespace

void note_operators_of_torch() {
    operators_of_torch();
}

std::variant<c10::OperatorHandle, NoOperator> find_operator(std::string const& target) {
    auto const rest = std::string_view(target).substr(prefix.size()); // aten.add.Tensor
    auto const first = rest.find('.');
    auto const last = rest.rfind('.');
    if (first == std::string_view::npos || first == last) {
        return NoOperator{"its name does not have the form LIBRARY.OPERATOR.OVERLOAD"};
    }
    auto const library = rest.substr(0, first);
    auto const name = rest.substr(first + 1, last - first - 1);
    auto const overload = rest.substr(last + 1) == "default" ? "" : rest.substr(last + 1);
    c10::OperatorName const full(concat(library, "::", name), std::string(overload));
    if (library != "aten") {
        return find_own(library, full);
    }
    bool const is_inner = name.starts_with('_') && !name.starts_with("__");
    bool const is_unchecked =
        std::any_of(unchecked.begin(), unchecked.end(), [&](std::string_view part) {
            return name.find(part) != std::string_view::npos;
        });
    if ((is_inner && !holds(inner, name)) || holds(forbidden, name)) {
        return NoOperator{"this operator occurs only in decomposed programs, but training needs a "
                          "program that is not decomposed"};
    }
    if (is_unchecked) {
        return NoOperator{"it does not check the indices or sizes that it is given"};
    }
    if (leaves_memory(full.name) && overload.ends_with("out")) {
        return NoOperator{"it leaves in its result whatever was in memory"};
    }
    auto const found = c10::Dispatcher::singleton().findSchema(full);
    if (!found) {
        return NoOperator{"this version of LibTorch has no operator of that name"};
    }
    return *found;
}

bool draws(c10::OperatorHandle const& op) {
    return op.hasTag(at::Tag::nondeterministic_seeded);
}

bool is_mode(std::string const& argument) {
    constexpr std::array names{"train", "training", "dropout_p", "use_input_stats"};
    return std::find(names.begin(), names.end(), argument) != names.end();
}

bool is_false(c10::IValue const& value) {
    return (value.isBool() && !value.toBool()) || (value.isDouble() && value.toDouble() == 0);
}

bool draws_with(c10::OperatorHandle const& op, std::vector<c10::IValue> const& arguments) {
    auto const& schema = op.schema().arguments();
    for (std::size_t at = 0; at < arguments.size(); ++at) {
        auto const& name = schema.at(at).name();
        if ((is_mode(name) || name == "p") && is_false(arguments[at])) { // p: of dropout
            return false;
        }
    }
    return draws(op);
}

bool draws_always(c10::OperatorHandle const& op) {
    auto const& arguments = op.schema().arguments();
    return draws(op) && std::none_of(arguments.begin(), arguments.end(),
                                     [](auto const& argument) { return is_mode(argument.name()); });
}

} // namespace lockstep::program
