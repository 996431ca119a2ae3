#include "natural_order.hpp"

#include <algorithm>

namespace lockstep::import {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Takes the number that a text begins with off it, without zeros before it.
std::string_view take_number(std::string_view& text) {
    auto const end = std::find_if_not(text.begin(), text.end(), is_digit);
    std::string_view number = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(number.size());
    number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
    return number;
}

/// A folder's files come together.
int rank(char c) {
    return c == '/' ? 0 : static_cast<unsigned char>(c) + 1;
}

} // namespace

bool natural_less(std::string_view a, std::string_view b) {
    auto left = a;
    auto right = b;
    while (!left.empty() && !right.empty()) {
        if (is_digit(left.front()) && is_digit(right.front())) {
            auto const first = take_number(left);
            auto const second = take_number(right);
            if (first.size() != second.size()) {
                return first.size() < second.size();
            }
            if (first != second) {
                return first < second;
            }
        } else if (left.front() != right.front()) {
            return rank(left.front()) < rank(right.front());
        } else {
            left.remove_prefix(1);
            right.remove_prefix(1);
        }
    }
    return left.empty() != right.empty() ? left.empty() : a < b;
}

} // namespace lockstep::import
