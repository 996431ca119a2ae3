#include "measure/train_side/check_launch.hpp"

#include "base/file.hpp"
#include "base/file_hash.hpp"
#include "base/gpus.hpp"
#include "base/hash.hpp"
#include "base/host_facts.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collective_library.hpp"
#include "comm/collectives.hpp"
#include "comm/launch_facts.hpp"
#include "config/share.hpp"
#include "h5/version.hpp"
#include "lockstep/comm/session.hpp"
#include "lockstep/data/dataset.hpp"
#include "measure/train_side/check_probes.hpp"

#include "torch_facts.hpp"

namespace lockstep::measure {

namespace {

std::string libraries_text() {
    return concat("LibTorch ", torch_facts().version, ", ", comm::collective_libraries_text(), ", ",
                  comm::library_text(), ", parallel HDF5 ", h5::library_version());
}

/// A hash of what the data keys name, or "missing"; empty where they name nothing.
std::string data_hash(config::Data const& data) {
    Hasher hasher;
    bool any = false;
    try {
        for (auto const& files : {data.train, data.validation, data.test}) {
            if (trimmed(files).empty() || config::share_of(files)) {
                continue;
            }
            for (auto const& file : data::expand_files(files)) {
                auto const hash = rough_hash(file);
                hasher.add(std::as_bytes(std::span(&hash, 1)));
                any = true;
            }
        }
    } catch (Error const&) {
        return "missing";
    }
    return any ? hex(hasher.digest()) : "";
}

/// The hash of a deck's file as this rank sees it.
std::string deck_hash(std::string const& file) {
    if (file.empty()) {
        return "";
    }
    try {
        return hex(hash64(read_text(file)));
    } catch (Error const&) {
        return "missing";
    }
}

std::string uuid_of(std::string const& device, GpuListing const& listing) {
    auto const colon = device.find(':');
    auto const index = colon == std::string::npos ? ~0UL : std::stoul(device.substr(colon + 1));
    return index < listing.gpus.size() ? listing.gpus[index].uuid : "";
}

comm::LaunchFacts own_facts(CheckContext const& context, CheckSubject const& subject,
                            GpuListing const& listing) {
    bool const looks = context.topology.local_rank == 0; // the others of the host see the same
    return {.host = comm::host_name(),
            .cores = allowed_cores(),
            .host_cores = host_cores(),
            .granted_cores = granted_cores(),
            .threads = static_cast<int>(subject.run.threads),
            .processor = concat(processor_text(), ", ", torch_facts().vectors),
            .gpu = uuid_of(context.world.device(), listing),
            .program = hex(program_hash("lockstep")),
            .libraries = libraries_text(),
            .deck = looks ? deck_hash(subject.deck_file) : "",
            .data = looks && subject.deck ? data_hash(subject.deck->data) : ""};
}

void check_libraries(CheckContext const& context, comm::LaunchFacts const& facts) {
    context.report.green("libraries", facts.libraries);
    bool const multiple = comm::threads_may_speak();
    context.report.add({multiple ? Colour::green : Colour::yellow, "threads",
                        multiple
                            ? "MPI allows calls from several threads at once (MPI_THREAD_MULTIPLE)"
                            : "MPI allows one calling thread at a time: training stops while a "
                              "checkpoint is written",
                        multiple ? "" : "Use an MPI that was built with MPI_THREAD_MULTIPLE"});
}

/// A line for each host, as its first rank sees it.
///
/// Collective  over the world
void check_hosts(CheckContext const& context, comm::LaunchFacts const& facts) {
    auto const shm = free_space("/dev/shm");
    auto const text = concat(facts.host, ": ", amount_of(context.topology.local_size, "rank"), ", ",
                             facts.cores.size(), " of ", facts.host_cores, " cores each, ",
                             facts.processor, ", ", bytes_text(available_memory()),
                             " of memory and ", bytes_text(shm), " of /dev/shm free");
    auto const texts =
        comm::all_gather_text(context.world, context.topology.local_rank == 0 ? text : "");
    for (auto const& each : texts) {
        if (!each.empty()) {
            context.report.green("host", each);
        }
    }
}

std::vector<Finding> judge_gpus(CheckContext const& context, GpuListing const& listing,
                                config::Run const& run) {
    std::vector<Finding> findings;
    for (std::size_t at = 0; at < listing.gpus.size(); ++at) {
        auto const& gpu = listing.gpus[at];
        findings.push_back({Colour::green, "gpu",
                            concat(listing.kind, ":", at, " ", gpu.name, ", ", gpu.capability, ", ",
                                   bytes_text(gpu.memory), ", ", gpu.uuid, ", PCI ", gpu.bus,
                                   gpu.numa_node < 0 ? "" : concat(", NUMA node ", gpu.numa_node)),
                            ""});
        for (std::size_t other = 0; other < at && !listing.between.empty(); ++other) {
            findings.push_back({Colour::green, "gpu",
                                concat(listing.kind, ":", other, " to ", listing.kind, ":", at,
                                       ": ", listing.between[at * listing.gpus.size() + other]),
                                ""});
        }
    }
    if (!listing.driver.empty()) {
        findings.push_back(
            {listing.problem.empty() ? Colour::green : Colour::red, "driver",
             concat(listing.driver, listing.problem.empty() ? "" : ": ", listing.problem),
             listing.problem.empty()
                 ? ""
                 : concat("Run ", vendor_of(listing.kind)->tool, "; restart the driver")});
    }
    auto const torch = torch_facts();
    if (!listing.gpus.empty() && !torch.sees_gpus && run.device != "cpu") {
        findings.push_back(
            {Colour::red, "devices", concat("LibTorch cannot use the GPUs of ", comm::host_name()),
             torch.built_for_gpus ? "Update the driver to one that supports this LibTorch"
                                  : "Build with a LibTorch for these GPUs (./bootstrap build "
                                    "installs one for NVIDIA's), or set run.device = cpu"});
    }
    if (torch.sees_gpus && comm::collective_libraries().empty() && context.world.size() > 1) {
        findings.push_back({Colour::yellow, "devices",
                            "gradients go through host memory: the program was built without NCCL",
                            "Configure with -DLOCKSTEP_WITH_NCCL=ON"});
    }
    return findings;
}

/// The findings of the first rank of each host, known to all: what is done next depends on them.
///
/// Collective  over the world
std::vector<Finding> of_all_hosts(CheckContext const& context, std::vector<Finding> const& own) {
    constexpr char field = '\x1f';
    constexpr char end = '\x1e';
    std::string packed;
    for (auto const& finding : own) {
        packed += concat(static_cast<int>(finding.colour), field, finding.topic, field,
                         finding.what, field, finding.remedy, end);
    }
    bool const several = context.topology.hosts.size() > 1;
    std::vector<Finding> findings;
    auto const texts = comm::all_gather_text(
        context.world, context.topology.local_rank == 0 ? packed : std::string());
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
        for (auto const& line : split(texts[rank], end)) {
            if (auto const fields = split(line, field); fields.size() == 4) {
                auto const host =
                    several ? context.topology.host_of_rank[rank] + ": " : std::string();
                findings.push_back({static_cast<Colour>(std::stoi(fields[0])), fields[1],
                                    host + fields[2], fields[3]});
            }
        }
    }
    return findings;
}

} // namespace

void check_launch(CheckContext const& context, CheckSubject const& subject) {
    auto const& world = context.world;
    auto& report = context.report;
    GpuListing listing;
    comm::LaunchFacts facts;
    comm::agree(world, "looking at this host", [&] {
        listing = list_gpus();
        facts = own_facts(context, subject, listing);
    });
    auto const all = comm::gather_facts(world, facts);
    check_hosts(context, facts);
    check_libraries(context, facts);
    report.add(comm::judge_launch(all));
    report.add(of_all_hosts(context, judge_gpus(context, listing, subject.run)));
    check_clocks(context);
}

} // namespace lockstep::measure
