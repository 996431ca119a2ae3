#include "lockstep/base/clock.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/checkpoint/background_writer.hpp"
#include "lockstep/checkpoint/reader.hpp"
#include "lockstep/checkpoint/seal.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/collectives.hpp"
#include "lockstep/comm/session.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <optional>
#include <unistd.h>

#include "command.hpp"
#include "measurement.hpp"

namespace lockstep::app {

namespace {

using comm::Communicator;

constexpr std::array<char const*, 3> arrays{"state/parameters", "state/exp_avg",
                                            "state/exp_avg_sq"};

/// A state as AdamW has it, of which each rank holds a slice.
class State {
  public:
    State(Communicator const& world, std::uint64_t bytes)
        : elements_(bytes / sizeof(float) / arrays.size()), first_(bound(world.rank(), world)),
          slice_(bound(world.rank() + 1, world) - first_), values_(slice_ * arrays.size()) {
        for (std::size_t at = 0; at < values_.size(); ++at) {
            values_[at] = static_cast<float>((at * 2654435761U) % 1000003); // no disk may guess it
        }
    }

    checkpoint::Snapshot snapshot() const {
        checkpoint::Snapshot snapshot;
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            snapshot.arrays.push_back({arrays[i], h5::Type::f32, elements_});
            snapshot.parts.push_back(
                {{first_, bytes().subspan(i * slice_ * sizeof(float), slice_ * sizeof(float))}});
        }
        return snapshot;
    }
    std::span<std::byte const> bytes() const { return std::as_bytes(std::span(values_)); }
    std::uint64_t whole_bytes() const { return elements_ * sizeof(float) * arrays.size(); }
    std::uint64_t first_byte() const { return first_ * sizeof(float) * arrays.size(); }
    std::uint64_t first() const { return first_; }

  private:
    std::uint64_t bound(int rank, Communicator const& world) const {
        return elements_ * static_cast<std::uint64_t>(rank) /
               static_cast<std::uint64_t>(world.size());
    }

    std::uint64_t elements_;
    std::uint64_t first_; ///< of each array
    std::uint64_t slice_;
    std::vector<float> values_;
};

/// So that the next read comes from the disk.
void forget(std::filesystem::path const& path) {
    int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
}

class Bench {
  public:
    Bench(Communicator const& world, std::uint64_t bytes, std::filesystem::path directory)
        : world_(world), state_(world, bytes), copy_(state_.bytes().size()),
          directory_(std::move(directory)), store_(directory_, 1) {
        if (comm::threads_may_speak()) {
            background_.emplace(world);
            background_->reserve(state_.snapshot());
        }
    }

    /// The longest of all ranks, after a start together.
    double timed(std::function<void()> const& work) const {
        comm::barrier(world_);
        Stopwatch const watch;
        work();
        return comm::all_reduce(world_, watch.seconds(), comm::Reduce::maximum);
    }

    void settle() const;
    void forget_last() const;
    double raw_write();
    double write();
    double copy();
    double stall();
    double hash();
    double raw_read();
    double load();

    std::uint64_t bytes() const { return state_.whole_bytes(); }
    bool has_background() const { return background_.has_value(); }

  private:
    std::filesystem::path raw() const { return directory_ / "raw"; }

