#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http.hpp"

namespace lockstep::serve {

/// Whether two texts are the same, in a time that depends only on their lengths.
bool is_same_secret(std::string_view a, std::string_view b) noexcept;

/// Decides whether a request may be answered. A page of another site, even one whose name was
/// pointed at this machine (DNS rebinding), gets nothing; nor does a client without the token.
class Gate {
  public:
    /// `token`: empty where only this user can open the socket.
    explicit Gate(std::string token);

    /// The response to a refused request, or to one that is let in now because its token was in the
    /// address; the token is kept in a cookie from then on. Nothing: the request passes.
    std::optional<Response> stopped(Request const& request) const;

  private:
    bool knows_token(Request const& request) const;

    std::string token_;
    std::string cookie_; ///< its name: several servers may run on a host
};

} // namespace lockstep::serve
