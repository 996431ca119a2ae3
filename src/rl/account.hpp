#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::rl {

/// Money in hundredths of a cent, so that sums are exact.
using Money = std::int64_t;

constexpr Money money_per_unit = 10000; ///< of the currency

/// Cash and whole shares, bought and sold for a fee: a share of what is traded, rounded up.
class Account {
  public:
    /// `fee`: millionths of what is traded.
    Account(Money cash, std::size_t assets, std::int64_t fee) : cash_(cash), fee_(fee) {
        shares_.resize(assets, 0);
    }

    /// Sells as many of `wanted` shares as the account has. Returns how many.
    std::int64_t sell(std::size_t asset, std::int64_t wanted, Money price);
    /// Buys as many of `wanted` shares as the cash pays for, with the fee. Returns how many.
    std::int64_t buy(std::size_t asset, std::int64_t wanted, Money price);

    Money cash() const { return cash_; }
    std::vector<std::int64_t> const& shares() const { return shares_; }
    Money fees() const { return fees_; } ///< paid so far
    /// Cash, and what the shares are worth.
    Money value(std::span<Money const> prices) const;

    /// Puts back what an account held.
    void restore(Money cash, std::vector<std::int64_t> shares);

  private:
    Money fee_of(Money traded) const { return (traded * fee_ + 999999) / 1000000; }

    Money cash_;
    std::int64_t fee_;
    std::vector<std::int64_t> shares_;
    Money fees_ = 0;
};

} // namespace lockstep::rl
