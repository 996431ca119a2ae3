#include "train_side_help.hpp"

#include "lockstep/config/deck_source.hpp"

#include <map>

namespace lockstep::app {

std::string train_side_help(std::string const& command) {
    using namespace std::string_literals;
    std::map<std::string, std::string> const texts{
        {"train", usage::train +
                      "\n\n"
                      "--quiet    warnings, and how it ended\n"
                      "--verbose  each record and checkpoint, too\n"
                      "--json     the records of metrics.jsonl instead of words\n\n"
                      "Keys of the deck and their defaults:\n"s +
                      config::keys_help()},
        {"plan", usage::plan +
                     "\n    Everything that train would do, without training: whether it starts, "
                     "resumes, is finished\n    or is refused, which rank hosts which replicas "
                     "where, memory, buckets, checkpoints.\n    --ranks: as if so many had been "
                     "started.\n"s},
        {"check", usage::check +
                      "\n    Whether the hosts, devices, network and disk of this launch are fit, "
                      "and with a deck, whether\n    its training fits them: green, yellow and red "
                      "findings, each with its remedy. Start it as you\n    would start the "
                      "training. Exit 69 when something is red.\n"s},
        {"estimate",
         usage::estimate +
             "\n    Measures a step of the deck's training on one rank and on all that were "
             "started, and the network,\n    and predicts 1 to 1024 ranks: speed-up, efficiency, "
             "time and cost. --price-per-hour and --watts are\n    of one rank. --batches: total "
             "batches to try, with the memory each takes. The network between hosts\n    is "
             "measured when ranks run on several, else given or assumed.\n"s},
        {"evaluate",
         usage::evaluate +
             "\n    Measures data.test, or data.validation where the deck has no test "
             "set, with a checkpoint\n    or a best.h5; of a run's directory with its best.h5, "
             "or its newest checkpoint where it has\n    none. The figures are the "
             "same on any number of ranks.\n"s},
        {"models", usage::models + "\n    What model.name can be, with the keys of each.\n"s},
        {"tasks", usage::tasks + "\n    What task.kind can be, with the keys of each.\n"s}};
    return texts.at(command);
}

} // namespace lockstep::app
