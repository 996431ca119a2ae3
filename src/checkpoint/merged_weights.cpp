#include "checkpoint/merged_weights.hpp"

#include "base/text.hpp"
#include "checkpoint/adapter.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::checkpoint {

namespace {

class MergedWeights : public Weights {
  public:
    MergedWeights(std::unique_ptr<Weights> parts, double scale)
        : Weights(parts->path()), parts_(std::move(parts)), scale_(scale) {
        record_ = parts_->record();
        record_.reals.erase(adapter_scale);
        quantised_ = parts_->quantised();
        for (auto const& entry : parts_->entries()) {
            if (!is_of_adapter(entry.name)) {
                require_fit(entry);
                entries_.push_back(entry);
            }
        }
    }

  private:
    struct Adapter {
        TensorInfo const* a = nullptr;
        TensorInfo const* b = nullptr;
    };

    Adapter adapter_of(TensorInfo const& entry) const {
        auto const part = [&](std::string_view name) {
            auto const full = adapter_name(entry.name, name);
            return full.empty() ? nullptr : parts_->find(full);
        };
        return {part(adapter_a), part(adapter_b)};
    }

    void require_fit(TensorInfo const& entry) const {
        auto const [a, b] = adapter_of(entry);
        if (a == nullptr && b == nullptr) {
            return;
        }
        auto const is_matrix = [](TensorInfo const* each) {
            return each != nullptr && each->shape.size() == 2 && each->type == h5::Type::f32;
        };
        if (!is_matrix(&entry) || !is_matrix(a) || !is_matrix(b) || a->shape[1] != entry.shape[1] ||
            b->shape[0] != entry.shape[0] || a->shape[0] != b->shape[1] || entry.shape[0] == 0) {
            throw Error(ExitCode::data, {concat(path().string(), " is damaged"),
                                         concat("the adapter of ", entry.name, " does not fit it"),
                                         "Copy the file again from its source, or name another"});
        }
    }

    std::vector<float> values_of(TensorInfo const& entry) const {
        std::vector<float> values(h5::elements(entry.shape));
        parts_->read(entry, std::as_writable_bytes(std::span(values)));
        return values;
    }

    void read_entry(std::size_t index, std::span<std::byte> into) const override {
        auto const& entry = *parts_->find(entries_[index].name);
        auto const [a, b] = adapter_of(entry);
        if (a == nullptr) {
            parts_->read(entry, into);
            return;
        }
        auto weight = values_of(entry);
        merge_adapter(weight, values_of(*a), values_of(*b), entry.shape[0], scale_);
        auto const bytes = std::as_bytes(std::span(weight));
        std::copy(bytes.begin(), bytes.end(), into.begin());
    }

    std::unique_ptr<Weights> parts_;
    double scale_;
};

} // namespace

std::unique_ptr<Weights> merged_weights(std::unique_ptr<Weights> weights) {
    auto const& reals = weights->record().reals;
    auto const found = reals.find(adapter_scale);
    if (found == reals.end()) {
        return weights;
    }
    auto const scale = found->second;
    return std::make_unique<MergedWeights>(std::move(weights), scale);
}

} // namespace lockstep::checkpoint
