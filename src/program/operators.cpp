#include "operators.hpp"

#include "base/text.hpp"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::program {

namespace {

constexpr std::string_view prefix = "torch.ops.";

/// Of the operators whose names begin with an underscore, which are LibTorch's own and may not
/// check what they are given, those that torch.export leaves in programs for training.
constexpr std::array<std::string_view, 16> inner{"_adaptive_avg_pool2d",
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
                                                 "_upsample_nearest_exact2d",
                                                 "_weight_norm"};

/// What reaches beyond the tensors that it is given, and the inner forms of batch norm and of a
/// loss, which take shapes as they are.
constexpr std::array<std::string_view, 10> forbidden{
    "from_file",   "set_",           "resize_as_",        "set_data", "resize_",
    "retain_grad", "requires_grad_", "native_batch_norm", "ctc_loss", "cudnn_batch_norm"};

/// Parts of the names of operators that take indices as they are: derivatives, which autograd calls
/// with its own; and sparse layouts.
constexpr std::array<std::string_view, 9> unchecked{"backward", "sparse",    "segment_reduce",
                                                    "_csr",     "_csc",      "_bsr",
                                                    "_bsc",     "quantized", "lu_unpack"};

bool holds(auto const& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

std::variant<c10::OperatorHandle, std::string> find_operator(std::string const& target) {
    auto const rest = std::string_view(target).substr(prefix.size()); // aten.add.Tensor
    auto const first = rest.find('.');
    auto const last = rest.rfind('.');
    if (first == std::string_view::npos || first == last) {
        return std::string("its name does not have the form LIBRARY.OPERATOR.OVERLOAD");
    }
    auto const library = rest.substr(0, first);
    auto const name = rest.substr(first + 1, last - first - 1);
    auto const overload = rest.substr(last + 1) == "default" ? "" : rest.substr(last + 1);
    if (library != "aten") {
        return concat("it belongs to the library ", library,
                      ", but only LibTorch's own operators are run");
    }
    bool const is_inner = name.starts_with('_') && !name.starts_with("__");
    bool const is_unchecked =
        std::any_of(unchecked.begin(), unchecked.end(), [&](std::string_view part) {
            return name.find(part) != std::string_view::npos;
        });
    if ((is_inner && !holds(inner, name)) || holds(forbidden, name)) {
        return std::string("programs for training do not contain it, but decomposed ones do");
    }
    if (is_unchecked) {
        return std::string("it does not check the indices that it is given");
    }
    auto const found = c10::Dispatcher::singleton().findSchema(
        {concat(library, "::", name), std::string(overload)});
    if (!found) {
        return std::string("this version of LibTorch has no operator of that name");
    }
    return *found;
}

bool draws(c10::OperatorHandle const& op) {
    return op.hasTag(at::Tag::nondeterministic_seeded);
}

} // namespace lockstep::program
