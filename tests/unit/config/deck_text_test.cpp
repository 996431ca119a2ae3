// What is no deck, or no value, is told at its line, soon, and without reading what has no end.

#include "base/file.hpp"
#include "base/text.hpp"
#include "config/share.hpp"
#include "lockstep/config/deck_source.hpp"

#include <map>
#include <sys/stat.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::config;

namespace {

Error failure_of(std::filesystem::path const& path) {
    return test::error_of([&] {
        DeckSource source;
        source.read(path);
        source.parse();
    });
}

} // namespace

TEST_CASE("a line that is none of a deck is named") {
    test::ScratchDir const scratch;
    auto const path = scratch / "deck.ini";
    for (auto const& [text, line, why] :
         {std::tuple{std::string("[data]\nbatch\n"), 2, "is not a section and has no ="},
          {"[data\nbatch = 1\n", 1, "is not a section and has no ="},
          {"# fine\n\n[data]\n = 5\n", 4, "has no name"},
          {"[]\n", 1, "has no name"},
          {std::string("[run]\nname = a\0b\n", 17), 2, "not UTF-8 text"},
          {"[run]\nname = a\x1b[2J\n", 2, "not UTF-8 text"},
          {"[run]\nname = caf\xe9\n", 2, "not UTF-8 text"},
          {"[run]\nname = \xed\xa0\x80\n", 2, "not UTF-8 text"},
          {std::string("\xff\xfe[\0d\0]\0\n\0", 10), 1, "not UTF-8 text"},
          {"[data]\ntrain = " + std::string(70'000, 'x') + "\n", 2, "70,008 characters"},
          {"[" + std::string(300, 's') + "]\n", 1, "its name has 300 characters"},
          {std::string(300, 'k') + " = 1\n", 1, "its name has 300 characters"}}) {
        CAPTURE(text.substr(0, 40));
        write_text_durably(path, text);
        auto const error = failure_of(path);
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, concat(path.string(), ":", line, ")")));
        CHECK(test::says(error, why));
        CHECK(std::string(error.what()).size() < 1000);
    }
}

TEST_CASE("a mark at the beginning, and ends of lines of other systems, are no part of a deck") {
    test::ScratchDir const scratch;
    write_text_durably(
        scratch / "deck.ini",
        "\xEF\xBB\xBF[data]\r\nbatch = 7 # seven\r\n\r\n[run]\r\nname = caf\xC3\xA9");
    DeckSource source;
    source.read(scratch / "deck.ini");
    auto const deck = source.parse();
    CHECK(deck.data.batch == 7);
    CHECK(deck.run.name == "caf\xC3\xA9");
    write_text_durably(scratch / "empty.ini", "");
    CHECK(to_text([&] {
              DeckSource empty;
              empty.read(scratch / "empty.ini");
              return empty.parse();
          }()) == to_text(Deck{}));
}

TEST_CASE("a comment begins at the start of a line or after a blank, and values keep any other #") {
    test::ScratchDir const scratch;
    auto const path = scratch / "deck.ini";
    for (std::string const value :
         {"exp#3", "#3", "exp #3", "exp\t#3", "exp# 3", "a#1.h5, \"b #2.h5\"", "\"a, #1.h5\", b #c",
          "\"say \"\"#1 #2\"\".h5\" # end", "\"not closed #1", "a \"b #1\"", "x=\"b #1\""}) {
        CAPTURE(value);
        std::map<std::string, std::string> const kept{
            {"#3", ""},
            {"exp #3", "exp"},
            {"exp\t#3", "exp"},
            {"\"a, #1.h5\", b #c", "\"a, #1.h5\", b"},
            {"\"say \"\"#1 #2\"\".h5\" # end", "\"say \"\"#1 #2\"\".h5\""},
            {"\"not closed #1", "\"not closed"},
            {"a \"b #1\"", "a \"b"},
            {"x=\"b #1\"", "x=\"b"}};
        auto const found = kept.find(value);
        auto const wanted = found == kept.end() ? value : found->second;
        write_text_durably(
            path,
            concat("#[data]\n [data]\t# of \"all\"\n  # train = no.h5\ntrain = ", value, "\n"));
        DeckSource source;
        source.read(path);
        CHECK(source.values().at("data.train").value == wanted);
        // What a deck would cut may not come from elsewhere either: runs write decks.
        DeckSource options;
        CHECK(test::code_of([&] {
                  options.take_options({"--data.train", value});
              }) == (wanted == value ? ExitCode::ok : ExitCode::usage));
    }
}

