#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Whether a name fits a pattern, in which * stands for any characters: "features.*".
bool fits_pattern(std::string const& name, std::string const& pattern);

/// A list of patterns of names, separated by commas. A pattern after ! takes the names that fit it
/// away again; a list of such patterns alone stands for all other names. "none" stands for no name.
class NamePatterns {
  public:
    explicit NamePatterns(std::string const& text);

    bool has(std::string const& name) const;
    /// The first pattern that fits none of the names, without its !; empty: there is none.
    std::string unused(std::vector<std::string> const& names) const;

  private:
    std::vector<std::string> added_;
    std::vector<std::string> taken_away_;
};

/// "names such as features.conv1.weight, and parts features.* and output.*"
std::string names_text(std::vector<std::string> const& names);

/// "Did you mean X?", with the pattern that is nearest to one that fits none of these dotted names;
/// `otherwise` where none is near.
std::string suggested_pattern(std::string const& pattern, std::vector<std::string> const& names,
                              std::string otherwise);

} // namespace lockstep
