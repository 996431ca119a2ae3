#include "arena/buffers.hpp"

#include "arena/layout.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/to_device.hpp"

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

/// A model's buffers by type: what copies lists is fast for tensors of one type.
struct ByType {
    std::vector<torch::Tensor> integers;
    std::vector<torch::Tensor> floats;

    torch::Device device() const {
        auto const& some = integers.empty() ? floats : integers;
        return some.empty() ? torch::Device(torch::kCPU) : some.front().device();
    }
};

ByType by_type(nn::Model const& model) {
    ByType found;
    for_each_buffer(model, [&](auto const&, torch::Tensor const& buffer, bool is_float, auto) {
        (is_float ? found.floats : found.integers).push_back(buffer);
    });
    return found;
}

std::vector<torch::Tensor> places_in(torch::Tensor const& flat,
                                     std::vector<torch::Tensor> const& buffers) {
    std::vector<torch::Tensor> places;
    std::int64_t at = 0;
    for (auto const& buffer : buffers) {
        places.push_back(flat.narrow(0, at, buffer.numel()).view(buffer.sizes()));
        at += buffer.numel();
    }
    return places;
}

/// In few calls, however many buffers there are: else a device would idle for milliseconds.
void copy_all(std::vector<torch::Tensor> const& to, std::vector<torch::Tensor> const& from) {
    if (!to.empty()) {
        at::_foreach_copy_(to, from);
    }
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

void Buffers::collect_from(nn::Model const& model) {
    take(nn::to_host(gathered_from(model)));
}

torch::Tensor Buffers::gathered_from(nn::Model const& model) const {
    torch::NoGradGuard const no_grad;
    model.settle_buffers();
    auto const buffers = by_type(model);
    auto const there = torch::empty_like(bytes_, torch::TensorOptions(buffers.device()));
    copy_all(places_in(integers_of(there), buffers.integers), buffers.integers);
    copy_all(places_in(floats_of(there), buffers.floats), buffers.floats);
    return there;
}

void Buffers::restore_into(nn::Model& model) const {
    torch::NoGradGuard const no_grad;
    model.settle_buffers();
    auto const buffers = by_type(model);
    auto const there = nn::to_device(bytes_, buffers.device());
    copy_all(buffers.integers, places_in(integers_of(there), buffers.integers));
    copy_all(buffers.floats, places_in(floats_of(there), buffers.floats));
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
