#include "checked.hpp"

#include "program/bounded.hpp"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>

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

/// Checks the arguments of _pack_padded_sequence(input, lengths, batch_first).
void check_packing(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    TORCH_CHECK(input.dim() >= 2, "its input must have at least two dimensions");
    require_falling(given[1], input.size(given[2].toBool() ? 1 : 0), "lengths");
}

/// Checks packed rows and the sizes of their batches, the first arguments of some operators:
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

/// Checks the arguments of batch norms: their other tensors hold a number for each channel of the
/// first, or are not given; overloads without statistics have fewer of them.
void check_channels(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    TORCH_CHECK(input.dim() >= 2, "its input must have at least two dimensions");
    TORCH_CHECK(input.size(1) > 0, "its input must have channels");
    // Without statistics to use, it must compute them.
    TORCH_CHECK(!given[3].isBool() || given[3].toBool(), "it must be in training");
    for (std::size_t at = 1; at < 5 && (given[at].isTensor() || given[at].isNone()); ++at) {
        if (given[at].isTensor()) {
            auto const& tensor = given[at].toTensor();
            TORCH_CHECK(tensor.dim() == 1 && tensor.size(0) == input.size(1),
                        "a tensor of its channels has the shape ", tensor.sizes(),
                        ", but its input has ", input.size(1), " channels");
        }
    }
}

/// Checks the arguments of _weight_norm(v, g, dim): g has an element for each slice of v along dim.
/// Other dims, such as -1 for one norm of all, go to operators that check.
void check_weight_norm(std::vector<c10::IValue>& given) {
    auto const& directions = given[0].toTensor();
    auto const dim = given[2].toInt();
    if (dim != 0 && dim != directions.dim() - 1) {
        return;
    }
    TORCH_CHECK(directions.dim() > 0 && directions.numel() > 0, "its v must not be empty");
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(directions.dim()), 1);
    wanted[static_cast<std::size_t>(dim)] = directions.size(dim);
    TORCH_CHECK(given[1].toTensor().sizes() == at::IntArrayRef(wanted), "its g has the shape ",
                given[1].toTensor().sizes(), ", but must have ", at::IntArrayRef(wanted));
}

/// Checks the inner attention for the CPU, which divides by sizes of its query, keys and values,
/// and reads as much of each as another has.
void check_attention(std::vector<c10::IValue>& given) {
    auto const& query = given[0].toTensor();
    auto const& keys = given[1].toTensor();
    auto const& values = given[2].toTensor();
    for (auto const& each : {query, keys, values}) {
        TORCH_CHECK(each.dim() == 4 && each.numel() > 0,
                    "its query, keys and values must have four dimensions, and elements");
    }
    TORCH_CHECK(keys.sizes() == values.sizes() && query.size(0) == keys.size(0) &&
                    query.size(1) % keys.size(1) == 0 && query.size(3) == keys.size(3),
                "its query, keys and values have the shapes ", query.sizes(), ", ", keys.sizes(),
                " and ", values.sizes(), ", which do not fit together");
    if (!given[5].isTensor()) {
        return;
    }
    auto const& mask = given[5].toTensor();
    std::array const wanted{query.size(0), query.size(1), query.size(2), keys.size(2)};
    TORCH_CHECK(mask.dim() == 2 || mask.dim() == 4, "its mask must have two or four dimensions");
    for (std::int64_t back = 1; back <= mask.dim(); ++back) {
        auto const extent = mask.size(-back);
        TORCH_CHECK(extent == 1 ||
                        extent == wanted.at(wanted.size() - static_cast<std::size_t>(back)),
                    "its mask has the shape ", mask.sizes(), ", which does not fit ",
                    at::IntArrayRef(wanted.data(), wanted.size()));
    }
}

/// Checks scaled_dot_product_attention(query, key, value, …), which compares all of their sizes but
/// this one before it calls the inner one.
void check_keys(std::vector<c10::IValue>& given) {
    auto const& keys = given[1].toTensor();
    auto const& values = given[2].toTensor();
    TORCH_CHECK(keys.dim() < 2 || values.dim() < 2 || keys.size(-2) == values.size(-2),
                "its keys and values have the shapes ", keys.sizes(), " and ", values.sizes());
}

