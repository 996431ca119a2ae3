#include "measure/measurement.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace lockstep::measure {

namespace {

struct Spread {
    double median;
    double minimum;
    double maximum;
};

Spread spread_of(std::vector<double> const& values) {
    auto const [min, max] = std::minmax_element(values.begin(), values.end());
    return {median(values), *min, *max};
}

std::string milliseconds(double seconds) {
    return fixed(seconds * 1e3, 3) + " ms";
}

/// By the end of the key: seconds, bytes, or a plain number.
std::string figure_text(std::string const& key, double value) {
    if (key.ends_with("bytes_per_s")) {
        return bytes_text(static_cast<std::uint64_t>(value)) + "/s";
    }
    if (key.ends_with("_per_s")) {
        return fixed(value, 1);
    }
    if (key.ends_with("_bytes")) {
        return bytes_text(static_cast<std::uint64_t>(value));
    }
    return key.ends_with("_s") ? milliseconds(value) : concat(value);
}

void print_json(std::ostream& out, Measurement const& measurement, Spread const& spread) {
    nlohmann::ordered_json line{{"what", measurement.what},   {"variant", measurement.variant},
                                {"bytes", measurement.bytes}, {"ranks", measurement.ranks},
                                {"median_s", spread.median},  {"minimum_s", spread.minimum},
                                {"maximum_s", spread.maximum}};
    for (auto const& [key, value] : measurement.figures) {
        line[key] = value;
    }
    out << line.dump() << "\n";
}

} // namespace

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    auto const half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void print(std::ostream& out, Measurement const& measurement, bool json) {
    auto const spread = spread_of(measurement.seconds);
    if (json) {
        print_json(out, measurement, spread);
        return;
    }
    out << measurement.what << ", " << measurement.variant << ", "
        << amount_of(measurement.ranks, "rank") << ", " << bytes_text(measurement.bytes)
        << ": median " << milliseconds(spread.median) << " (" << milliseconds(spread.minimum)
        << " to " << milliseconds(spread.maximum) << ")\n";
    for (auto const& [key, value] : measurement.figures) {
        out << "    " << std::left << std::setw(20) << key << figure_text(key, value) << "\n";
    }
}

} // namespace lockstep::measure
