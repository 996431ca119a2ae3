// Trains the network of own_model.cpp through the public API, epoch by epoch:
// own_trainer DECK RUN_DIRECTORY [EPOCHS], at most so many in this start.
#include <iostream>
#include <lockstep/config/deck_source.hpp>
#include <lockstep/monitor/collective_command.hpp>
#include <lockstep/train/trainer.hpp>
#include <string>

#include "own_model.cpp"

using namespace lockstep;

struct PrintEpochs : train::Observer {
    void on(train::Event const& event) override {
        if (auto const* const epoch = std::get_if<train::Epoch>(&event)) {
            std::cout << "epoch " << epoch->epoch << ": loss " << epoch->loss << "\n";
        } else if (auto const* const measured = std::get_if<train::Measured>(&event)) {
            std::cout << measured->set << ": accuracy " << measured->metrics.at("accuracy") << "\n";
        }
    }
};

std::vector<std::unique_ptr<train::Observer>> observers(config::Deck const&) {
    std::vector<std::unique_ptr<train::Observer>> all;
    all.push_back(std::make_unique<PrintEpochs>());
    return all;
}

int main(int argc, char** argv) {
    SignalRequests const signals;
    return static_cast<int>(monitor::run_collectively(argc, argv, [&](auto& context) {
        config::DeckSource source;
        source.read(argv[1]);
        source.set("run.directory", {argv[2], "the command line"});
        source.set("model.name", {"plugin:self:skip", "the program"});
        train::Trainer trainer(context.world,
                               {.deck = source.parse(), .version = "own", .observers = observers},
                               signals);
        for (int left = argc > 3 ? std::stoi(argv[3]) : -1; left != 0; --left) {
            if (!trainer.train_epoch()) {
                break;
            }
        }
        auto const measured = trainer.validate();
        if (context.world.is_root() && measured) {
            std::cout << "at step " << trainer.step() << ": accuracy "
                      << measured->metrics.at("accuracy") << "\n";
        }
        auto const reason = trainer.finish().reason;
        return reason == "finished" || reason == "stopped" ? ExitCode::ok : ExitCode::interrupted;
    }));
}
