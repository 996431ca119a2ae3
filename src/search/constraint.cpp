#include "search/constraint.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>

namespace lockstep::search {

namespace {

[[noreturn]] void refuse(std::string const& text, std::string const& origin,
                         std::string const& why) {
    throw Error(ExitCode::usage,
                {concat("\"", text, "\" in search.constraints (", origin, ")"), why,
                 "Write a comparison such as data.batch * run.replicas <= 4096, and separate "
                 "several comparisons with semicolons"});
}

} // namespace

Constraint::Constraint(std::string const& text, std::string const& origin) {
    constexpr std::array<char const*, 5> signs{"<=", ">=", "==", "<", ">"};
    for (auto const* const sign : signs) {
        if (auto const at = text.find(sign); at != std::string::npos) {
            comparison_ = sign;
            left_ = sum_of(text.substr(0, at), origin);
            right_ = sum_of(text.substr(at + comparison_.size()), origin);
            return;
        }
    }
    refuse(text, origin, "it has none of <=, >=, ==, < and >");
}

Constraint::Sum Constraint::sum_of(std::string const& text, std::string const& origin) {
    Sum sum;
    // Keys have - in them: a minus stands between blanks.
    auto const terms = split(text, '+');
    if (terms.empty()) {
        refuse(text, origin, "one of its sides is empty");
    }
    for (auto const& added : terms) {
        std::size_t from = 0;
        double sign = 1;
        while (true) {
            auto const minus = added.find(" - ", from);
            Term term{sign, {}};
            for (auto const& factor : split(added.substr(from, minus - from), '*')) {
                auto const number = number_of<double>(factor);
                if (!number && factor.find('.') == std::string::npos) {
                    refuse(text, origin,
                           concat("\"", factor, "\" is neither a number nor a key of [space]"));
                }
                term.factors.push_back({number ? "" : factor, number.value_or(0)});
                if (!number) {
                    keys_.push_back(factor);
                }
            }
            if (term.factors.empty()) {
                refuse(text, origin, "one of its terms is empty");
            }
            sum.push_back(std::move(term));
            if (minus == std::string::npos) {
                break;
            }
            from = minus + 3;
            sign = -1;
        }
    }
    return sum;
}

double Constraint::value(Sum const& sum, std::map<std::string, std::string> const& values) {
    double total = 0;
    for (auto const& term : sum) {
        double product = term.sign;
        for (auto const& factor : term.factors) {
            product *= factor.key.empty() ? factor.number
                                          : number_of<double>(values.at(factor.key)).value_or(0);
        }
        total += product;
    }
    return total;
}

bool Constraint::holds(std::map<std::string, std::string> const& values) const {
    if (!std::ranges::all_of(keys_, [&](auto const& key) { return values.contains(key); })) {
        return true;
    }
    auto const left = value(left_, values);
    auto const right = value(right_, values);
    return comparison_ == "<="   ? left <= right
           : comparison_ == ">=" ? left >= right
           : comparison_ == "==" ? left == right
           : comparison_ == "<"  ? left < right
                                 : left > right;
}

} // namespace lockstep::search
