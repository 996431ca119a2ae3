#include "batches/target_scale.hpp"

#include "base/text.hpp"

#include <cmath>
#include <utility>

namespace lockstep::train {

namespace {

constexpr double far = 100; ///< from 0 and from 1

std::string name_of(data::Dataset const& train, std::size_t column, std::size_t columns) {
    auto const& names = train.declared_classes();
    return columns == 1              ? "the targets"
           : names.size() == columns ? concat("target ", names[column])
                                     : concat("target ", column);
}

} // namespace

std::string scale_targets_text(config::Deck const& deck) {
    return deck.privacy.is_on()
               ? "Store targets that are scaled by values that anyone may know"
               : "Set data.normalise-targets = true, or in a federation, let all sites store "
                 "targets that are scaled by the same values";
}

std::string target_scale_remark(config::Deck const& deck, data::Dataset const& train,
                                TargetMoments const& moments) {
    auto const columns = moments.mean.size();
    for (std::size_t column = 0; column < columns; ++column) {
        auto const mean = moments.mean[column];
        auto const std = moments.std[column];
        if (std == 0 || std > far || std < 1 / far || std::abs(mean) > far) {
            return concat("warning: ", name_of(train, column, columns), " ",
                          columns == 1 ? "have" : "has", " a mean of ", significant(mean, 4),
                          " and a standard deviation of ", significant(std, 4),
                          " in the training set: training begins far from such values, and losses "
                          "and gradients have another scale than learning rates are made for. ",
                          scale_targets_text(deck));
        }
    }
    return {};
}

} // namespace lockstep::train
