#include "http.hpp"

#include "base/letters.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace lockstep::serve {

namespace {

int hex_digit(char letter) {
    if (letter >= '0' && letter <= '9') {
        return letter - '0';
    }
    auto const low = static_cast<char>(letter | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/// Text with %xx decoded; nothing where it is malformed, or holds a control character.
std::optional<std::string> decoded_part(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char letter = text[i];
        if (letter == '%') {
            int const high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
            int const low = high >= 0 ? hex_digit(text[i + 2]) : -1;
            if (low < 0) {
                return std::nullopt;
            }
            letter = static_cast<char>(high * 16 + low);
            i += 2;
        }
        auto const code = static_cast<unsigned char>(letter);
        if (code < 0x20 || code == 0x7F) {
            return std::nullopt;
        }
        result += letter;
    }
    return result;
}

bool is_token(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char letter) {
        return is_alphanumeric(letter) || letter == '-' || letter == '_';
    });
}

bool take_target(std::string_view target, Request& request) {
    if (target.empty() || target.front() != '/') {
        return false; // neither a proxy nor CONNECT
    }
    auto const mark = target.find('?');
    auto const path = decoded_part(target.substr(0, mark));
    if (!path) {
        return false;
    }
    request.path = *path;
    auto rest = mark == std::string_view::npos ? std::string_view{} : target.substr(mark + 1);
    while (!rest.empty()) {
        auto const pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
        auto const equals = pair.find('=');
        auto const name = decoded_part(pair.substr(0, equals));
        auto const value = equals == std::string_view::npos ? std::optional<std::string>("")
                                                            : decoded_part(pair.substr(equals + 1));
        if (!name || !value) {
            return false;
        }
        request.query[*name] = *value;
    }
    return true;
}

bool take_header(std::string_view line, Request& request) {
    auto const colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
        return false; // a blank before the colon, or a folded line
    }
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
    });
    auto const value = trimmed(line.substr(colon + 1));
    bool const clean = std::ranges::none_of(value, [](char letter) {
        auto const code = static_cast<unsigned char>(letter);
        return (code < 0x20 && letter != '\t') || code == 0x7F;
    });
    return clean && request.headers.emplace(std::move(name), value).second; // none twice
}

/// The text up to the next end of line, which is taken off; lines end with CR LF alone.
std::optional<std::string_view> next_line(std::string_view& text) {
    auto const end = text.find("\r\n");
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    auto const line = text.substr(0, end);
    text.remove_prefix(end + 2);
    return line;
}

char const* reason_of(int status) {
    switch (status) {
    case 200:
        return "OK";
    case 303:
        return "See Other";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Error";
    }
}

constexpr std::string_view headers_of_all =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

} // namespace

std::string const& Request::header(std::string const& name) const {
    static std::string const none;
    auto const found = headers.find(name);
    return found == headers.end() ? none : found->second;
}

std::string const& Request::asked(std::string const& name) const {
    static std::string const none;
    auto const found = query.find(name);
    return found == query.end() ? none : found->second;
}

Response refusal(int status, std::string text) {
    return {.status = status, .body = std::move(text) + "\n"};
}

std::size_t head_bytes(std::string_view text) {
    auto const end = text.find("\r\n\r\n");
    return end == std::string_view::npos ? 0 : end + 4;
}

std::optional<Request> parsed_request(std::string_view head) {
    auto const first = next_line(head);
    if (!first) {
        return std::nullopt;
    }
    auto const words = *first;
    auto const one = words.find(' ');
    auto const two = one == std::string_view::npos ? one : words.find(' ', one + 1);
    if (two == std::string_view::npos || !is_token(words.substr(0, one))) {
        return std::nullopt;
    }
    Request request{.method = std::string(words.substr(0, one)), .path{}, .query{}, .headers{}};
    auto const version = words.substr(two + 1);
    if ((version != "HTTP/1.1" && version != "HTTP/1.0") ||
        !take_target(words.substr(one + 1, two - one - 1), request)) {
        return std::nullopt;
    }
    for (auto line = next_line(head); line && !line->empty(); line = next_line(head)) {
        if (!take_header(*line, request)) {
            return std::nullopt;
        }
    }
    auto const& length = request.header("content-length");
    if ((!length.empty() && length != "0") || !request.header("transfer-encoding").empty()) {
        return std::nullopt; // no request here has a body
    }
    request.keep_alive = version == "HTTP/1.1" && request.header("connection") != "close";
    return request;
}

std::string wire_text(Response const& response, bool keep_alive, bool with_body) {
    auto text = concat("HTTP/1.1 ", response.status, " ", reason_of(response.status),
                       "\r\nContent-Type: ", response.type, "\r\n", headers_of_all);
    for (auto const& header : response.headers) {
        text += header + "\r\n";
    }
    if (!response.stream) {
        text += concat("Content-Length: ", response.body.size(), "\r\n");
    }
    text += keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
    return with_body ? text + response.body : text;
}

std::string event_text(std::string_view name, std::string_view json) {
    return concat("event: ", name, "\ndata: ", json, "\n\n");
}

} // namespace lockstep::serve
