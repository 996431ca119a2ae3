#pragma once

#include "lockstep/config/deck_source.hpp"
#include "search/constraint.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::search {

/// Where a trial lies: one number of [0, 1] per dimension, in the space's order. Dimensions that do
/// not apply have a number, too.
using Point = std::vector<double>;
/// Deck keys with their values, for the dimensions that apply.
using Values = std::map<std::string, std::string>;

/// A dimension applies where the key has one of these values.
struct Condition {
    std::string key;
    std::vector<std::string> values;
};

/// A key of the deck and what it may be: "optimizer.learning-rate = log-uniform(1e-4, 1e-1)".
struct Dimension {
    enum class Kind {
        real,    ///< uniform(a, b), log-uniform(a, b)
        integer, ///< integer(a, b), log-integer(a, b)
        ordered, ///< list(a, b, c): neighbours are similar
        choice   ///< choice(a, b, c)
    };
    std::string key;
    std::string origin; ///< "space.ini:3"
    Kind kind = Kind::real;
    bool logarithmic = false;
    double min = 0;
    double max = 0;
    std::vector<std::string> texts{}; ///< of list and choice
    std::vector<Condition> conditions{};

    /// How many values there are; 0: a continuum.
    std::int64_t levels() const;
    /// The value at a position from 0 to 1; real values have six digits.
    std::string text(double unit) const;
    /// The middle of the part of [0, 1] that gives a level.
    double unit_of_level(std::int64_t level) const;
};

/// The trials that a search may make: [space] of a SPACE file, and its constraints.
class Space {
  public:
    /// Reads the keys "space.KEY = ..." of `source`; a plain value is a choice of one.
    /// `constraints`: comparisons with semicolons between them, or empty; `origin` is where they
    /// stand.
    ///
    /// Throws  Error 64 naming file, line and key for what is not a dimension, or for a space
    ///         without keys
    Space(config::DeckSource const& source, std::string const& constraints,
          std::string const& origin);

    std::vector<Dimension> const& dimensions() const noexcept { return dimensions_; }
    /// The values at a point, for the dimensions that apply.
    Values values(Point const& point) const;
    /// Whether the constraints hold.
    bool allows(Values const& values) const;
    /// The first of the points drawn for these counters that the constraints allow.
    ///
    /// Throws  Error 64 when 10,000 of them are refused
    Point draw_point(std::uint64_t seed, std::uint64_t trial) const;

  private:
    void check_conditions() const;
    void check_constraints(std::string const& origin) const;

    std::vector<Dimension> dimensions_;
    std::vector<Constraint> constraints_;
};

} // namespace lockstep::search
