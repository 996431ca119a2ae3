#include "model_files/renamed_weights.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::train {

namespace {

class RenamedWeights : public checkpoint::Weights {
  public:
    RenamedWeights(std::unique_ptr<Weights> ours, std::string model, nn::Package package)
        : Weights(ours->path()), ours_(std::move(ours)), model_(std::move(model)),
          package_(package) {
        record_ = ours_->record();
        std::map<std::string, std::size_t> places;
        for (auto const& entry : ours_->entries()) {
            auto const theirs = nn::name_in(package_, model_, entry.name);
            if (!theirs) {
                throw without_name(entry.name);
            }
            require_large_stem(*theirs, entry);
            auto const [place, is_new] = places.try_emplace(theirs->name, entries_.size());
            if (is_new) {
                auto& joined = entries_.emplace_back(entry);
                joined.name = theirs->name;
                if (theirs->parts > 1 && !joined.shape.empty()) {
                    joined.shape.front() *= static_cast<std::uint64_t>(theirs->parts);
                }
                parts_.emplace_back(static_cast<std::size_t>(theirs->parts), nullptr);
            }
            parts_[place->second][static_cast<std::size_t>(theirs->part)] = &entry;
        }
        require_all_parts();
    }

  private:
    /// Neither package has the stem for small images, whose names are the same.
    void require_large_stem(nn::WeightSource const& theirs, TensorInfo const& entry) const {
        constexpr std::uint64_t side = 7;
        if (model_ == "resnet" && theirs.name == "conv1.weight" && entry.shape.back() != side) {
            throw Error(ExitCode::usage,
                        {concat("--names cannot be used for ", path_.string()),
                         "its first convolution is 3 x 3 (model.stem = small), and those of the "
                         "packages' ResNets are 7 x 7, with a max pool behind them",
                         "Leave --names out: the tensors then have the names of this program"});
        }
    }

    Error without_name(std::string const& tensor) const {
        auto const* const name = package_ == nn::Package::timm ? "timm" : "torchvision";
        return {ExitCode::usage,
                {concat("--names ", name, " cannot be used for ", path_.string()),
                 concat(name, " has no name for ", tensor, " of model.name = ", model_,
                        ": names are known of resnet and vit"),
                 "Leave --names out: the tensors then have the names of this program"}};
    }

    void require_all_parts() const {
        for (std::size_t at = 0; at < parts_.size(); ++at) {
            auto const of_other_form = [&](TensorInfo const* part) {
                return part == nullptr || part->shape != parts_[at].front()->shape;
            };
            if (std::ranges::any_of(parts_[at], of_other_form)) { // the first comes first
                throw Error(ExitCode::usage,
                            {concat("--names cannot be used for ", path_.string()),
                             concat("the model has only a part of ", entries_[at].name),
                             "Leave --names out: the tensors then have the names of this program"});
            }
        }
    }

    void read_entry(std::size_t index, std::span<std::byte> into) const override {
        for (auto const* const part : parts_[index]) {
            ours_->read(*part, into.first(part->bytes()));
            into = into.subspan(part->bytes());
        }
    }

    std::unique_ptr<Weights> ours_;
    std::string model_;
    nn::Package package_;
    std::vector<std::vector<TensorInfo const*>> parts_; ///< of each entry, one after the other
};

} // namespace

std::unique_ptr<checkpoint::Weights> renamed_weights(std::unique_ptr<checkpoint::Weights> ours,
                                                     std::string const& model,
                                                     nn::Package package) {
    return std::make_unique<RenamedWeights>(std::move(ours), model, package);
}

} // namespace lockstep::train
