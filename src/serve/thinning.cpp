#include "thinning.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

namespace lockstep::serve {

namespace {

struct Rows {
    std::size_t first = 0;
    std::size_t last = 0; ///< not included
};

double place(Series const& series, Axis axis, std::size_t row) {
    return axis == Axis::step ? static_cast<double>(series.steps()[row]) : series.times()[row];
}

/// The rows in the range, and one more at either side, to which lines are drawn.
Rows rows_within(Series const& series, Extract const& extract) {
    auto const first_from = [&](double x, bool after) {
        std::size_t low = 0;
        std::size_t high = series.rows();
        while (low < high) {
            auto const middle = low + (high - low) / 2;
            auto const here = place(series, extract.axis, middle);
            if (after ? here <= x : here < x) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    };
    auto const first = first_from(extract.from, false);
    auto const last = std::max(first_from(extract.to, true), first);
    return {first > 0 ? first - 1 : 0, std::min(last + 1, series.rows())};
}

/// Where each bucket's rows begin, and where the last one's end; empty buckets are left out.
std::vector<std::size_t> borders(Series const& series, Extract const& extract, Rows rows) {
    std::vector<std::size_t> result{rows.first};
    double const start = place(series, extract.axis, rows.first);
    double const width =
        (place(series, extract.axis, rows.last - 1) - start) / static_cast<double>(extract.buckets);
    double end = start + width;
    for (auto row = rows.first; row < rows.last; ++row) {
        double const x = place(series, extract.axis, row);
        if (x > end) {
            if (row > result.back()) {
                result.push_back(row);
            }
            end = start + width * std::max(1.0, std::ceil((x - start) / width));
        }
    }
    result.push_back(rows.last);
    return result;
}

void take_bucket(Summary const& bucket, Curve& curve) {
    bool const none = bucket.count == 0;
    curve.mean.push_back(none ? not_told : static_cast<float>(bucket.sum / bucket.count));
    curve.min.push_back(none ? not_told : bucket.min);
    curve.max.push_back(none ? not_told : bucket.max);
}

template <class Number>
std::string list_text(std::vector<Number> const& values) {
    std::string text = "[";
    char digits[40];
    for (auto const value : values) {
        if (text.size() > 1) {
            text += ',';
        }
        if (std::isfinite(value)) {
            auto const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
            text.append(digits, end);
        } else {
            text += "null";
        }
    }
    return text + "]";
}

} // namespace

Thinned thinned(Series const& series, Extract const& extract) {
    Thinned result;
    if (series.rows() == 0 || extract.buckets == 0 || !(extract.from <= extract.to)) {
        return result;
    }
    auto const rows = rows_within(series, extract);
    result.whole = rows.last - rows.first <= 2 * extract.buckets;
    auto const limits = result.whole ? std::vector<std::size_t>{} : borders(series, extract, rows);
    if (result.whole) {
        for (auto row = rows.first; row < rows.last; ++row) {
            result.x.push_back(place(series, extract.axis, row));
        }
    }
    for (std::size_t i = 0; i + 1 < limits.size(); ++i) {
        result.x.push_back((place(series, extract.axis, limits[i]) +
                            place(series, extract.axis, limits[i + 1] - 1)) /
                           2);
    }
    for (auto const& name : extract.columns) {
        auto const* const column = series.column(name);
        if (column == nullptr) {
            continue;
        }
        Curve curve{.name = name, .mean = {}};
        if (result.whole) {
            auto const part = std::span(column->values).subspan(rows.first, rows.last - rows.first);
            curve.mean.assign(part.begin(), part.end());
        }
        for (std::size_t i = 0; i + 1 < limits.size(); ++i) {
            take_bucket(Series::summary(*column, limits[i], limits[i + 1]), curve);
        }
        result.curves.push_back(std::move(curve));
    }
    return result;
}

std::string json_list(std::vector<double> const& values) {
    return list_text(values);
}

std::string json_list(std::vector<float> const& values) {
    return list_text(values);
}

std::string json_text(Thinned const& thinned) {
    auto text = concat("{\"whole\":", thinned.whole ? "true" : "false",
                       ",\"x\":", json_list(thinned.x), ",\"curves\":{");
    for (auto const& curve : thinned.curves) {
        using Json = nlohmann::json;
        text += concat(text.back() == '{' ? "" : ",",
                       Json(curve.name).dump(-1, ' ', false, Json::error_handler_t::replace),
                       ":{\"mean\":", json_list(curve.mean));
        if (!thinned.whole) {
            text += concat(",\"min\":", json_list(curve.min), ",\"max\":", json_list(curve.max));
        }
        text += "}";
    }
    return text + "}}";
}

} // namespace lockstep::serve
