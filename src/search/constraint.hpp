#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::search {

/// A comparison of sums of products: "data.batch * optimizer.accumulate <= 4096".
class Constraint {
  public:
    /// Throws  Error 64 naming `origin` for a text that is not a comparison
    Constraint(std::string const& text, std::string const& origin);

    /// Whether the constraint holds; also true where one of its keys does not apply.
    bool holds(std::map<std::string, std::string> const& values) const;
    std::vector<std::string> const& keys() const noexcept { return keys_; }

  private:
    struct Factor {
        std::string key; ///< empty: the number
        double number = 0;
    };
    struct Term {
        double sign = 1;
        std::vector<Factor> factors;
    };
    using Sum = std::vector<Term>;

    Sum sum_of(std::string const& text, std::string const& origin);
    static double value(Sum const& sum, std::map<std::string, std::string> const& values);

    Sum left_;
    Sum right_;
    std::string comparison_;
    std::vector<std::string> keys_;
};

} // namespace lockstep::search
