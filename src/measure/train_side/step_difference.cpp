#include "step_difference.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>

#include "step_dump.hpp"

namespace lockstep::measure {

namespace {

using Json = nlohmann::json;

std::string exact(double value) {
    return significant(value, 17);
}

std::string both(double a, double b) {
    return concat(exact(a), " and ", exact(b));
}

std::string batch_name(Json const& batch) {
    return concat("replica ", batch.at("replica").get<std::int64_t>(), ", micro-batch ",
                  batch.at("micro_batch").get<std::int64_t>());
}

std::string sample_name(Json const& sample) {
    auto const source = sample.at("source").get<std::string>();
    return concat("sample ", sample.at("sample").get<std::int64_t>(), " (",
                  sample.at("file").get<std::string>(), ", ",
                  sample.at("number_in_file").get<std::int64_t>(), source.empty() ? "" : ": ",
                  source, ")");
}

/// Which of the samples of a batch; files may lie elsewhere.
std::string samples_line(Json const& a, Json const& b) {
    auto const& one = a.at("samples");
    auto const& other = b.at("samples");
    if (one.size() != other.size()) {
        return concat(batch_name(a), ": ", amount_of(std::ssize(one), "sample"), " and ",
                      std::ssize(other));
    }
    for (std::size_t at = 0; at < one.size(); ++at) {
        if (one[at].at("sample") != other[at].at("sample")) {
            return concat(batch_name(a), ", place ", at, ": ", sample_name(one[at]), " and ",
                          sample_name(other[at]));
        }
    }
    return "";
}

/// An element of the first four bytes or eight that differ, and both values.
/// `begin`: the byte from which elements are counted.
std::string element_text(Json const& a, Json const& b, std::size_t begin, std::size_t byte) {
    bool const whole = a.at("whole");
    auto const size = whole ? sizeof(std::int64_t) : sizeof(float);
    auto const element = byte / size;
    auto const value = [&](Json const& field) {
        auto const* const at = field.at("bytes").get_binary().data() + element * size;
        std::int64_t number = 0;
        float real = 0;
        std::memcpy(whole ? static_cast<void*>(&number) : &real, at, size);
        return whole ? std::to_string(number) : significant(real, 9);
    };
    return concat("element ", element - begin / size, ": ", value(a), " and ", value(b));
}

/// The first input or target of a batch whose values differ.
std::string values_line(Json const& a, Json const& b, char const* what) {
    auto const& one = a.at(what);
    auto const& other = b.at(what);
    for (std::size_t at = 0; at < std::min(one.size(), other.size()); ++at) {
        auto const& x = one[at].at("bytes").get_binary();
        auto const& y = other[at].at("bytes").get_binary();
        if (one[at].at("shape") != other[at].at("shape") || x.size() != y.size()) {
            return concat(batch_name(a), ": ", what, " ", one[at].at("name").get<std::string>(),
                          " of shape ", one[at].at("shape").dump(), " and ",
                          other[at].at("shape").dump());
        }
        auto const differs = std::mismatch(x.begin(), x.end(), y.begin()).first;
        if (differs == x.end()) {
            continue;
        }
        auto const byte = static_cast<std::size_t>(differs - x.begin());
        std::string of;
        std::size_t begin = 0;
        auto const& samples = a.at("samples");
        if (!one[at].at("ragged").get<bool>() && !samples.empty() &&
            x.size() % samples.size() == 0) {
            auto const size = x.size() / samples.size();
            auto const place = byte / size;
            begin = place * size;
            of = concat(sample_name(samples[place]), " and ",
                        sample_name(b.at("samples").at(place)), ", ");
        }
        return concat(batch_name(a), ": ", of, "dataset ", one[at].at("name").get<std::string>(),
                      ", ", element_text(one[at], other[at], begin, byte));
    }
    return "";
}

std::string operator_line(Json const& a, Json const& b) {
    for (std::size_t at = 0; at < std::min(a.size(), b.size()); ++at) {
        auto const& x = a[at];
        auto const& y = b[at];
        if (x == y) {
            continue;
        }
        auto const backward = x.at("backward").get<std::string>();
        auto const parameter = x.at("parameter").get<std::string>();
        auto const where = concat(
            batch_name(x), ": ", x.at("name").get<std::string>(),
            backward.empty() ? " in forward" : concat(" in backward (", backward, ")"),
            parameter.empty() ? "" : concat(", parameter ", parameter, " being the last one read"));
        if (x.at("name") != y.at("name")) {
            return concat(where, ", where the other run has ", y.at("name").get<std::string>());
        }
        if (x.at("values") != y.at("values")) {
            return concat(where, ", which gives ", x.at("values").get<std::int64_t>(),
                          " values, and ", y.at("values").get<std::int64_t>(), " in the other run");
        }
        return concat(where, ", norms of what it gives ",
                      both(x.at("norm").get<double>(), y.at("norm").get<double>()));
    }
    return a.size() == b.size()
               ? ""
               : concat(a.size(), " and ", b.size(), " operators, the same as far as both go");
}

std::string loss_line(Json const& a, Json const& b) {
    for (std::size_t at = 0; at < std::min(a.size(), b.size()); ++at) {
        for (auto const* const what : {"loss_sum", "weight"}) {
            if (a[at].at(what) != b[at].at(what)) {
                return concat("replica ", a[at].at("replica").get<std::int64_t>(), ": ", what, " ",
                              both(a[at].at(what).get<double>(), b[at].at(what).get<double>()));
            }
        }
    }
    return "";
}

std::string gradient_line(std::vector<train::Histogram> const& a,
                          std::vector<train::Histogram> const& b) {
    for (std::size_t at = 0; at < std::min(a.size(), b.size()); ++at) {
        bool const same = a[at].sum == b[at].sum && a[at].sum_of_squares == b[at].sum_of_squares &&
                          a[at].minimum == b[at].minimum && a[at].maximum == b[at].maximum;
        if (!same) {
            return concat(a[at].name, ", norms ",
                          both(std::sqrt(a[at].sum_of_squares), std::sqrt(b[at].sum_of_squares)));
        }
    }
    return "";
}

/// The first line that a pair of batches gives.
template <class LineOf>
std::string of_batches(Json const& a, Json const& b, LineOf const& line_of) {
    for (std::size_t at = 0; at < std::min(a.size(), b.size()); ++at) {
        if (auto line = line_of(a[at], b[at]); !line.empty()) {
            return line;
        }
    }
    return a.size() == b.size() ? "" : concat(a.size(), " and ", b.size(), " batches");
}

} // namespace

std::vector<std::string> differences(LookedAt const& a, LookedAt const& b) {
    auto const one = joined_ranks(a.packed);
    auto const other = joined_ranks(b.packed);
    auto const values = [](char const* what) {
        return [what](Json const& x, Json const& y) { return values_line(x, y, what); };
    };
    auto const& rate = std::pair(a.seen.last.learning_rate, b.seen.last.learning_rate);
    std::vector<std::pair<std::string, std::string>> const found{
        {"learning rate", rate.first == rate.second ? "" : both(rate.first, rate.second)},
        {"samples", of_batches(one["batches"], other["batches"], samples_line)},
        {"inputs", of_batches(one["batches"], other["batches"], values("inputs"))},
        {"targets", of_batches(one["batches"], other["batches"], values("targets"))},
        {"operators", operator_line(one["operators"], other["operators"])},
        {"losses", loss_line(one["replicas"], other["replicas"])},
        {"gradients", gradient_line(a.seen.gradients, b.seen.gradients)}};
    std::vector<std::string> lines;
    for (auto const& [what, line] : found) {
        if (!line.empty()) {
            lines.push_back(concat("first of the ", what, ": ", line));
        }
    }
    if (lines.empty()) {
        lines.emplace_back("samples, operators, losses and gradients are the same: only the update "
                           "of the weights differs");
    }
    return lines;
}

} // namespace lockstep::measure