/// Checks the step of range: LibTorch divides by it as a number of the result's type.
void check_step(std::vector<c10::IValue>& given) {
    auto const& result = given[3]; // or its type
    auto const type = result.isTensor() ? result.toTensor().scalar_type()
                      : result.isNone() ? at::kFloat
                                        : static_cast<at::ScalarType>(result.toInt());
    TORCH_CHECK(c10::isFloatingType(type) || std::fabs(given[2].toScalar().toDouble()) >= 1,
                "its step must not be less than 1 for whole numbers");
}

constexpr std::int64_t max_parts = 65536;

/// Each part is a tensor, however little is in it.
void require_few(std::int64_t parts) {
    TORCH_CHECK(parts <= max_parts, "it makes ", parts, " tensors, but at most ", max_parts,
                " are supported");
}

/// Checks the arguments of tensor_split, chunk and others that are told how many parts they make.
void check_sections(std::vector<c10::IValue>& given) {
    auto const& sections = given[1];
    if (sections.isInt()) {
        require_few(sections.toInt());
    } else if (sections.isTensor() && sections.toTensor().dim() == 0) {
        require_few(sections.toTensor().item().toLong());
    }
}

/// Checks the arguments of unbind(input, dim).
void check_slices(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    if (input.dim() > 0) { // else it is refused
        require_few(input.size(given[1].toInt()));
    }
}

/// Checks the arguments of split(input, split_size, dim).
void check_split(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    if (input.dim() > 0 && given[1].toInt() > 0) {
        require_few(input.size(given[2].toInt()) / given[1].toInt());
    }
}

/// A list on the CPU, of either type of whole numbers, read without calls that would be recorded.
class Wholes {
  public:
    explicit Wholes(at::Tensor const& list)
        : start_(static_cast<std::byte const*>(list.const_data_ptr())),
          is_long_(list.scalar_type() == at::kLong),
          stride_(list.stride(0) * static_cast<std::int64_t>(list.element_size())),
          count_(list.size(0)) {}

    std::int64_t count() const { return count_; }
    std::int64_t operator[](std::int64_t at) const {
        auto const* const place = start_ + at * stride_;
        return is_long_ ? *reinterpret_cast<std::int64_t const*>(place)
                        : *reinterpret_cast<std::int32_t const*>(place);
    }

  private:
    std::byte const* start_;
    bool is_long_;
    std::int64_t stride_;
    std::int64_t count_;
};

/// Each bag begins where the one before it ends, or later, and the last one at most at the end.
void require_bags(Wholes const& offsets, std::int64_t indices, bool ends_with_last) {
    TORCH_CHECK(offsets.count() > 0 || (indices == 0 && !ends_with_last),
                "there must be offsets where there are indices");
    std::int64_t before = 0;
    for (std::int64_t at = 0; at < offsets.count(); ++at) {
        auto const offset = offsets[at];
        TORCH_CHECK(at == 0 ? offset == 0 : offset >= before && offset <= indices,
                    "offsets must rise from 0 to at most ", indices, ", but offset ", at, " is ",
                    offset);
        before = offset;
    }
    TORCH_CHECK(!ends_with_last || before == indices, "the last offset is ", before,
                ", but must be the number of indices, ", indices);
}

/// Checks embedding_bag(weight, indices, offsets, …): it reads its indices and offsets as lists,
/// and sums what the offsets say.
void check_bags(std::vector<c10::IValue>& given) {
    auto const& weight = given[0].toTensor();
    auto const& indices = given[1].toTensor();
    auto const& offsets = given[2].toTensor();
    for (auto const& numbers : {indices, offsets}) {
        TORCH_CHECK(numbers.dim() == 1 &&
                        (numbers.scalar_type() == at::kLong || numbers.scalar_type() == at::kInt),
                    "indices and offsets must be lists of whole numbers");
    }
    TORCH_CHECK(weight.dim() == 2, "its weight must have two dimensions");
    TORCH_CHECK(!given[6].isTensor() || !given[6].toTensor().defined() ||
                    given[6].toTensor().sizes() == indices.sizes(),
                "per_sample_weights must be as many as the indices");
    if (!indices.device().is_cpu() || !offsets.device().is_cpu()) {
        return; // they would have to be waited for
    }
    Wholes const numbers(indices);
    for (std::int64_t at = 0; at < numbers.count(); ++at) {
        TORCH_CHECK(numbers[at] >= 0 && numbers[at] < weight.size(0), "index ", numbers[at],
                    " is none of its ", weight.size(0), " rows");
    }
    require_bags(Wholes(offsets), indices.size(0), given[7].toBool());
}

