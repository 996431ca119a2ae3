#include "lockstep/base/error.hpp"
#include "text/pattern.hpp"

namespace lockstep::text {

struct Pattern::Compiled {};

Pattern::Pattern(std::string const& /*expression*/) {
    throw Error(ExitCode::unavailable,
                {"texts cannot be split into tokens", "this program was built without PCRE2",
                 "Install PCRE2 (Debian: libpcre2-dev) and build again"});
}

Pattern::Pattern(Pattern&& other) noexcept = default;
Pattern& Pattern::operator=(Pattern&& other) noexcept = default;
Pattern::~Pattern() = default;

void Pattern::cut(std::string_view /*text*/,
                  std::function<void(std::string_view)> const& /*visit*/) const {}

} // namespace lockstep::text
