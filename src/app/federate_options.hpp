#pragma once

#include "app/command.hpp"
#include "federate/charter.hpp"
#include "federate/copy_command.hpp"
#include "sites/simulation_options.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "commands.hpp"

// The options of `lockstep federate …`. Compiled into the program and into the training library, as
// train_side_options.hpp.
namespace lockstep::app {

struct FederateInitTold {
    federate::Charter charter;
    bool secure = false;
    std::filesystem::path key;
    std::filesystem::path weights; ///< empty: drawn from the seed
};

struct FederateJoinTold {
    std::string site;
    std::filesystem::path key;
    std::string coordinator; ///< fingerprint; empty: the first one is trusted
};

struct FederateRoundTold {
    std::string site;
    std::filesystem::path key;
    double wait_s = 0;
    bool coordinator = false;
    std::vector<std::string> accept;
    std::vector<std::string> remove;
    bool close = false;
    bool abandon = false;
    federate::CopyCommand fetch{.option = "--fetch"};
    federate::CopyCommand push{.option = "--push"};
    double copy_limit_s = 600;
};

struct FederateInfoTold {
    bool json = false;
};

Options federate_init_options(FederateInitTold& told);
Options federate_join_options(FederateJoinTold& told);
Options federate_round_options(FederateRoundTold& told);
Options federate_info_options(FederateInfoTold& told);
Options federate_simulate_options(sites::SimulationOptions& told);

/// Settles what was left open: the threshold of secure aggregation is two thirds of `sites`.
///
/// Throws  Error 64 for what contradicts itself
void settle_charter(federate::Charter& charter, bool secure, std::int64_t sites);

} // namespace lockstep::app
