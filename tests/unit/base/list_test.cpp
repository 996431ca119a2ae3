#include "base/list.hpp"

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

using Texts = std::vector<std::string>;

TEST_CASE("lists have commas between their entries, and names in quotes may hold them") {
    CHECK(list_texts(" a, b c ,d") == Texts{"a", "b c", "d"});
    CHECK(list_texts("  ").empty());
    CHECK(list_texts("a,") == Texts{"a", ""});
    CHECK(list_texts(R"("b, c" , d,"[0]")") == Texts{"b, c", "d", "[0]"});
    CHECK(list_texts(R"("say ""yes"""," x ")") == Texts{R"(say "yes")", " x "});
    CHECK(list_texts(R"(5" pipe, a"b)") == Texts{R"(5" pipe)", R"(a"b)"});
    auto const entries = list_entries(R"(a*,"b*")");
    CHECK_FALSE(entries.at(0).quoted);
    CHECK(entries.at(1).quoted);
}

TEST_CASE("a list can be written so that it is read again") {
    Texts const texts{"a, b", R"(c"d)", "", " [e] "};
    CHECK(list_texts(list_of(texts)) == texts);
    CHECK(list_of({}).empty());
}

TEST_CASE("quotes that are not closed, or end before a comma, are refused") {
    CHECK(test::error_of([] { list_texts(R"(a,"b)"); }).code() == ExitCode::usage);
    CHECK(test::error_of([] { list_texts(R"("a"b)"); }).code() == ExitCode::usage);
}