    Communicator const& world_;
    State state_;
    std::vector<std::byte> copy_;
    std::filesystem::path directory_;
    checkpoint::Store store_;
    std::optional<checkpoint::BackgroundWriter> background_;
};

/// Until the disk has nothing to do.
void Bench::settle() const {
    if (world_.is_root()) {
        ::sync();
    }
    comm::barrier(world_);
}

/// As many bytes, each rank its own part of one file that is claimed before, to the disk. The file
/// of the turn before stays until it is replaced, as a checkpoint does.
double Bench::raw_write() {
    auto const next = directory_ / "raw-next";
    comm::agree(world_, "making the raw file", [&] {
        if (world_.is_root()) {
            File::create(next).claim_space(state_.whole_bytes());
        }
    });
    auto const seconds = timed([&] {
        comm::agree(world_, "writing the raw file", [&] {
            auto const file = File::open_write(next);
            file.write_at(state_.first_byte(), state_.bytes());
            file.sync();
        });
    });
    comm::agree(world_, "keeping the raw file", [&] {
        if (world_.is_root()) {
            std::filesystem::rename(next, raw());
        }
    });
    return seconds;
}

/// Making room for the next is timed on no side.
void Bench::forget_last() const {
    if (world_.is_root()) {
        std::error_code ignored; // there may be none yet
        std::filesystem::remove(store_.path_for(1), ignored);
        ::sync();
    }
}

double Bench::write() {
    forget_last();
    return timed([&] { store_.save(world_, state_.snapshot(), 1, "bench"); });
}

double Bench::copy() {
    return timed([&] { std::ranges::copy(state_.bytes(), copy_.begin()); });
}

double Bench::stall() {
    forget_last();
    auto const snapshot = state_.snapshot();
    auto const seconds = timed([&] { background_->start(snapshot, store_, 1, "bench"); });
    background_->wait();
    return seconds;
}

/// What the seal's checksums cost a write: this rank's share of the blocks, read from memory.
double Bench::hash() {
    auto const file = File::open_read(store_.path_for(1));
    auto const seal = checkpoint::read_seal(file);
    return timed([&] {
        for (auto block = static_cast<std::uint64_t>(world_.rank()); block < seal.hashes.size();
             block += static_cast<std::uint64_t>(world_.size())) {
            checkpoint::hash_of_block(file, seal, block);
        }
    });
}

double Bench::raw_read() {
    forget(raw());
    return timed([&] { File::open_read(raw()).read_at(state_.first_byte(), copy_); });
}

double Bench::load() {
    auto const path = store_.path_for(1);
    forget(path);
    return timed([&] {
        checkpoint::verify_together(world_, path);
        checkpoint::Reader const reader(path);
        auto into = std::span(copy_);
        auto const slice = copy_.size() / arrays.size();
        for (auto const* array : arrays) {
            reader.read(array, state_.first(), into.first(slice));
            into = into.subspan(slice);
        }
    });
}

struct Options {
    std::uint64_t bytes = 0;
    std::int64_t repeats = 0;
    std::filesystem::path directory;
    std::string variant; ///< empty: all
    bool json = false;
};

Options parsed(std::vector<std::string> arguments) {
    Options options;
    options.json = take_flag(arguments, "--json");
    options.bytes =
        static_cast<std::uint64_t>(whole_number("--mb", take_option(arguments, "--mb", "1000"))) *
        1'000'000;
    options.repeats = whole_number("--repeats", take_option(arguments, "--repeats", "5"));
    options.variant = take_option(arguments, "--variant", "");
    options.directory = take_option(arguments, "--directory", ".");
    expect_arguments(arguments, 0, 0,
                     "lockstep bench checkpoint [--mb 1000] [--directory DIR] [--json]");
    return options;
}

void measure(Communicator const& world, Options const& options,
             std::filesystem::path const& directory) {
    Bench bench(world, options.bytes, directory);
    std::vector<std::pair<std::string, double (Bench::*)()>> variants{
        {"raw-write", &Bench::raw_write},
        {"synchronous", &Bench::write},
        {"copy", &Bench::copy},
        {"stall", &Bench::stall},
        {"checksum", &Bench::hash},
        {"raw-read", &Bench::raw_read},
        {"load", &Bench::load}};
    if (!bench.has_background()) {
        std::erase_if(variants, [](auto const& each) { return each.second == &Bench::stall; });
    }
    std::vector<std::vector<double>> seconds(variants.size());
    // Each is first as often as the others, and begins when the disk has written what others left.
    // The round before the first makes what some need of others.
    for (std::int64_t repeat = -1; repeat < options.repeats; ++repeat) {
        for (std::size_t turn = 0; turn < variants.size(); ++turn) {
            auto const i = (turn + static_cast<std::size_t>(repeat + 1)) % variants.size();
            bench.settle();
            auto const taken = (bench.*variants[i].second)();
            if (repeat >= 0) {
                seconds[i].push_back(taken);
            }
        }
    }
    for (std::size_t i = 0; world.is_root() && i < variants.size(); ++i) {
        if (!options.variant.empty() && options.variant != variants[i].first) {
            continue; // all are done: some need what others leave
        }
        auto const bytes = static_cast<double>(bench.bytes());
        print(std::cout,
              {"checkpoint",
               variants[i].first,
               bench.bytes(),
               world.size(),
               seconds[i],
               {{"bytes_per_s", bytes / median(seconds[i])}}},
              options.json);
        std::cout << std::flush;
    }
}

} // namespace

ExitCode bench_checkpoint_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            Options options;
            std::string place;
            comm::agree(world, "reading the command line", [&] {
                options = parsed(invocation.arguments);
                if (world.is_root()) {
                    auto const path = options.directory / concat("lockstep-bench-", ::getpid());
                    make_directories(path);
                    place = path.string();
                }
            });
            comm::broadcast_text(world, place);
            std::optional<AgreedError> failure;
            try {
                measure(world, options, place);
            } catch (AgreedError const& error) {
                failure = error;
            }
            comm::barrier(world); // nobody still reads what is removed
            if (world.is_root()) {
                std::error_code ignored;
                std::filesystem::remove_all(place, ignored);
            }
            if (failure) {
                throw AgreedError(*failure);
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
