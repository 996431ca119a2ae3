#include "report/chart.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::report {

Extent extent(std::vector<Curve> const& curves, double Point::*value) {
    Extent extent;
    for (auto const& curve : curves) {
        for (auto const& point : curve.points) {
            extent.min = std::min(extent.min, point.*value);
            extent.max = std::max(extent.max, point.*value);
        }
    }
    return extent;
}

bool Chart::empty() const {
    return bands.x.empty() && matrix.counts.empty() && bars.bars.empty() &&
           std::all_of(curves.begin(), curves.end(),
                       [](Curve const& curve) { return curve.points.empty(); });
}

bool wants_logarithm(std::vector<Curve> const& curves) {
    auto const y = extent(curves, &Point::y);
    return is_logarithmic(y.min, y.max);
}

std::string shortened(std::string const& text, std::size_t max) {
    // Of a letter of several bytes only the first is counted, and none is cut in two.
    std::vector<std::size_t> letters;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) {
            letters.push_back(at);
        }
    }
    if (letters.size() <= max || max < 3) {
        return text;
    }
    auto const front = (max - 1) * 2 / 3;
    auto const back = max - 1 - front;
    return concat(text.substr(0, letters[front]), "…", text.substr(letters[letters.size() - back]));
}

} // namespace lockstep::report
