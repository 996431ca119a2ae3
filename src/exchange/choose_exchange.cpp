#include "exchange/choose_exchange.hpp"

#include "arena/bucket_elements.hpp"
#include "base/environment.hpp"
#include "base/expects.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collective_library.hpp"
#include "comm/collectives.hpp"
#include "comm/device_communicator.hpp"
#include "comm/expects_same.hpp"
#include "comm/make_tree_exchange.hpp"
#include "comm/native_exchange.hpp"
#include "comm/nccl.hpp"
#include "comm/oneccl.hpp"
#include "device/device_pages.hpp"
#include "exchange/power_sgd_exchange.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "device_exchange.hpp"
#include "staged_exchange.hpp"

namespace lockstep::train {

namespace {

/// A value of communication.backend that names a library.
struct NamedLibrary {
    std::string_view value;
    char const* name;
    char const* option;                       ///< of CMake
    comm::CollectiveLibrary const* (*find)(); ///< null: the program was built without it
};
constexpr std::array named_libraries{
    NamedLibrary{"nccl", "NCCL", "LOCKSTEP_WITH_NCCL", comm::nccl_library},
    NamedLibrary{"oneccl", "oneCCL", "LOCKSTEP_WITH_ONECCL", comm::oneccl_library},
};

/// `library` is the one for this rank's devices.
void require_backend(std::string const& backend, comm::CollectiveLibrary const* library,
                     bool all_on_devices) {
    if (backend == "auto" || backend == "mpi") {
        return;
    }
    auto const what = concat("communication.backend = ", backend);
    auto const named = std::ranges::find(named_libraries, backend, &NamedLibrary::value);
    expects(named != named_libraries.end(), "each value of communication.backend has a library");
    auto const* const wanted = named->find();
    if (wanted == nullptr) {
        throw Error(ExitCode::unavailable,
                    {what, concat("this program was built without ", named->name),
                     concat("Build the program again with -D", named->option,
                            "=ON, or set communication.backend = mpi")});
    }
    if (!all_on_devices) {
        throw Error(
            ExitCode::unavailable,
            {what, "this backend needs a GPU on every rank, but some ranks compute on CPUs",
             "Set communication.backend = auto, or let every rank compute on a GPU (run.device)"});
    }
    if (wanted != library) {
        throw Error(ExitCode::unavailable,
                    {what,
                     "the device of this rank is of a kind that this backend does not support",
                     "Set communication.backend = auto"});
    }
}

void require_fitting_compression(config::Communication const& options, int ranks, int replicas) {
    auto const what = concat("communication.compression = ", options.compression);
    if (rounding_of(options) != comm::Rounding::none && options.reduction == "native") {
        throw Error(ExitCode::usage,
                    {what, "gradients cannot be compressed with communication.reduction = native",
                     "Set communication.reduction = ordered"});
    }
    if (options.compression == "powersgd" && ranks != replicas) {
        throw Error(
            ExitCode::usage,
            {what,
             concat("powersgd needs one replica on each rank, but run.replicas is ", replicas,
                    " on ", amount_of(ranks, "rank")),
             concat("Start ", replicas, " ranks, or set run.replicas = ", ranks, " in a new run")});
    }
}

/// As rank 0's environment has it; none: the exchange chooses.
std::optional<comm::Route> wanted_route(comm::Communicator const& world) {
    int choice = 0;
    comm::agree(world, "choosing the exchange of gradients", [&] {
        auto const text = environment_text("LOCKSTEP_HOST_SUMS");
        choice = text == "direct" ? 1 : text == "halving" ? 2 : 0;
        if (choice == 0 && !text.empty()) {
            throw Error(ExitCode::usage,
                        {concat("LOCKSTEP_HOST_SUMS = ", text), "expected direct or halving",
                         "Correct this variable, or unset the variable"});
        }
    });
    comm::broadcast(world, std::span(&choice, 1));
    return choice == 0 ? std::nullopt
                       : std::optional(choice == 1 ? comm::Route::direct : comm::Route::halving);
}

/// Only the ordered exchange in host memory can do without parts of its arrays; a device's are
/// staged.
void require_shards(config::Communication const& options, torch::Device device,
                    ExchangeNeeds const& needs) {
    if (!needs.shards_gradients) {
        return;
    }
    bool const has_pages = device.is_cpu() || has_device_pages(device);
    bool const by_host = device.is_cpu() || options.backend == "auto" || options.backend == "mpi";
    auto const why = options.reduction == "native" ? std::string("communication.reduction = native")
                     : !needs.matrices.empty() ? std::string("communication.compression = powersgd")
                     : !has_pages ? concat("this program cannot take memory back on ", device.str())
                     : !by_host   ? concat("communication.backend = ", options.backend)
                                  : std::string();
    if (!why.empty()) {
        throw Error(ExitCode::usage,
                    {concat("optimizer.update = ",
                            needs.shards_parameters ? "fully-sharded" : "sharded-gradients",
                            " is not available here"),
                     concat(why, ", but only the ordered exchange through host memory can hold "
                                 "gradients and parameters in shards"),
                     "Set optimizer.update = sharded"});
    }
}

/// What updates every rank's parameters in full has no use for shards.
ExchangeNeeds everywhere(ExchangeNeeds needs, std::int64_t size, bool with_step_sums) {
    needs.size = size;
    needs.sums_everywhere = true;
    needs.matrices.clear();
    if (!with_step_sums) {
        needs.step_sums = 0;
        needs.payload = 0;
    }
    return needs;
}

/// What an exchange takes for the same on all ranks: how the arena is cut, which Partition makes of
/// these sizes, which replicas each rank has, and what it carries.
std::string shared_facts(config::Communication const& options, ExchangeNeeds const& needs) {
    auto facts = concat(needs.size, " ", bucket_elements(options.first_bucket_mb), " ",
                        bucket_elements(options.bucket_mb), " ", needs.step_sums, " ",
                        needs.payload, " ", needs.sums_everywhere ? "all" : "own", " ",
                        options.reduction, " ", options.compression, " ", needs.matrices.size());
    for (auto const& node : needs.nodes) {
        facts += concat(" ", node.first, "+", node.count);
    }
    return facts;
}

} // namespace

comm::Rounding rounding_of(config::Communication const& options) {
    return options.compression == "fp16"   ? comm::Rounding::fp16
           : options.compression == "bf16" ? comm::Rounding::bf16
                                           : comm::Rounding::none;
}

std::unique_ptr<comm::Exchange> choose_exchange(comm::Communicator const& world,
                                                config::Communication const& options,
                                                torch::Device device, ExchangeNeeds const& needs) {
    comm::expects_same(world, shared_facts(options, needs),
                       "all ranks cut the arena in the same way and agree on their replicas");
    bool const all_on_devices = comm::all_ranks(world, !device.is_cpu());
    auto const* const library =
        device.is_cpu() ? nullptr
                        : comm::collective_library(c10::DeviceTypeName(device.type(), true));
    comm::agree(world, "choosing the exchange of gradients", [&] {
        require_backend(options.backend, library, all_on_devices);
        require_shards(options, device, needs);
        require_fitting_compression(options, world.size(),
                                    needs.nodes.back().first + needs.nodes.back().count);
    });
    comm::Partition const partition(needs.size, world.size(),
                                    bucket_elements(options.first_bucket_mb),
                                    bucket_elements(options.bucket_mb));
    if (!needs.matrices.empty() && world.size() > 1) {
        return power_sgd_exchange({.partition = partition,
                                   .matrices = needs.matrices,
                                   .rank = options.powersgd_rank,
                                   .seed = needs.seed,
                                   .ranks = world.size(),
                                   .device = device},
                                  [&](std::int64_t size, bool is_first) {
                                      return choose_exchange(world, options, device,
                                                             everywhere(needs, size, is_first));
                                  });
    }
    // The watchdog, which knows more of the others, comes first: mpirun then ends the ranks of
    // other hosts, which takes seconds where many wait for a processor.
    auto const timeout = static_cast<double>(options.timeout_seconds) + 6;
    bool const native = options.reduction == "native";
    // Libraries refuse ranks that share a device: these go through host memory, unless the deck
    // names the library.
    if (options.backend != "mpi" && all_on_devices && library != nullptr &&
        !needs.shards_gradients &&
        (options.backend != "auto" ||
         comm::each_rank_has_own_device(world, *library, device.index()))) {
        return device_exchange(world, *library, device,
                               {.needs = needs,
                                .partition = partition,
                                .timeout_seconds = timeout,
                                .native = native,
                                .rounding = rounding_of(options),
                                .route = wanted_route(world)});
    }
    auto on_host =
        native && world.size() > 1
            ? comm::make_native_exchange(world, {partition, needs.sums_everywhere, timeout})
            : comm::make_tree_exchange(world, {.nodes = needs.nodes,
                                               .partition = partition,
                                               .step_sums = needs.step_sums,
                                               .payload = needs.payload,
                                               .sums_everywhere = needs.sums_everywhere,
                                               .shards_gradients = needs.shards_gradients,
                                               .shards_parameters = needs.shards_parameters,
                                               .rounding = rounding_of(options),
                                               .timeout_seconds = timeout,
                                               .hosts = needs.hosts,
                                               .route = wanted_route(world)});
    return device.is_cpu() ? std::move(on_host)
                           : staged_exchange(std::move(on_host), device,
                                             {needs.shards_gradients, needs.shards_parameters});
}

} // namespace lockstep::train
