#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::text {

/// A regular expression over UTF-8, as PCRE2 reads it, with Unicode's classes of characters.
class Pattern {
  public:
    /// Throws  Error 65 for an expression that cannot be read, 69 in a program that was built
    ///         without PCRE2
    explicit Pattern(std::string const& expression);
    Pattern(Pattern&& other) noexcept;
    Pattern& operator=(Pattern&& other) noexcept;
    ~Pattern();

    /// Calls `visit` with the parts that a text is cut into: what matches, and what lies between.
    ///
    /// Throws  Error 65 where matching exceeds its limit of steps or memory
    void cut(std::string_view text, std::function<void(std::string_view)> const& visit) const;

  private:
    struct Compiled;
    std::unique_ptr<Compiled> compiled_;
};

} // namespace lockstep::text