TEST_CASE("what is no file of a sensible size is not read, and an include's line is named") {
    test::ScratchDir const scratch;
    make_directories(scratch / "directory");
    REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
    write_text_durably(scratch / "large", std::string(2 << 20, '#'));
    for (auto const& [name, code] : {std::pair{"directory", ExitCode::no_input},
                                     {"pipe", ExitCode::usage},
                                     {"large", ExitCode::usage},
                                     {"none", ExitCode::no_input},
                                     {"/dev/zero", ExitCode::usage}}) {
        CAPTURE(name);
        CHECK(failure_of(scratch / name).code() == code);
        write_text_durably(scratch / "deck.ini", concat("\ninclude = ", name, "\n"));
        auto const error = failure_of(scratch / "deck.ini");
        CHECK(error.code() == code);
        CHECK(test::says(error, concat((scratch / "deck.ini").string(), ":2)")));
    }
    write_text_durably(scratch / "model", concat(std::string(4096, '\0'), "\x89HDF\r\n\x1a\n"));
    CHECK(test::says(failure_of(scratch / "model"), "HDF5 file"));
    auto const long_name = failure_of(scratch / std::string(5000, 'n'));
    CHECK(long_name.code() == ExitCode::usage);
    CHECK(std::string(long_name.what()).size() < 1000);
}

TEST_CASE("decks that take each other in, or very many, are told where") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "a.ini", "\ninclude = b.ini\n");
    write_text_durably(scratch / "b.ini", "include = a.ini\n");
    auto const cycle = failure_of(scratch / "a.ini");
    CHECK(cycle.code() == ExitCode::usage);
    CHECK(test::says(cycle, "a.ini:2)"));
    CHECK(test::says(cycle, "include each other in a cycle"));
    std::string many;
    for (int i = 0; i < 100; ++i) {
        many += "include = empty.ini\n";
    }
    write_text_durably(scratch / "empty.ini", "");
    write_text_durably(scratch / "many.ini", many);
    CHECK(test::says(failure_of(scratch / "many.ini"), "many.ini:64)"));
    write_text_durably(scratch / "late.ini", "[data]\ninclude = empty.ini\n");
    CHECK(test::says(failure_of(scratch / "late.ini"), "before the first [section]"));
}

