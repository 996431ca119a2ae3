#include "base/text.hpp"
#include "h5/text_rows.hpp"

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

std::vector<std::string> many_texts() {
    std::vector<std::string> texts;
    for (int i = 0; i < 3000; ++i) {
        texts.push_back(i % 7 == 0 ? "" : concat("folder/", i, ".png"));
    }
    return texts;
}

/// A file with texts whose offsets are these.
h5::File with_offsets(std::filesystem::path const& path, std::vector<std::int64_t> const& offsets) {
    std::string const bytes(20000, 'a');
    auto file = h5::File::create(path);
    file.create_dataset("names", h5::Type::u8, {bytes.size()});
    file.write("names", h5::Type::u8, bytes);
    file.create_dataset("names_offsets", h5::Type::i64, {offsets.size()});
    file.write("names_offsets", h5::Type::i64, offsets);
    file.close();
    return h5::File::open(path);
}

} // namespace

TEST_CASE("texts of rows are read back in any order") {
    test::ScratchDir const scratch;
    auto const texts = many_texts();
    {
        auto file = h5::File::create(scratch / "a.h5");
        h5::write_text_rows(file, "names", texts);
        file.close();
    }
    auto const file = h5::File::open(scratch / "a.h5");
    auto rows = h5::TextRows::in(file, "names").value();
    REQUIRE(rows.count() == texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        CHECK(rows.at(file, i) == texts[i]);
    }
    for (std::size_t const i : {2999U, 0U, 1024U, 1023U}) {
        CHECK(rows.at(file, i) == texts[i]);
    }
    CHECK(test::error_of([&] { rows.at(file, 3000); }).code() == ExitCode::data);
    CHECK_FALSE(h5::TextRows::in(file, "other"));
    CHECK_FALSE(h5::TextRows::in(file, "names_offsets"));
}

TEST_CASE("texts whose offsets cannot be right are refused") {
    test::ScratchDir const scratch;
    for (auto const& offsets : std::vector<std::vector<std::int64_t>>{{0, 5, 3},
                                                                      {-1, 5, 7},
                                                                      {0, 5, 20001},
                                                                      {0, 8193, 8200},
                                                                      {0, INT64_MAX, 3},
                                                                      {1, 8000, 16000, 20000},
                                                                      {0, 8000, 16000, 19999}}) {
        CAPTURE(offsets);
        auto const file = with_offsets(scratch / "a.h5", offsets);
        auto rows = h5::TextRows::in(file, "names").value();
        auto const error = test::error_of([&] { rows.at(file, 0); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "its offsets do not divide 20000 bytes"));
    }
    auto const file = with_offsets(scratch / "a.h5", {0, 8192, 12000, 20000});
    CHECK(h5::TextRows::in(file, "names")->at(file, 0).size() == 8192);
}