double elements_of(at::Tensor const& tensor) {
    return static_cast<double>(tensor.numel());
}

double largest(at::Tensor const& numbers) {
    return numbers.numel() == 0 ? 0 : numbers.max().item().toDouble();
}

/// Checks the arguments of bincount(input, weights, minlength).
void check_bins(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    require_moderate(std::max(largest(input) + 1, given[2].toScalar().toDouble()),
                     elements_of(input));
}

/// Checks the arguments of one_hot(input, num_classes).
void check_classes(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    auto const said = given[1].toScalar().toDouble();
    require_moderate((said < 0 ? largest(input) + 1 : said) * elements_of(input),
                     elements_of(input));
}

/// Checks the arguments of repeat_interleave(repeats).
void check_repeats(std::vector<c10::IValue>& given) {
    auto const& repeats = given[0].toTensor();
    require_moderate(repeats.to(at::kDouble).sum().item().toDouble(), elements_of(repeats));
}

/// Checks the arguments of repeat_interleave(input, repeats, dim).
void check_repeated(std::vector<c10::IValue>& given) {
    auto const& input = given[0].toTensor();
    auto const& repeats = given[1].toTensor();
    if (input.numel() > 0 && repeats.numel() > 0) {
        auto const mean = repeats.to(at::kDouble).mean().item().toDouble();
        require_moderate(mean * elements_of(input), elements_of(input));
    }
}

using Check = void (*)(std::vector<c10::IValue>&);

} // namespace

std::shared_ptr<Replacement const> checked(c10::OperatorHandle const& op) {
    static std::map<std::string, Check> const all{
        {"aten::_native_batch_norm_legit", check_channels},
        {"aten::_native_batch_norm_legit.no_stats", check_channels},
        {"aten::_native_batch_norm_legit.no_stats_out", check_channels},
        {"aten::_native_batch_norm_legit.out", check_channels},
        {"aten::_pack_padded_sequence", check_packing},
        {"aten::_pad_packed_sequence", check_rows},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", check_attention},
        {"aten::_weight_norm", check_weight_norm},
        {"aten::bincount", check_bins},
        {"aten::bincount.out", check_bins},
        {"aten::chunk", check_sections},
        {"aten::dsplit.int", check_sections},
        {"aten::embedding_bag", check_bags},
        {"aten::embedding_bag.padding_idx", check_bags},
        {"aten::gru.data", check_rows},
        {"aten::hsplit.int", check_sections},
        {"aten::lstm.data", check_rows},
        {"aten::one_hot", check_classes},
        {"aten::range.out", check_step},
        {"aten::range.step", check_step},
        {"aten::repeat_interleave.Tensor", check_repeats},
        {"aten::repeat_interleave.Tensor_out", check_repeats},
        {"aten::repeat_interleave.self_Tensor", check_repeated},
        {"aten::rnn_relu.data", check_rows},
        {"aten::rnn_tanh.data", check_rows},
        {"aten::scaled_dot_product_attention", check_keys},
        {"aten::split.Tensor", check_split},
        {"aten::tensor_split.sections", check_sections},
        {"aten::tensor_split.tensor_indices_or_sections", check_sections},
        {"aten::unbind.int", check_slices},
        {"aten::unsafe_chunk", check_sections},
        {"aten::unsafe_split.Tensor", check_split},
        {"aten::vsplit.int", check_sections},
    };
    auto const found = all.find(c10::toString(op.operator_name()));
    auto const check = found != all.end() ? found->second : nullptr;
    if (check == nullptr) {
        return nullptr;
    }
    return std::make_shared<Replacement const>([op, check](std::vector<c10::IValue>& stack) {
        check(stack);
        op.callBoxed(stack);
    });
}

} // namespace lockstep::program
