// Writes what the ranks of a job would send each other in some steps, as a time-independent trace
// for SimGrid: made by the functions that training follows, so that what is simulated is what runs.
// One rank of each host is traced; the other ranks of a host do the same on links of their own.

#include "base/text.hpp"
#include "comm/host_schedule.hpp"
#include "comm/partition.hpp"
#include "comm/route.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace lockstep;
using namespace lockstep::comm;

namespace {

struct Job {
    int hosts = 2;
    int ranks_per_host = 1;
    std::int64_t elements = 1 << 20;
    std::int64_t bucket = (25 << 20) / 4;
    Route route = Route::halving;
    double forward_s = 0;
    double backward_s = 0;
    double update_s = 0;        ///< of all parameters
    double bytes_per_s = 200e9; ///< that additions read and write
    int steps = 1;
    bool lends = false; ///< optimizer.update = fully-sharded
};

constexpr double flops_per_s = 1e10; ///< of the simulated hosts
constexpr int down = 1 << 20;        ///< in tags of the way back
constexpr int requests = 1 << 21;    ///< in tags of what asks for a bucket that is lent
constexpr int answers = 1 << 22;     ///< in tags of an owner's shard of it

/// The trace of the first rank of one host.
class Trace {
  public:
    Trace(Job const& job, Partition const& partition, std::vector<TreeNode> const& nodes,
          std::vector<Partial> const& partials, Hosts const& hosts, int host,
          std::filesystem::path const& file)
        : job_(job), partition_(partition), host_(host), out_(file),
          schedule_(root_of(nodes), partials, hosts, host * job.ranks_per_host, job.route) {}

    void write() {
        line("init");
        for (int step = 0; step < job_.steps; ++step) {
            auto const before = messages_;
            forward();
            messages_ = job_.lends ? messages_ - before : 0; // else a gather of the step before
            backward();
            update();
        }
        if (!job_.lends) {
            wait_for_bucket(0); // which comes last
        }
        line("finalize");
    }

    /// In a step.
    std::int64_t messages() const { return messages_; }

  private:
    int stages() const { return static_cast<int>(schedule_.stages().size()); }

    /// A bucket after the other, from the last one on, as it is gathered.
    void forward() {
        auto const last = partition_.buckets() - 1;
        if (job_.lends) {
            ask(last);
            answer(last);
            await_answers(last);
        }
        for (int bucket = last; bucket >= 0; --bucket) {
            wait_for_bucket(bucket);
            compute_with(bucket - 1, job_.forward_s / partition_.buckets());
            if (has_updated_) {
                gather_on();
            }
        }
    }
    /// Gives one bucket after the other; meanwhile each earlier one is a stage further.
    void backward() {
        auto const buckets = partition_.buckets();
        for (int slot = 0; slot <= buckets + stages(); ++slot) {
            if (slot < buckets) { // those of the end of forward are there
                compute_with(slot > 0 && slot + 1 < buckets ? slot + 1 : -1,
                             job_.backward_s / buckets);
            }
            for (int stage = 0; stage <= stages(); ++stage) {
                int const bucket = slot - stage;
                if (bucket < 0 || bucket >= buckets) {
                    continue;
                }
                if (stage > 0) {
                    add(stage - 1, bucket);
                }
                if (stage < stages()) {
                    exchange(stage, bucket);
                }
            }
        }
    }
    void update() {
        std::int64_t own = 0;
        for (auto const& range : partition_.owned(host_ * job_.ranks_per_host)) {
            own += range.count();
        }
        compute(job_.update_s * static_cast<double>(own) / static_cast<double>(job_.elements));
        if (job_.lends) {
            return;
        }
        gathered_.clear();
        has_updated_ = true;
        gather_on();
    }

