#include "base/random_token.hpp"
#include "serve/gate.hpp"
#include "serve/http.hpp"

#include "catch.hpp"

using namespace lockstep::serve;

namespace {

Request asked(std::string const& target, std::string const& headers = "Host: localhost\r\n") {
    auto const request = parsed_request("GET " + target + " HTTP/1.1\r\n" + headers + "\r\n");
    REQUIRE(request.has_value());
    return *request;
}

int status_of(Gate const& gate, Request const& request) {
    auto const stopped = gate.stopped(request);
    return stopped ? stopped->status : 200;
}

} // namespace

TEST_CASE("a request's target and headers are decoded") {
    auto const request = asked("/a%20b?x=1&y=%2F&x=2", "HOST:  localhost \r\n");
    CHECK(request.path == "/a b");
    CHECK(request.asked("x") == "2");
    CHECK(request.asked("y") == "/");
    CHECK(request.asked("z").empty());
    CHECK(request.header("host") == "localhost");
}

TEST_CASE("a head ends with an empty line") {
    CHECK(head_bytes("GET / HTTP/1.1\r\n") == 0);
    CHECK(head_bytes("GET / HTTP/1.1\r\n\r\nmore") == 18);
}

TEST_CASE("what two programs could read differently is no request") {
    for (char const* head :
         {"", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n", "GET http://a/ HTTP/1.1\r\n\r\n",
          "GET /%0 HTTP/1.1\r\n\r\n", "GET /%00 HTTP/1.1\r\n\r\n", "GET /?a=%zz HTTP/1.1\r\n\r\n",
          "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
          "GET / HTTP/1.1\r\n folded: a\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
          "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
        INFO(head);
        CHECK_FALSE(parsed_request(head).has_value());
    }
}

TEST_CASE("the gate lets in who knows the token, from this machine's names alone") {
    auto const token = lockstep::random_token(24);
    CHECK(token.size() == 48);
    CHECK(token != lockstep::random_token(24));
    Gate const gate(token);
    auto const bearer = "Authorization: Bearer " + token + "\r\n";
    auto const told = [&](std::string const& host) {
        return status_of(gate, asked("/", "Host: " + host + "\r\n" + bearer));
    };
    for (char const* const host : {"localhost:80", "[::1]:80", "127.0.0.1", "127.0.0.1:65535"}) {
        INFO(host);
        CHECK(told(host) == 200);
    }
    for (char const* const host :
         {"evil.example", "localhost.evil.example", "localhost:80@evil.example", "127.0.0.1:abc",
          "127.0.0.1:", "localhost:65536", "localhost:-1", "localhost:80:80", "[::1]evil.example",
          "[::1", "evil.example@localhost", "::1"}) {
        INFO(host);
        CHECK(told(host) == 403);
    }
    CHECK(status_of(gate, asked("/", bearer)) == 403);
    CHECK(status_of(gate, asked("/", "Host: localhost\r\nOrigin: null\r\n" + bearer)) == 403);
    CHECK(status_of(gate, asked("/", "Host: localhost\r\nOrigin: http://localhost\r\n" + bearer)) ==
          200);
    CHECK(status_of(gate, asked("/", "Host: localhost\r\nSec-Fetch-Site: same-site\r\n" +
                                         bearer)) == 403);
    CHECK(status_of(gate, asked("/")) == 401);
    CHECK(status_of(gate, asked("/?token=" + token.substr(1))) == 401);
    CHECK(status_of(gate, asked("/?token=" + token)) == 303);
    CHECK(status_of(Gate(""), asked("/")) == 200);
}

TEST_CASE("secrets are the same only where all letters are") {
    CHECK(is_same_secret("abc", "abc"));
    CHECK_FALSE(is_same_secret("abc", "abd"));
    CHECK_FALSE(is_same_secret("abc", "ab"));
    CHECK_FALSE(is_same_secret("", "a"));
}

TEST_CASE("a response says its length, a stream has none") {
    auto const text = wire_text({.body = "four"}, true, true);
    CHECK(text.find("Content-Length: 4\r\n") != std::string::npos);
    CHECK(text.ends_with("\r\n\r\nfour"));
    CHECK(wire_text({.body = "four"}, true, false).ends_with("\r\n\r\n"));
    CHECK(wire_text({.stream = true}, false, true).find("Content-Length") == std::string::npos);
    CHECK(event_text("rows", "{}") == "event: rows\ndata: {}\n\n");
}
