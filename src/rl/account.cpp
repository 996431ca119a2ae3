#include "rl/account.hpp"

#include <algorithm>

namespace lockstep::rl {

std::int64_t Account::sell(std::size_t asset, std::int64_t wanted, Money price) {
    auto const count = std::min(wanted, shares_[asset]);
    auto const fee = fee_of(count * price);
    shares_[asset] -= count;
    cash_ += count * price - fee;
    fees_ += fee;
    return count;
}

std::int64_t Account::buy(std::size_t asset, std::int64_t wanted, Money price) {
    auto count = std::min(wanted, cash_ / price);
    while (count > 0 && count * price + fee_of(count * price) > cash_) {
        --count; // a fee of a thousandth takes a few turns at the most
    }
    auto const fee = fee_of(count * price);
    shares_[asset] += count;
    cash_ -= count * price + fee;
    fees_ += fee;
    return count;
}

Money Account::value(std::span<Money const> prices) const {
    Money value = cash_;
    for (std::size_t asset = 0; asset < shares_.size(); ++asset) {
        value += shares_[asset] * prices[asset];
    }
    return value;
}

void Account::restore(Money cash, std::vector<std::int64_t> shares) {
    cash_ = cash;
    shares_ = std::move(shares);
}

} // namespace lockstep::rl