TEST_CASE("paths that no system has, and values of any length, are told at their line") {
    test::ScratchDir const scratch;
    auto const path = scratch / "deck.ini";
    for (std::string const key : {"run.directory", "run.name", "data.train", "data.validation",
                                  "data.test", "model.weights", "checkpoint.local",
                                  "checkpoint.resume", "data.batch", "optimizer.name"}) {
        CAPTURE(key);
        auto const dot = key.find('.');
        write_text_durably(path, concat("[", key.substr(0, dot), "]\n", key.substr(dot + 1), " = ",
                                        std::string(5000, '7'), "\n"));
        auto const error = failure_of(path);
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, concat(path.string(), ":2)")));
        CHECK(std::string(error.what()).size() < 1000);
    }
    DeckSource options;
    CHECK(test::error_of([&] {
              options.take_options({"--data.train", std::string(100'000, 'x')});
          }).code() == ExitCode::usage);
    CHECK(test::error_of([&] {
              options.take_options({"--run.name", "a\nb"});
          }).code() == ExitCode::usage);
}

TEST_CASE("limits are printed as people write numbers") {
    DeckSource source;
    source.set("optimizer.accumulate", {"99999999", "deck.ini:3"});
    CHECK(test::says(test::error_of([&] { source.parse(); }), "from 1 to 1048576"));
    source.set("communication.bucket-mb", {"0", "deck.ini:4"});
    source.set("optimizer.accumulate", {"1", "deck.ini:3"});
    CHECK(test::says(test::error_of([&] { source.parse(); }), "from 0.016 to 4096"));
    source.set("communication.bucket-mb", {"1", "deck.ini:4"});
    source.set("run.walltime-seconds", {"-1", "deck.ini:5"});
    CHECK(test::says(test::error_of([&] { source.parse(); }), "from 0 to 1000000000"));
}

TEST_CASE("validation is files, or a share above 0 % and below 100 %") {
    auto const with = [](std::string const& key, std::string const& value) {
        DeckSource source;
        source.set(key, {value, "deck.ini:3"});
        return source;
    };
    for (auto const& [text, percent] : {std::pair{"10 %", 10.0},
                                        {"10%", 10.0},
                                        {"0.5 %", 0.5},
                                        {" 12.5 % ", 12.5},
                                        {"99.9%", 99.9}}) {
        CAPTURE(text);
        CHECK(share_of(with("data.validation", text).parse().data.validation) == percent);
    }
    for (std::string const text : {"test.h5", "", "10", "ten %", "a%b.h5", "0.1"}) {
        CAPTURE(text);
        CHECK_FALSE(share_of(with("data.validation", text).parse().data.validation));
    }
    for (std::string const text : {"0 %", "100 %", "-5%", "1e9 %", "nan %", "10 %, more.h5"}) {
        CAPTURE(text);
        auto const error = test::error_of([&] { with("data.validation", text).parse(); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, "deck.ini:3"));
        CHECK(test::says(error, "share"));
    }
    for (auto const* const key : {"data.train", "data.test"}) {
        CHECK(test::says(test::error_of([&] { with(key, "10 %").parse(); }),
                         "only data.validation can"));
    }
}

TEST_CASE("another model than the deck's leaves the keys of the deck's out, with a word") {
    KeyOwners const owners = [](std::string const& named, std::string const& key) {
        bool const of_cnn = key == "channels" || key == "dropout";
        bool const of_mlp = key == "hidden" || key == "dropout";
        bool const known = named == "cnn" ? of_cnn : of_mlp;
        return !known && of_cnn ? "model cnn" : !known && of_mlp ? "model mlp" : "";
    };
    test::ScratchDir const scratch;
    write_text_durably(scratch / "deck.ini", "[model]\nname = cnn\nchannels = 4\ndropout = 0.5\n");
    DeckSource source;
    source.read(scratch / "deck.ini");
    CHECK(source.drop_keys_of_another("model.name", owners).empty());
    source.take_options({"--model.name", "mlp", "--model.hidden", "9"});
    auto const told =
        DeckSource::unpacked(source.packed()).drop_keys_of_another("model.name", owners);
    REQUIRE(told.size() == 1);
    CHECK(told[0] == concat("ignored: model.channels (", (scratch / "deck.ini").string(),
                            ":3) is a key of model cnn"));
    source.drop_keys_of_another("model.name", owners);
    auto const deck = source.parse();
    CHECK(deck.model.name == "mlp");
    CHECK(deck.model.own == OwnKeys{{"dropout", "0.5"}, {"hidden", "9"}});

    // Of several that have a key, the deck's own is named.
    KeyOwners const three = [](std::string const& named, std::string const& key) {
        return key != "hidden" || named == "mlp" || named == "policy" ? "" : "model policy";
    };
    write_text_durably(scratch / "mlp.ini", "[model]\nname = mlp\nhidden = 4\n");
    DeckSource mlp;
    mlp.read(scratch / "mlp.ini");
    mlp.take_options({"--model.name", "unet"});
    auto const of_mlp =
        DeckSource::unpacked(mlp.packed()).drop_keys_of_another("model.name", three);
    REQUIRE(of_mlp.size() == 1);
    CHECK(of_mlp[0].ends_with("is a key of model mlp"));

    // What stands beside the name, or comes later, is meant for it.
    source.take_options({"--model.channels", "4"});
    CHECK(source.drop_keys_of_another("model.name", owners).empty());
    write_text_durably(scratch / "wrong.ini", "[model]\nname = mlp\nchannels = 4\n");
    DeckSource wrong;
    wrong.read(scratch / "wrong.ini");
    CHECK(wrong.drop_keys_of_another("model.name", owners).empty());
}

TEST_CASE("buckets may change at a resume where they change no bits") {
    Deck const before;
    auto now = before;
    now.communication.bucket_mb = 3;
    now.communication.first_bucket_mb = 0.5;
    CHECK(forbidden_changes(before, now).empty());
    for (auto const& [reduction, compression] :
         {std::pair{"native", "none"}, {"ordered", "fp16"}, {"ordered", "powersgd"}}) {
        CAPTURE(reduction, compression);
        auto old = before;
        old.communication.reduction = reduction;
        old.communication.compression = compression;
        auto other = old;
        other.communication.bucket_mb = 3;
        CHECK(forbidden_changes(old, other) ==
              std::vector<std::string>{"communication.bucket-mb = 3 (was 25)"});
    }
}
