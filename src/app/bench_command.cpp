#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"

#include <iostream>

#include "command_help.hpp"

namespace lockstep::app {

namespace {

constexpr char const* bench_help =
    R"(lockstep bench allreduce [--sizes 1M,25M] [--variant ordered|mpi|copy] [--repeats N] [--json]
    The sum of an array of floats over all ranks, known to all of them; all variants without one
    named. ordered: in tree order, as in training; mpi: MPI_Allreduce; copy: no sum, each rank
    copies as many bytes out of its neighbour's shared memory at once, which bounds the others.
    A repetition takes as long as its slowest rank, after a barrier. M is 2^20 bytes.
lockstep bench loader [--kind small|large|deflate|shards|order]
                      [--variant loader|memory|baseline|start] [--batch N] [--workers N]
                      [--repeats N] [--directory DIR] [--json]
lockstep bench loader --files FILES [--inputs NAMES] [--targets NAMES] [--sample-per-file]
                      [--shuffle full|block|none]
    An epoch read by each rank's loader, from files that are in the page cache. small: 60,000 samples
    of 784 bytes; large: of 4 MiB; deflate: compressed chunks. memory: as with data.cache = memory.
    baseline: what bounds it: for small, threads that copy and convert out of an array; for large,
    one thread that reads the file from end to end; for deflate, threads that only decompress.
    shards: 1,000 files; start: from opening files to the first batch on every rank; order: the first
    sample of an epoch of 10^12. memory_bytes of a loader is what a rank took for it at most,
    allowed_bytes the batches made ahead and 64 MiB.
lockstep bench step [--model mlp18m|cnn] [--variant engine|native|dp|alone|bare]
                    [--batch N] [--steps N]
                    [--json]
    One training step with AdamW on fresh random images, each rank a replica. engine: as in
    training; alone: every rank trains by itself, without a word to the others; bare: that, by a
    plain LibTorch loop and its own AdamW. A step takes the mean of all ranks' times.
lockstep bench checkpoint [--mb 1000] [--directory DIR] [--variant NAME] [--repeats N] [--json]
    A checkpoint of a state of so many megabytes, which all ranks hold together, in DIR. synchronous:
    until it is durable; stall: for which an asynchronous one stops training; checksum: what its
    hashes take of that; load: verified and read. raw-write, raw-read and copy: the same bytes by
    pwrite and fsync, by pread, and in memory, which bound the others.

Ranks are those of mpirun; bind each to a core of its own: mpirun --bind-to core -n 2 lockstep bench
step. `./bootstrap bench` compares with gloo and PyTorch's DDP in one run.
)";

} // namespace

ExitCode bench_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    bool const asked = take_flag(arguments, "--help");
    auto const what = arguments.empty() ? std::string() : arguments.front();
    if (asked || arguments.empty()) {
        auto const of_one = help_of(bench_help, concat("lockstep bench ", what));
        std::cout << (of_one.empty() ? bench_help : of_one);
        return asked ? ExitCode::ok : ExitCode::usage;
    }
    arguments.erase(arguments.begin());
    Invocation const rest{arguments, invocation.argc, invocation.argv};
    if (what == "allreduce") {
        return bench_allreduce_command(rest);
    }
    if (what == "loader") {
        return bench_loader_command(rest);
    }
    if (what == "step") {
        return train_side_command("bench step", rest);
    }
    if (what == "checkpoint") {
        return bench_checkpoint_command(rest);
    }
    throw Error(ExitCode::usage,
                {concat("lockstep bench ", what),
                 "there are allreduce, step, loader and checkpoint", "See lockstep bench --help"});
}

} // namespace lockstep::app
