#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::serve {

/// The head of a request: this server answers only GET and HEAD, which have no body.
struct Request {
    std::string method;
    std::string path;                           ///< decoded, without the query: "/api/runs"
    std::map<std::string, std::string> query;   ///< decoded; of several the last
    std::map<std::string, std::string> headers; ///< names in small letters
    bool keep_alive = true;

    std::string const& header(std::string const& name) const; ///< empty where there is none
    std::string const& asked(std::string const& name) const;  ///< of the query; empty: not asked
};

struct Response {
    int status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body{};
    std::vector<std::string> headers{}; ///< besides those that every response has
    bool stream = false;                ///< the body has no end: events follow
};

/// An error response with its reason.
Response refusal(int status, std::string text);

constexpr std::size_t max_head_bytes = 16 << 10;

/// How many bytes of `text` are the head of a request, its empty line included; 0 where it is not
/// complete yet.
std::size_t head_bytes(std::string_view text);

/// The request whose head is `head`; nothing where this server cannot understand it. Strict: a head
/// that two programs could read differently is refused.
std::optional<Request> parsed_request(std::string_view head);

/// The text of a response as it is sent. Every response forbids the page to load anything from
/// elsewhere, to be framed, to be kept in a cache and to be read by other origins.
std::string wire_text(Response const& response, bool keep_alive, bool with_body);

/// A server-sent event.
std::string event_text(std::string_view name, std::string_view json);

} // namespace lockstep::serve
