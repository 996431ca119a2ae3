#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http.hpp"

namespace lockstep::serve {

/// Random bytes of the system in hexadecimal digits.
///
/// Throws  Error 69 where the system gives none
std::string random_token(std::size_t bytes);

/// Whether two texts are the same, in a time that depends on their lengths alone.
bool is_same_secret(std::string_view a, std::string_view b) noexcept;

/// Decides whether a request may be answered. A page of another site, also one whose name was
/// pointed at this machine (DNS rebinding), gets nothing; nor does who does not know the token.
class Gate {
  public:
    /// `token`: empty where the socket lets in this user alone.
    explicit Gate(std::string token);

    /// The response to a request that may not pass, or that is let in now: its token came in the
    /// address, and is kept in a cookie from here on. Nothing: it passes.
    std::optional<Response> stopped(Request const& request) const;

  private:
    bool knows_token(Request const& request) const;

    std::string token_;
    std::string cookie_; ///< its name: several servers may run on a host
};

} // namespace lockstep::serve
