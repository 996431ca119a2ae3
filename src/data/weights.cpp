#include "data/weights.hpp"

#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::data {

std::vector<double> read_weights(h5::File const& file, std::string const& name,
                                 std::int64_t samples) {
    auto const info = readable_dataset(file, name, samples == 1 ? Entries::one : Entries::samples);
    auto const count = h5::elements(info.shape);
    if (static_cast<std::int64_t>(count) != samples) {
        throw Error(
            ExitCode::data,
            {concat("dataset ", name, " of ", file.path().string()),
             concat("it holds ", amount_of(count, "weight"), " for ", amount_of(samples, "sample")),
             "Store one number per sample, or leave data.sample-weights out"});
    }
    std::vector<double> weights(count);
    file.read(name, h5::Type::f64, weights);
    auto const wrong = std::find_if(weights.begin(), weights.end(), [](double weight) {
        return !std::isfinite(weight) || weight < 0;
    });
    if (wrong != weights.end()) {
        throw Error(ExitCode::data,
                    {concat("weight ", *wrong, " of sample ", wrong - weights.begin(), " in ",
                            file.path().string()),
                     concat("weights in dataset ", name, " must be finite and at least 0"),
                     "Correct the weights, or leave data.sample-weights out"});
    }
    return weights;
}

void require_some_weight(std::vector<double> const& weights, std::string const& name,
                         std::filesystem::path const& path) {
    if (std::none_of(weights.begin(), weights.end(), [](double weight) { return weight > 0; })) {
        throw Error(ExitCode::data, {path.string(),
                                     concat("all ", weights.size(), " weights in dataset ", name,
                                            " are 0, so no sample would be drawn"),
                                     "Correct the weights, or leave data.sample-weights out"});
    }
}

} // namespace lockstep::data
