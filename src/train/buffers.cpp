#include "train/buffers.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/to_device.hpp"
#include "train/layout.hpp"

namespace lockstep::train {

namespace {

/// Calls action(name, buffer, is_float, place in its flat array) for each buffer.
template <class Action>
void for_each_buffer(nn::Model const& model, Action const& action) {
    std::int64_t float_at = 0;
    std::int64_t integer_at = 0;
    for (auto const& item : model.named_buffers()) {
        auto const& buffer = item.value();
        auto const type = buffer.scalar_type();
        if (type != torch::kFloat32 && type != torch::kInt64) {
            throw Error(ExitCode::usage,
                        {concat("buffer ", item.key(), " is of type ", c10::toString(type)),
                         "buffers must be float32 or int64",
                         "Convert the buffer to one of these types"});
        }
        bool const is_float = type == torch::kFloat32;
        auto& at = is_float ? float_at : integer_at;
        action(item.key(), buffer, is_float, at);
        at += buffer.numel();
    }
}

torch::Tensor place_in(torch::Tensor const& flat, std::int64_t at, torch::Tensor const& buffer) {
    return flat.narrow(0, at, buffer.numel()).view(buffer.sizes());
}

} // namespace

Buffers::Buffers(nn::Model const& model) {
    std::int64_t float_count = 0;
    std::int64_t integer_count = 0;
    for_each_buffer(model, [&](auto const&, torch::Tensor const& buffer, bool is_float, auto) {
        (is_float ? float_count : integer_count) += buffer.numel();
    });
    // The 64-bit integers first, so that both are aligned.
    integer_bytes_ = integer_count * static_cast<std::int64_t>(sizeof(std::int64_t));
    auto const float_bytes = float_count * static_cast<std::int64_t>(sizeof(float));
    bytes_ = torch::zeros({integer_bytes_ + float_bytes}, torch::kUInt8);
    integers = integers_of(bytes_);
    floats = floats_of(bytes_);
    collect_from(model);
}

torch::Tensor Buffers::integers_of(torch::Tensor const& bytes) const {
    return bytes.narrow(0, 0, integer_bytes_).view(torch::kInt64);
}

torch::Tensor Buffers::floats_of(torch::Tensor const& bytes) const {
    return bytes.narrow(0, integer_bytes_, bytes.numel() - integer_bytes_).view(torch::kFloat32);
}

// A device gets few calls, however many buffers there are: else it would idle for milliseconds.

void Buffers::collect_from(nn::Model const& model) {
    torch::NoGradGuard const no_grad;
    model.settle_buffers();
    std::vector<torch::Tensor> parts; // the integers first, as in bytes_
    std::vector<torch::Tensor> float_parts;
    for_each_buffer(model, [&](auto const&, torch::Tensor const& buffer, bool is_float, auto) {
        (is_float ? float_parts : parts).push_back(buffer.reshape(-1).view(torch::kUInt8));
    });
    parts.insert(parts.end(), float_parts.begin(), float_parts.end());
    if (!parts.empty()) {
        bytes_.copy_(nn::to_host(torch::cat(parts)));
    }
}

void Buffers::restore_into(nn::Model& model) const {
    torch::NoGradGuard const no_grad;
    model.settle_buffers();
    struct Copies {
        torch::Tensor values; ///< of all, where the model is
        std::vector<torch::Tensor> to;
        std::vector<torch::Tensor> from;
    };
    Copies of_floats;
    Copies of_integers;
    for_each_buffer(model,
                    [&](auto const&, torch::Tensor const& buffer, bool is_float, std::int64_t at) {
                        if (!of_floats.values.defined()) {
                            auto const bytes = nn::to_device(bytes_, buffer.device());
                            of_floats.values = floats_of(bytes);
                            of_integers.values = integers_of(bytes);
                        }
                        auto& copies = is_float ? of_floats : of_integers;
                        copies.to.push_back(buffer);
                        copies.from.push_back(place_in(copies.values, at, buffer));
                    });
    for (auto const& copies : {of_floats, of_integers}) {
        if (!copies.to.empty()) {
            at::_foreach_copy_(copies.to, copies.from); // fast for tensors of one type
        }
    }
}

std::span<std::byte> Buffers::bytes() const {
    return {static_cast<std::byte*>(bytes_.mutable_data_ptr()),
            static_cast<std::size_t>(bytes_.numel())};
}

std::vector<h5::View> Buffers::views(nn::Model const& model, std::string const& prefix,
                                     std::string const& floats_path,
                                     std::string const& integers_path) const {
    std::vector<h5::View> views;
    for_each_buffer(model, [&](std::string const& name, torch::Tensor const& buffer, bool is_float,
                               std::int64_t at) {
        // A single value has a dimension of one: HDF5 maps no scalars.
        h5::Shape shape(buffer.sizes().begin(), buffer.sizes().end());
        views.push_back({prefix + "/" + path_of(name), is_float ? floats_path : integers_path,
                         static_cast<std::uint64_t>(at), shape.empty() ? h5::Shape{1} : shape});
    });
    return views;
}

} // namespace lockstep::train
