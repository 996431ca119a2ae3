#include "gate.hpp"

#include "base/number.hpp"
#include "base/random_token.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::serve {

namespace {

/// Names that no foreign site can have, alone or with any port: ssh -L forwards it.
bool is_this_machine(std::string_view host) {
    return std::ranges::any_of(
        std::array<std::string_view, 3>{"localhost", "127.0.0.1", "[::1]"}, [&](auto name) {
            return host == name || (host.starts_with(concat(name, ":")) &&
                                    number_of<std::uint16_t>(host.substr(name.size() + 1)));
        });
}

bool is_of_this_page(Request const& request) {
    auto const& site = request.header("sec-fetch-site");
    auto const& origin = request.header("origin");
    bool const same = site.empty() || site == "same-origin" || site == "none";
    return same && (origin.empty() || origin == "http://" + request.header("host"));
}

std::string cookie_value(std::string_view cookies, std::string const& name) {
    for (auto const& cookie : split(cookies, ';')) {
        if (cookie.starts_with(name + "=")) {
            return cookie.substr(name.size() + 1);
        }
    }
    return {};
}

} // namespace

bool is_same_secret(std::string_view a, std::string_view b) noexcept {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    }
    return difference == 0;
}

Gate::Gate(std::string token)
    : token_(std::move(token)), cookie_(token_.empty() ? "" : "lockstep-" + random_token(4)) {}

bool Gate::knows_token(Request const& request) const {
    if (token_.empty()) {
        return true;
    }
    constexpr std::string_view scheme = "Bearer ";
    std::string_view bearer = request.header("authorization");
    bearer = bearer.starts_with(scheme) ? bearer.substr(scheme.size()) : std::string_view{};
    return is_same_secret(cookie_value(request.header("cookie"), cookie_), token_) ||
           is_same_secret(bearer, token_);
}

std::optional<Response> Gate::stopped(Request const& request) const {
    if (!is_this_machine(request.header("host"))) {
        return refusal(403,
                       "This server answers only to the names localhost, 127.0.0.1 and [::1].");
    }
    if (!is_of_this_page(request)) {
        return refusal(403, "This server answers only requests from its own page: type its address "
                            "into the browser.");
    }
    if (request.method != "GET" && request.method != "HEAD") {
        return Response{.status = 405,
                        .body = "This server is read-only: use GET or HEAD.\n",
                        .headers = {"Allow: GET, HEAD"}};
    }
    auto const& told = request.asked("token");
    if (!token_.empty() && !told.empty() && is_same_secret(told, token_)) {
        return Response{.status = 303,
                        .body = "\n",
                        .headers = {"Location: /", concat("Set-Cookie: ", cookie_, "=", token_,
                                                          "; Path=/; HttpOnly; SameSite=Strict")}};
    }
    if (!knows_token(request)) {
        return refusal(401, "Open the address that lockstep serve printed, with its token.");
    }
    return std::nullopt;
}

} // namespace lockstep::serve
