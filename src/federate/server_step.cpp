#include "federate/server_step.hpp"

#include <cmath>

namespace lockstep::federate {

void apply_change(ModelVector& model, std::span<double const> change, Charter const& charter) {
    constexpr double beta1 = 0.9;
    constexpr double beta2 = 0.99;
    bool const adam = charter.strategy == "fedadam";
    if (adam && model.first_moment.empty()) {
        model.first_moment.assign(model.values.size(), 0);
        auto const smallest = charter.server_epsilon * charter.server_epsilon;
        model.second_moment.assign(model.values.size(), smallest);
    }
    auto const is_buffer = model.buffers();
    for (std::size_t i = 0; i < model.values.size(); ++i) {
        double step = change[i];
        if (is_buffer[i]) { // a variance could become negative
            model.values[i] += charter.is_private() ? 0.0F : static_cast<float>(step);
            continue;
        }
        if (adam) {
            auto& first = model.first_moment[i];
            auto& second = model.second_moment[i];
            first = beta1 * first + (1 - beta1) * step;
            second = beta2 * second + (1 - beta2) * step * step;
            step = first / (std::sqrt(second) + charter.server_epsilon);
        }
        model.values[i] = static_cast<float>(model.values[i] + charter.server_rate * step);
    }
}

} // namespace lockstep::federate
