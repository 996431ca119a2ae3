#include "first_not_finite.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep::measure {

namespace {

/// Every tensor of real numbers in a value.
std::vector<torch::Tensor> reals_of(c10::IValue const& value) {
    std::vector<torch::Tensor> all;
    if (value.isTensor()) {
        all.push_back(value.toTensor());
    } else if (value.isTensorList()) {
        for (torch::Tensor const& tensor : value.toTensorList()) {
            all.push_back(tensor);
        }
    }
    std::erase_if(all, [](torch::Tensor const& tensor) {
        return !tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0 ||
               tensor.layout() != torch::kStrided;
    });
    return all;
}

bool is_finite(torch::Tensor const& tensor) {
    return torch::isfinite(tensor).all().item<bool>();
}

bool is_finite(c10::IValue const& value) {
    if (value.isDouble()) {
        return std::isfinite(value.toDouble());
    }
    return std::ranges::all_of(reals_of(value),
                               [](torch::Tensor const& tensor) { return is_finite(tensor); });
}

bool has_nan(c10::IValue const& value) {
    if (value.isDouble()) {
        return std::isnan(value.toDouble());
    }
    return std::ranges::any_of(reals_of(value), [](torch::Tensor const& tensor) {
        return torch::isnan(tensor).any().item<bool>();
    });
}

std::string text_of(double value) {
    return std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity";
}

} // namespace

void FirstNotFinite::heard(OperatorSeen const& seen) {
    if (found_) {
        return;
    }
    torch::Tensor bad;
    for (auto const& output : seen.outputs) {
        for (auto const& tensor : reals_of(output)) {
            if (!bad.defined() && !is_finite(tensor)) {
                bad = tensor;
            }
        }
    }
    if (!bad.defined()) {
        return;
    }
    // What was overwritten was finite before, or it would have been found.
    bool began_finite = true;
    bool had_nan = false;
    for (std::size_t at = 0; at < seen.inputs.size(); ++at) {
        if (!seen.written[at]) {
            began_finite = began_finite && is_finite(seen.inputs[at]);
            had_nan = had_nan || has_nan(seen.inputs[at]);
        }
    }
    bool const is_nan = torch::isnan(bad).any().item<bool>();
    if (!began_finite && (!is_nan || had_nan)) {
        return;
    }
    auto const wrong = is_nan ? torch::isnan(bad) : torch::isfinite(bad).logical_not();
    auto const place = wrong.nonzero()[0].to(torch::kInt64).contiguous();
    std::vector<std::int64_t> const at(place.const_data_ptr<std::int64_t>(),
                                       place.const_data_ptr<std::int64_t>() + place.numel());
    auto const value = bad.masked_select(wrong)[0].item<double>();
    found_ = NotFinite{.name = seen.name,
                       .backward = seen.backward,
                       .parameter = seen.parameter,
                       .value = text_of(value),
                       .shape = bad.sizes().vec(),
                       .place = at,
                       .batch = batch_};
}

} // namespace lockstep::measure
