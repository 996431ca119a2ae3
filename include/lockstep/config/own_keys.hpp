#pragma once

#include "lockstep/config/deck.hpp"

#include <string>
#include <vector>

namespace lockstep::config {

struct Rule;

/// A key that belongs to a model or a task: its name, default and meaning.
struct OwnKey {
    std::string name;
    std::string default_value;
    std::string meaning;
};

/// The keys of a model or task, with defaults filled in; types are checked when a value is read.
class OwnValues {
  public:
    /// Throws  Error 64 for a key that is not in `known`, naming the nearest one that is
    OwnValues(std::string section, OwnKeys const& given, std::vector<OwnKey> const& known);

    /// The value of a key, within its limits, which are inclusive. Lists are as long as written,
    /// perhaps empty; booleans are true, yes, on, 1 and false, no, off, 0.
    ///
    /// Throws  Error 64 for a value of another form or outside its limits; std::out_of_range for a
    ///         key that was not in `known`
    std::int64_t integer(std::string const& key, std::int64_t minimum) const;
    double number(std::string const& key, double minimum, double maximum) const;
    bool boolean(std::string const& key) const;
    std::string text(std::string const& key) const;
    /// One of `choices`.
    std::string choice(std::string const& key, std::vector<std::string> const& choices) const;
    std::vector<std::int64_t> integers(std::string const& key, std::int64_t minimum) const;
    std::vector<double> numbers(std::string const& key, double minimum, double maximum) const;

  private:
    template <class Value>
    Value one(std::string const& key, Rule const& rule) const;
    template <class Value>
    std::vector<Value> list(std::string const& key, Rule const& rule) const;

    std::string section_;
    OwnKeys values_;
};

} // namespace lockstep::config
