#include "federate/site_control.hpp"

#include "base/own_directory.hpp"
#include "federate/roster.hpp"
#include "federate/scaffold.hpp"

namespace lockstep::federate {

std::filesystem::path SiteControl::file(std::int64_t round) const {
    return local_ / round_name(round) / "control.h5";
}

/// The last round before this one in which the site counted; 0: none.
std::int64_t SiteControl::last_counted(std::int64_t round) const {
    auto earlier = round - 1;
    while (earlier > 0) {
        auto const result = federation_.read_of_coordinator(earlier, phase::result);
        if (contains(lines_in(result.text("counted")), site_)) {
            break;
        }
        --earlier;
    }
    return earlier;
}

/// Reads the control variate of round `last`; zeros for 0. The coordinator knows no other.
std::vector<float> SiteControl::kept_in(std::int64_t last, std::size_t values) const {
    return last > 0 ? ModelVector::read(file(last)).values : std::vector<float>(values, 0);
}

ModelVector SiteControl::correction(std::int64_t round) const {
    auto const model = federation_.first_model(round);
    auto const own = kept_in(last_counted(round), model.values.size());
    auto correction = correction_of(model, model.control, own);
    correction.control.clear();
    return correction;
}

EncodedChange SiteControl::keep_next(std::int64_t round, ModelVector const& trained, double rates,
                                     ChangeForm const& form) const {
    auto const first = federation_.first_model(round);
    auto own = first;
    auto const last = last_counted(round);
    own.values = kept_in(last, first.values.size());
    auto next = first;
    next.values = next_control(first, trained, own.values, rates);
    if (last > 0) {
        // In the mean of all sites it has the weight of the samples that it was learnt from.
        auto const samples = [&](std::int64_t at) {
            return static_cast<double>(federation_.roster(at).part({site_}).front().samples);
        };
        auto const share = samples(last) / samples(round);
        for (auto& value : own.values) {
            value = static_cast<float>(value * share);
        }
    }
    auto const change = encoded_change(own, next, form);
    next.control.clear();
    make_own_directory(file(round).parent_path());
    next.write(file(round), round);
    return change;
}

} // namespace lockstep::federate
