#include "nn/named_code.hpp"

#include "catch.hpp"

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
