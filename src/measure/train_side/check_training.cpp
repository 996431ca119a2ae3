#include "measure/train_side/check_training.hpp"

#include "base/text.hpp"
#include "batches/workload.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "config/share.hpp"
#include "data/look_through.hpp"
#include "device/precision.hpp"
#include "lockstep/base/error.hpp"
#include "measure/measurement.hpp"
#include "train/dry_run.hpp"

#include <algorithm>
#include <string_view>

namespace lockstep::measure {

namespace {

std::string seconds_text(double seconds) {
    return seconds < 1 ? concat(fixed(seconds * 1e3, 1), " ms") : duration_text(seconds);
}

/// Seconds of the slowest rank in the median step.
///
/// Collective  over `world`
double median_step(comm::Communicator const& world, train::DryRun& dry_run) {
    constexpr int steps = 5;
    std::vector<double> seconds;
    for (int step = 0; step <= steps; ++step) {
        auto const whole = comm::all_reduce(world, dry_run.step().whole, comm::Reduce::maximum);
        if (step > 0) {
            seconds.push_back(whole); // the first one allocates
        }
    }
    return median(seconds);
}

/// Collective  over the world
void check_memory(CheckContext const& context, train::DryRun const& dry_run) {
    auto const& world = context.world;
    auto const used = comm::all_reduce(world, dry_run.peak_bytes(), comm::Reduce::maximum);
    auto const free = comm::all_reduce(world, dry_run.free_bytes(), comm::Reduce::minimum);
    bool const on_host = world.device() == "cpu";
    auto const of_all = static_cast<double>(used) * (on_host ? context.topology.local_size : 1);
    bool const tight = static_cast<double>(free) < 0.1 * of_all; // beside what is used
    context.report.add(
        {tight ? Colour::yellow : Colour::green, "memory",
         concat("training uses ", bytes_text(used), " per rank; ", bytes_text(free),
                on_host ? " remain free" : " of its GPU remain free"),
         tight ? concat("Lower data.batch", on_host ? ", or start fewer ranks per host"
                                                    : " and raise optimizer.accumulate")
               : ""});
}

void check_exchange(CheckContext const& context, train::DryRunSize const& size) {
    bool const by_messages =
        context.topology.local_size > 1 && size.exchange.find("messages (") != std::string::npos;
    context.report.add(
        {by_messages ? Colour::yellow : Colour::green, "gradients",
         concat("go through ", size.exchange, ", in ", amount_of(size.buckets, "bucket")),
         by_messages ? "Make /dev/shm larger (docker --shm-size, or mount -o remount,size=)" : ""});
}

/// Remarks that warn of something: "warning: WHAT. REMEDY".
void check_samples(CheckContext const& context, train::DryRunSize const& size) {
    for (std::string_view text : size.remarks) {
        constexpr std::string_view sign = "warning: ";
        if (text.starts_with(sign)) {
            text.remove_prefix(sign.size());
            auto const end = std::min(text.find(". "), text.size());
            context.report.add({Colour::yellow, "samples", std::string(text.substr(0, end)),
                                std::string(text.substr(std::min(end + 2, text.size())))});
        }
    }
}

void check_checkpoints(CheckContext const& context, train::DryRunSize const& size,
                       double write_rate, double every_s) {
    auto const bytes = size.checkpoint_bytes;
    auto const written = write_rate > 0 ? bytes / write_rate : 0;
    bool const often = every_s > 0 && written > 0.05 * every_s;
    context.report.add(
        {often ? Colour::yellow : Colour::green, "checkpoints",
         concat(bytes_text(static_cast<std::uint64_t>(bytes)), " each, written in about ",
                seconds_text(written), often ? concat(", one every ", seconds_text(every_s)) : ""),
         often ? "Raise checkpoint.every-steps" : ""});
}

/// Looks at all of data.mask: a step looks at the values of its own samples.
///
/// Collective  over the world
void check_mask(CheckContext const& context, config::Data const& data) {
    comm::agree(context.world, "reading data.mask", [&] {
        for (auto const& files : {data.train, data.validation, data.test}) {
            if (context.world.is_root() && !config::share_of(files)) {
                data::look_through_mask(train::dataset_options(data, files, ""));
            }
        }
    });
}

/// Collective  over the world
void dry_run(CheckContext const& context, config::Deck const& deck, double write_rate) {
    train::DryRun dry_run(context.world, deck);
    auto const& size = dry_run.size();
    check_samples(context, size);
    auto const step_s = median_step(context.world, dry_run);
    check_exchange(context, size);
    check_memory(context, dry_run);
    auto const samples = static_cast<double>(size.samples_per_step);
    auto const epoch_s = step_s * static_cast<double>(size.steps_per_epoch);
    context.report.green("training",
                         concat("a step of ", count_text(size.samples_per_step), " samples takes ",
                                seconds_text(step_s), ": ", fixed(samples / step_s, 0),
                                " samples/s; an epoch takes ", seconds_text(epoch_s), ", the run ",
                                seconds_text(epoch_s * size.epochs)));
    check_checkpoints(context, size, write_rate,
                      static_cast<double>(deck.checkpoint.every_steps) * step_s);
}

} // namespace

void check_training(CheckContext const& context, config::Deck const& deck, double write_rate) {
    try {
        check_mask(context, deck.data);
        if (auto const slow =
                train::slow_precision(deck.precision, context.world.device() == "cpu")) {
            context.report.add(
                {Colour::yellow, "precision", concat(slow->what, ": ", slow->why), slow->next});
        }
        dry_run(context, deck, write_rate);
    } catch (AgreedError const& error) {
        auto const& text = error.text();
        context.report.add({Colour::red, "training", concat(text.what, ": ", text.why), text.next});
    }
}

} // namespace lockstep::measure
