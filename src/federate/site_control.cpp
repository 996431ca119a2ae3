#include "federate/site_control.hpp"

#include "base/file.hpp"

#include "federate/roster.hpp"
#include "federate/scaffold.hpp"

namespace lockstep::federate {

std::filesystem::path SiteControl::file(std::int64_t round) const {
    return local_ / round_name(round) / "control.h5";
}

/// That of the last round in which this site counted; at first 0. The coordinator knows no other.
std::vector<float> SiteControl::before(std::int64_t round) const {
    for (auto earlier = round - 1; earlier > 0; --earlier) {
        auto const result = federation_.read_of_coordinator(earlier, phase::result);
        if (contains(lines_in(result.text("counted")), site_)) {
            return ModelVector::read(file(earlier)).values;
        }
    }
    return std::vector<float>(federation_.first_model(round).values.size(), 0);
}

ModelVector SiteControl::correction(std::int64_t round) const {
    auto const model = federation_.first_model(round);
    auto correction = correction_of(model, model.control, before(round));
    correction.control.clear();
    return correction;
}

EncodedChange SiteControl::keep_next(std::int64_t round, ModelVector const& trained, double rates,
                                     ChangeForm const& form) const {
    auto const first = federation_.first_model(round);
    auto own = first;
    own.values = before(round);
    auto next = first;
    next.values = next_control(first, trained, own.values, rates);
    auto const change = encoded_change(own, next, form);
    next.control.clear();
    make_directories(file(round).parent_path());
    next.write(file(round), round);
    return change;
}

} // namespace lockstep::federate