    /// Each bucket by itself, the last one first, as HostGather does: those under way get a stage
    /// further, and one more begins.
    void gather_on() {
        auto const first = partition_.buckets() - 1;
        for (std::size_t place = 0; place < gathered_.size(); ++place) {
            auto& done = gathered_[place];
            if (done < stages()) {
                await_back(stages() - 1 - done, first - static_cast<int>(place));
                if (++done < stages()) {
                    give_back(stages() - 1 - done, first - static_cast<int>(place));
                }
            }
        }
        if (std::ssize(gathered_) < partition_.buckets()) {
            if (stages() > 0) {
                give_back(stages() - 1, first - static_cast<int>(gathered_.size()));
            }
            gathered_.push_back(0);
        }
    }
    void wait_for_bucket(int bucket) {
        auto const place = static_cast<std::size_t>(partition_.buckets() - 1 - bucket);
        while (has_updated_ && (place >= gathered_.size() || gathered_[place] < stages())) {
            gather_on();
        }
    }

    /// Computes a bucket's operators, between which the rank answers others; meanwhile the `next`
    /// one, if any, is fetched where parameters are lent, as LentBuckets does.
    void compute_with(int next, double seconds) {
        if (!job_.lends || next < 0) {
            compute(seconds);
            return;
        }
        constexpr double until_answered = 0.25;
        ask(next);
        compute(until_answered * seconds);
        answer(next);
        compute((1 - until_answered) * seconds);
        await_answers(next);
    }
    /// One rank of a host asks one of each other host, for the shards of all ranks there, on its
    /// own link.
    template <class Action>
    void with_owners(int bucket, int of_host, Action const& action) {
        for (int owner = 0; owner < job_.ranks_per_host; ++owner) {
            auto const count =
                partition_.shard(bucket, of_host * job_.ranks_per_host + owner).count();
            if (count > 0) {
                action(answers + owner * 4096 + bucket, count);
            }
        }
    }
    template <class Action>
    void with_others(Action const& action) {
        for (int host = 0; host < job_.hosts; ++host) {
            if (host != host_) {
                action(host);
            }
        }
    }
    void ask(int bucket) {
        with_others([&](int host) {
            line("irecv", host, requests + bucket, 2, 5);
            with_owners(bucket, host,
                        [&](int tag, std::int64_t count) { line("irecv", host, tag, count, 5); });
            line("isend", host, requests + bucket, 2, 5);
            ++messages_;
        });
    }
    void answer(int bucket) {
        with_others([&](int host) {
            line("wait", host, host_, requests + bucket);
            with_owners(bucket, host_, [&](int tag, std::int64_t count) {
                line("isend", host, tag, count, 5);
                ++messages_;
            });
        });
    }
    void await_answers(int bucket) {
        with_others([&](int host) {
            with_owners(bucket, host,
                        [&](int tag, std::int64_t /*count*/) { line("wait", host, host_, tag); });
        });
    }

    template <class... Words>
    void line(Words const&... words) {
        out_ << host_;
        ((out_ << ' ' << words), ...);
        out_ << '\n';
    }
    void compute(double seconds) {
        if (seconds > 0) {
            line("compute", seconds * flops_per_s);
        }
    }
    std::int64_t elements(HostSchedule::Message const& message, int bucket) const {
        std::int64_t sum = 0;
        for (auto const& entry : message.entries) {
            sum += partition_.shard(bucket, entry.owner).count();
        }
        return sum;
    }
    static int tag(HostSchedule::Message const& message, int bucket) {
        return message.tag * 4096 + bucket;
    }
    int partner(HostSchedule::Message const& message) const {
        return message.partner / job_.ranks_per_host;
    }
    HostSchedule::Stage const& at(int stage) const {
        return schedule_.stages()[static_cast<std::size_t>(stage)];
    }
    // Empty messages are neither sent nor awaited.
    void receive(HostSchedule::Message const& message, int tag, std::int64_t elements) {
        if (elements > 0) {
            line("irecv", partner(message), tag, elements, 5);
        }
    }
    void send(HostSchedule::Message const& message, int tag, std::int64_t elements) {
        if (elements > 0) {
            line("isend", partner(message), tag, elements, 5);
            ++messages_;
        }
    }
    void await(HostSchedule::Message const& message, int tag, std::int64_t elements) {
        if (elements > 0) {
            line("wait", partner(message), host_, tag);
        }
    }
    void exchange(int stage, int bucket) {
        for (auto const& message : at(stage).receives) {
            receive(message, tag(message, bucket), elements(message, bucket));
        }
        for (auto const& message : at(stage).sends) {
            send(message, tag(message, bucket), elements(message, bucket));
        }
    }
    void add(int stage, int bucket) {
        for (auto const& message : at(stage).receives) {
            await(message, tag(message, bucket), elements(message, bucket));
        }
        double bytes = 0;
        for (int const owner : at(stage).owners) {
            bytes += 4.0 * static_cast<double>(partition_.shard(bucket, owner).count()) *
                     static_cast<double>(at(stage).children.size() + 1);
        }
        compute(bytes / job_.bytes_per_s);
    }
    std::int64_t elements_back(HostSchedule::Message const& message, int bucket) const {
        std::int64_t sum = 0;
        for (int const owner : message.owners) {
            sum += partition_.shard(bucket, owner).count();
        }
        return sum;
    }
    void give_back(int stage, int bucket) {
        for (auto const& message : at(stage).sends) {
            receive(message, tag(message, bucket) + down, elements_back(message, bucket));
        }
        for (auto const& message : at(stage).receives) {
            send(message, tag(message, bucket) + down, elements_back(message, bucket));
        }
    }
    void await_back(int stage, int bucket) {
        for (auto const& message : at(stage).sends) {
            await(message, tag(message, bucket) + down, elements_back(message, bucket));
        }
    }

