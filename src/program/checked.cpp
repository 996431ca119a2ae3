#include "checked.hpp"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <span>

#include "program/recurrent.hpp"

namespace lockstep::program {

namespace {

std::span<std::int64_t const> values_of(at::Tensor const& numbers) {
    return {numbers.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(numbers.numel())};
}

/// A tensor of numbers that an operator counts with, checked to lie between `max` and 1.
at::Tensor require_falling(c10::IValue& value, std::int64_t max, char const* name) {
    auto const& tensor = value.toTensor();
    TORCH_CHECK(tensor.dim() == 1 && tensor.numel() > 0 && tensor.device().is_cpu() &&
                    tensor.scalar_type() == at::kLong,
                name, " must be a list of whole numbers on the CPU");
    auto numbers = tensor.contiguous();
    auto const all = values_of(numbers);
    TORCH_CHECK(std::ranges::is_sorted(all, std::greater{}) && all.front() <= max && all.back() > 0,
                name, " must be numbers from ", max, " to 1, in descending order");
    value = numbers; // some operators take the layout for granted
    return numbers;
}

/// Of _pack_padded_sequence(input, lengths, batch_first).
void check_packing(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    TORCH_CHECK(input.dim() >= 2, "its input must have at least two dimensions");
    require_falling(given[1], input.size(given[2].toBool() ? 1 : 0), "lengths");
}

/// Of operators whose first arguments are packed rows and the sizes of their batches:
/// _pad_packed_sequence, and the overloads "data" of recurrent layers.
void check_rows(std::vector<c10::IValue>& given) {
    auto const& data = given[0].toTensor();
    TORCH_CHECK(data.dim() >= 1, "its data must have at least one dimension");
    auto const numbers = require_falling(given[1], data.size(0), "batch_sizes");
    auto left = data.size(0); // a sum of all might overflow
    for (auto const size : values_of(numbers)) {
        left = left < 0 ? left : left - size;
    }
    TORCH_CHECK(left == 0, "batch_sizes must add up to the ", data.size(0), " rows of its data");
}

} // namespace

std::shared_ptr<Replacement const> checked(c10::OperatorHandle const& op) {
    auto const& name = op.schema().name();
    bool const takes_rows = name == "aten::_pad_packed_sequence" ||
                            (is_recurrent(name) && op.schema().overload_name() == "data");
    auto* const check = name == "aten::_pack_padded_sequence" ? check_packing
                        : takes_rows                          ? check_rows
                                                              : nullptr;
    if (check == nullptr) {
        return nullptr;
    }
    return std::make_shared<Replacement const>([op, check](std::vector<c10::IValue>& stack) {
        check(stack);
        op.callBoxed(stack);
    });
}

} // namespace lockstep::program
