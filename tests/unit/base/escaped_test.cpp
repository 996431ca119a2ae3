#include "base/escaped.hpp"

#include <sstream>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("what a terminal would obey is written as text") {
    struct Case {
        std::string text;
        std::string shown;
    };
    for (auto const& [text, shown] : {
             Case{"plain\n\ttext ~", "plain\n\ttext ~"},
             {"größer …🙂", "größer …🙂"},
             {"a\033]0;title\007b", "a\\x1b]0;title\\x07b"},
             {"\033[2J\r\b\177", "\\x1b[2J\\x0d\\x08\\x7f"},
             {std::string("\0", 1), "\\x00"},
             {"\xc2\x9b"
              "2J\xc2\xa0",
              "\\xc2\\x9b"
              "2J\xc2\xa0"},
             {"\x9b"
              "2J \xe9t\xe9",
              "\\x9b"
              "2J \\xe9t\\xe9"},
             {"\xc0\x9b\xe0\x9f\xbf\xed\xa0\x80", "\\xc0\\x9b\\xe0\\x9f\\xbf\\xed\\xa0\\x80"},
             {"\xf0\x9f\x99", "\\xf0\\x9f\\x99"},
             {"\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m"},
         }) {
        CAPTURE(shown);
        CHECK(escaped(text) == shown);
    }
}

TEST_CASE("a name that takes one line cannot begin another") {
    CHECK(escaped_line("a\n  run  b\tc\r\177\033[1m …") ==
          "a\\x0a  run  b\\x09c\\x0d\\x7f\\x1b[1m …");
}

TEST_CASE("a stream is escaped while it is asked for") {
    std::ostringstream stream;
    {
        EscapedStream const shown(stream);
        stream << "a\033[2Jb" << '\r' << 5 << "\033[31m" << std::endl;
        write_obeyed(stream, "\033[32mgreen\033[0m");
    }
    stream << "\r";
    write_obeyed(stream, "\033[1m");
    CHECK(stream.str() == "a\\x1b[2Jb\\x0d5\\x1b[31m\n\033[32mgreen\033[0m\r\033[1m");
}
