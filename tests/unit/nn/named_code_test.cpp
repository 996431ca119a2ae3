#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/named_code.hpp"
#include "nn/open_library.hpp"

#include <torch/version.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("a deck's plug-ins and libraries of operators are code that it names") {
    config::Deck deck;
    deck.model.name = "mlp";
    deck.model.own["operators"] = "libown.so"; // of another model
    CHECK(nn::named_code(deck).empty());
    deck.model.name = "export";
    deck.task.kind = "plugin:libown.so:margin";
    CHECK(nn::named_code(deck) ==
          std::map<std::string, std::string>{{"model.operators", "libown.so"},
                                             {"task.kind", "plugin:libown.so:margin"}});
    deck.model.own["operators"] = " ";
    deck.task.kind = "classification";
    CHECK(nn::named_code(deck).empty());
    deck.model.name = "plugin:self:skip";
    CHECK(nn::named_code(deck).contains("model.name"));
}

TEST_CASE("a compiled step is native code, in the file that holds it") {
    config::Deck deck;
    deck.model.name = "export";
    deck.model.own["file"] = "m.pt2";
    for (auto const* const off : {"", "none", " "}) {
        deck.model.own["compiled"] = off;
        CHECK(nn::named_code(deck).empty());
    }
    for (auto const* const on : {"prefer", "require"}) {
        deck.model.own["compiled"] = on;
        CHECK(nn::named_code(deck) ==
              std::map<std::string, std::string>{{"model.compiled", on}, {"model.file", "m.pt2"}});
        CHECK(nn::code_files(deck).empty()); // each site compiles its own
        config::Deck without = deck;
        without.model = nn::without_compiled_step(deck.model);
        CHECK(nn::named_code(without).empty());
    }
}

TEST_CASE("TorchScript programs are named by the model and the teacher") {
    config::Deck deck;
    deck.model.name = "script";
    deck.model.own["file"] = "m.pt";
    deck.distill.teacher = "t.pt";
    CHECK(nn::named_scripts(deck) ==
          std::map<std::string, std::string>{{"distill.teacher", "t.pt"}, {"model.file", "m.pt"}});
    deck.model.name = "export";
    deck.distill.teacher = "t.pt2";
    CHECK(nn::named_scripts(deck).empty());
}

TEST_CASE("named libraries are told apart by their contents") {
    test::ScratchDir const scratch;
    auto const one = (scratch.path() / "one.so").string();
    auto const other = (scratch.path() / "other.so").string();
    write_text_durably(one, "1");
    write_text_durably(other, "2");
    config::Deck deck;
    deck.model.name = "export";
    deck.model.own["operators"] = concat(one, ", ", other);
    deck.task.kind = concat("plugin:", one, ":margin");
    auto const hash = hex(hash64("1"));
    CHECK(nn::code_hashes(deck) ==
          std::map<std::string, std::string>{
              {"model.operators", concat(hash, ", ", hex(hash64("2")))}, {"task.kind", hash}});
    deck.model.name = "plugin:self:skip";
    write_text_durably(one, "3");
    CHECK(nn::code_hashes(deck) ==
          std::map<std::string, std::string>{{"task.kind", hex(hash64("3"))}});
}

TEST_CASE("an empty name in a list of libraries is refused as such") {
    config::Deck deck;
    deck.model.name = "export";
    for (auto const* const list :
         {",", "own.so,", " , own.so", "own.so,,other.so", "a.so, ,b.so"}) {
        deck.model.own["operators"] = list;
        auto const error = test::error_of([&] { nn::code_hashes(deck); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(error.text().what == concat("model.operators = ", list));
        CHECK(error.text().why == "a name in this list of libraries is empty");
    }
}

TEST_CASE("a library that names another LibTorch is not loaded") {
    test::ScratchDir const scratch;
    auto const file = (scratch.path() / "own.so").string();
    auto const why = [&](std::string const& version) {
        write_text_durably(file,
                           concat("\177ELF\n", "lockstep_torch_version=", version, '\0', "code"));
        return test::error_of([&] { nn::open_library("the library", file, "Correct it"); });
    };
    CHECK(why("1.0").text().why == "it was built for LibTorch 1.0");
    CHECK(why("1.0").code() == ExitCode::unavailable);
    for (auto const* const version : {TORCH_VERSION, ""}) { // the loader finds that it is none
        CHECK(why(version).text().why.find("built for") == std::string::npos);
    }
    write_text_durably(file, "lockstep_torch_version=1.0");
    CHECK(test::error_of([&] { nn::open_library("the library", file, "Correct it"); }).text().why ==
          "it is not a shared library");
}
