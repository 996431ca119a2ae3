#include "untouched_parameters.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "nn/writes.hpp"

#include <bit>
#include <utility>

namespace lockstep::train {

namespace {

std::uint64_t hash_of(torch::Tensor const& tensor) {
    auto const values = tensor.detach().cpu().contiguous();
    return hash64({static_cast<std::byte const*>(values.const_data_ptr()), values.nbytes()});
}

} // namespace

UntouchedParameters::UntouchedParameters(nn::Model const& model, std::string name, bool compares)
    : name_(std::move(name)), compares_(compares) {
    for (auto const& item : model.named_parameters()) {
        parameters_.push_back({item.key(), item.value()});
    }
}

void UntouchedParameters::begin() {
    hashed_ = compares_ && std::has_single_bit(++passes_);
    for (auto& each : parameters_) {
        each.changes = each.values._version();
        each.hash = hashed_ ? hash_of(each.values) : 0;
    }
}

void UntouchedParameters::require() const {
    for (auto const& each : parameters_) {
        if (each.values._version() != each.changes ||
            (hashed_ && hash_of(each.values) != each.hash)) {
            nn::refuse_write({.model = name_,
                              .tensor = concat("parameter ", each.name),
                              .trained = each.values.requires_grad()});
        }
    }
}

} // namespace lockstep::train
