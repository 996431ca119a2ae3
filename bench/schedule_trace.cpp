// Writes what the ranks of a job would send each other in one step, as a time-independent trace for
// SimGrid: made by the functions that training follows, so that what is simulated is what runs. One
// rank of each host is traced; the other ranks of a host do the same on links of their own.

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
};

constexpr double flops_per_s = 1e10; ///< of the simulated hosts
constexpr int down = 1 << 20;        ///< in tags of the way back

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
        compute(job_.forward_s);
        auto const buckets = partition_.buckets();
        auto const stages = static_cast<int>(schedule_.stages().size());
        // Backward gives one bucket after the other; meanwhile each earlier one is a stage further.
        for (int slot = 0; slot <= buckets + stages; ++slot) {
            if (slot < buckets) {
                compute(job_.backward_s / buckets);
            }
            for (int stage = 0; stage <= stages; ++stage) {
                int const bucket = slot - stage;
                if (bucket < 0 || bucket >= buckets) {
                    continue;
                }
                if (stage > 0) {
                    add(stage - 1, bucket);
                }
                if (stage < stages) {
                    exchange(stage, bucket);
                }
            }
        }
        std::int64_t own = 0;
        for (auto const& range : partition_.owned(host_ * job_.ranks_per_host)) {
            own += range.count();
        }
        compute(job_.update_s * static_cast<double>(own) / static_cast<double>(job_.elements));
        for (int stage = stages - 1; stage >= 0; --stage) {
            give_back(stage);
        }
        line("finalize");
    }

    std::int64_t messages() const { return messages_; }

  private:
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
    /// Each bucket by itself, the last one first, as HostGather does.
    void give_back(int stage) {
        auto const for_each_bucket = [&](auto const& messages, auto const& act) {
            for (auto const& message : messages) {
                for (int bucket = partition_.buckets() - 1; bucket >= 0; --bucket) {
                    act(message, tag(message, bucket) + down, elements_back(message, bucket));
                }
            }
        };
        for_each_bucket(at(stage).sends, [&](auto const&... what) { receive(what...); });
        for_each_bucket(at(stage).receives, [&](auto const&... what) { send(what...); });
        for_each_bucket(at(stage).sends, [&](auto const&... what) { await(what...); });
    }

    Job const& job_;
    Partition const& partition_;
    int host_;
    std::ofstream out_;
    HostSchedule schedule_;
    std::int64_t messages_ = 0;
};

[[noreturn]] void usage() {
    std::fputs("schedule_trace DIRECTORY hosts=H ranks_per_host=R elements=N bucket=N "
               "route=halving|direct\n"
               "    forward_s=S backward_s=S update_s=S\n",
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