    Job const& job_;
    Partition const& partition_;
    int host_;
    std::ofstream out_;
    HostSchedule schedule_;
    bool has_updated_ = false;  ///< there was an update
    std::vector<int> gathered_; ///< stages of the buckets, from the last one on, that have begun
    std::int64_t messages_ = 0;
};

[[noreturn]] void usage() {
    std::fputs("schedule_trace DIRECTORY hosts=H ranks_per_host=R elements=N bucket=N "
               "route=halving|direct\n"
               "    forward_s=S backward_s=S update_s=S steps=N lends=0|1\n",
               stderr);
    std::exit(64);
}

Job job_of(std::map<std::string, std::string> words) {
    Job job;
    auto const number = [&](char const* name, auto& value) {
        if (auto const found = words.find(name); found != words.end()) {
            value = static_cast<std::decay_t<decltype(value)>>(std::atof(found->second.c_str()));
            words.erase(found);
        }
    };
    number("hosts", job.hosts);
    number("ranks_per_host", job.ranks_per_host);
    number("elements", job.elements);
    number("bucket", job.bucket);
    number("forward_s", job.forward_s);
    number("backward_s", job.backward_s);
    number("update_s", job.update_s);
    number("steps", job.steps);
    number("lends", job.lends);
    job.route = words["route"] == "direct" ? Route::direct : Route::halving;
    words.erase("route");
    if (!words.empty()) {
        usage();
    }
    return job;
}

} // namespace

int main(int count, char** words) {
    if (count < 2) {
        usage();
    }
    std::map<std::string, std::string> options;
    for (int i = 2; i < count; ++i) {
        auto const parts = split(words[i], '=');
        if (parts.size() != 2) {
            usage();
        }
        options[parts[0]] = parts[1];
    }
    auto const job = job_of(options);
    std::filesystem::path const directory = words[1];
    std::filesystem::create_directories(directory);
    int const ranks = job.hosts * job.ranks_per_host;
    auto const nodes = subtrees_of_ranks(ranks, ranks);
    auto const hosts = filled_hosts(ranks, job.ranks_per_host);
    auto const partials = partials_of(root_of(nodes), nodes, hosts);
    auto const blocks = (job.elements + reduction_block - 1) / reduction_block;
    Partition const partition(blocks * reduction_block, ranks, (1 << 20) / 4, job.bucket);
    std::ofstream index(directory / "index");
    std::int64_t max = 0;
    for (int host = 0; host < job.hosts; ++host) {
        auto const file = directory / concat("host", host, ".ti");
        index << file.string() << '\n';
        Trace trace(job, partition, nodes, partials, hosts, host, file);
        trace.write();
        max = std::max(max, trace.messages());
    }
    std::printf("%d buckets, %d rounds, at most %lld messages per rank\n", partition.buckets(),
                rounds_of(root_of(nodes), partials, job.route), static_cast<long long>(max));
    return 0;
}
