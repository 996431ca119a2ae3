#pragma once

#include <nlohmann/json_fwd.hpp>

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// One line of a file of JSON records, which may come from anywhere: values may be missing, null or
/// of another kind, and the line may be no record at all. Nothing here throws for what the line
/// holds.
class JsonLine {
  public:
    explicit JsonLine(std::string const& text);

    bool is_record() const noexcept { return json_ != nullptr; }

    /// NaN where the record has no such number.
    double number(std::string const& key) const;
    /// `otherwise` where the record has no such number, or one beyond 9e15.
    std::int64_t whole(std::string const& key, std::int64_t otherwise) const;
    /// The same for a type that holds less: also where it does not hold the number.
    template <std::signed_integral Small>
    Small whole_as(std::string const& key, Small otherwise) const {
        auto const found = whole(key, otherwise);
        return std::in_range<Small>(found) ? static_cast<Small>(found) : otherwise;
    }
    /// Empty where the record has no such text.
    std::string text(std::string const& key) const;
    bool flag(std::string const& key, bool otherwise) const;
    /// The entries of a list, empty for those that are not texts; none where there is no list.
    std::vector<std::string> texts(std::string const& key) const;
    std::map<std::string, double> numbers() const;
    /// The lists of a list, NaN for entries that are not numbers.
    std::vector<std::vector<double>> rows(std::string const& key) const;
    /// A record within this one; no record where there is none.
    JsonLine record(std::string const& key) const;
    /// The records of a list; entries of other kinds are left out.
    std::vector<JsonLine> records(std::string const& key) const;

  private:
    JsonLine() = default;
    JsonLine within(nlohmann::json const* found) const;
    nlohmann::json const* value(std::string const& key) const;

    std::shared_ptr<nlohmann::json const> json_; ///< null: no record
};

} // namespace lockstep
