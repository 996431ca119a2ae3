#include "device/device_graph.hpp"
#include "train/graph_rule.hpp"

#include "catch.hpp"
#include "small_model.hpp"

using namespace lockstep;

namespace {

config::Deck graphs_deck(std::string const& graphs) {
    config::Deck deck;
    deck.run.graphs = graphs;
    deck.model.name = "mlp";
    return deck;
}

/// An accelerator, which need not be there.
std::string text_on_device(config::Deck const& deck, train::Workload const* work = nullptr) {
    return train::graphs_text({.deck = deck, .device = torch::Device("cuda:0"), .work = work});
}

bool contains(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

struct FromFile : nn::Model {
    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only(); }
    bool is_replayable() const override { return false; }
};

/// `reason` why passes run eagerly with `change`, whether they were asked to be recorded or not.
void check_refused(void (*change)(config::Deck&), std::string const& reason) {
    for (auto const* const graphs : {"auto", "true"}) {
        auto deck = graphs_deck(graphs);
        change(deck);
        CAPTURE(graphs, reason, text_on_device(deck));
        CHECK(contains(text_on_device(deck), reason));
        CHECK(contains(text_on_device(deck), graphs == std::string("auto")
                                                 ? "graphs: no: "
                                                 : "run.graphs = true has no effect: "));
        CHECK(!train::uses_graphs({.deck = deck, .device = torch::Device("cuda:0")}));
    }
}

} // namespace

TEST_CASE("on a CPU, only a deck that asks for graphs is told that there are none") {
    for (auto const* const graphs : {"auto", "false"}) {
        CHECK(train::graphs_text({.deck = graphs_deck(graphs), .device = torch::kCPU}).empty());
    }
    CHECK(train::graphs_text({.deck = graphs_deck("true"), .device = torch::kCPU}) ==
          "run.graphs = true has no effect: graphs need an accelerator");
    CHECK(!train::uses_graphs({.deck = graphs_deck("true"), .device = torch::kCPU}));
}

TEST_CASE("what keeps graphs from being exact is told") {
    check_refused([](auto& deck) { deck.run.mode = "dp"; }, "run concurrently");
    check_refused([](auto& deck) { deck.communication.sync_batch_norm = true; }, "sync-batch-norm");
    check_refused([](auto& deck) { deck.privacy.noise = 1; }, "privacy.noise");
    check_refused([](auto& deck) { deck.optimizer.thaw_epoch = 2; }, "thaw-epoch");
    train::Workload work;
    work.model = std::make_shared<FromFile>();
    CHECK(contains(text_on_device(graphs_deck("auto"), &work), "a model that comes from a file"));
    work.model = test::small_model();
    work.samples.inputs.emplace_back().ragged = true;
    CHECK(contains(text_on_device(graphs_deck("true"), &work), "samples have different lengths"));
    CHECK(text_on_device(graphs_deck("false"), &work).empty());
}

TEST_CASE("code of a user's is recorded only where the user says that it can be") {
    for (auto const* const graphs : {"auto", "true"}) {
        auto deck = graphs_deck(graphs);
        deck.model.name = "plugin:self:net";
        CHECK(contains(text_on_device(deck), "model.name = plugin:self:net may compute") ==
              (deck.run.graphs == "auto"));
        deck = graphs_deck(graphs);
        deck.distill.teacher = "net.pt2";
        CHECK(contains(text_on_device(deck), "the file net.pt2") == (deck.run.graphs == "auto"));
    }
}

TEST_CASE("graphs that are exact are used where the device has a recorder") {
    bool const has_recorder = train::make_graph_recorder(torch::Device("cuda:0")) != nullptr;
    for (auto const* const graphs : {"auto", "true"}) {
        auto const deck = graphs_deck(graphs);
        CHECK(train::uses_graphs({.deck = deck, .device = torch::Device("cuda:0")}) ==
              has_recorder);
        CHECK(contains(text_on_device(deck), has_recorder ? "graphs: yes" : "cannot record"));
    }
    CHECK(!train::uses_graphs({.deck = graphs_deck("false"), .device = torch::Device("cuda:0")}));
}
