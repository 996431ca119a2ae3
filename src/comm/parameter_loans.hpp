#pragma once

#include "comm/hosts.hpp"
#include "comm/partition.hpp"
#include "comm/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "arrivals.hpp"
#include "host_memory.hpp"

namespace lockstep::comm {

/// Parameters that a host has only while its ranks use them: of each bucket, the shards of its own
/// ranks stay, and those of other hosts are asked for when they are lent, of one rank of each host,
/// and lose their memory when the last rank of the host has given them back. A rank asks for what
/// it needs when it needs it, so that neither order nor number need be the same on all ranks; a
/// request names the version of the parameters that it wants, and waits until its owner has it.
///
/// Who is asked has to call `progress` until all ranks have what they need: between operators, and
/// wherever it waits.
class ParameterLoans {
  public:
    /// What it is given outlives it.
    struct Setup {
        Wire& wire; ///< for these messages alone
        Partition const& partition;
        Hosts const& hosts;
        HostMemory memory;
        Arrivals& arrivals; ///< of the host's ranks
        int rank = 0;
        double timeout_seconds = 300;
    };
    explicit ParameterLoans(Setup const& parts);
    ParameterLoans(ParameterLoans const&) = delete;
    ParameterLoans& operator=(ParameterLoans const&) = delete;
    ~ParameterLoans();

    /// This rank has updated its shards, and has nothing on loan: from now on loans have these
    /// values. Not collective.
    void publish();
    /// Lends this rank bucket `index`, unless it has it. Not collective.
    ///
    /// Throws  Error 76 naming a rank that does not come
    void lend(int index);
    /// Throws the error of a call of `lend`: who could not stop then does not wait for ranks that
    /// wait for this one.
    void require() const;
    /// Begins to fetch it, where that need not wait for anybody.
    void ask(int index);
    void give_back(int index);
    void give_back_all();
    /// Answers others, and notes what has arrived; does not wait.
    void progress();
    /// Waits until nothing that this rank sent is on its way.
    void wait_sent();
    /// Waits, answering others, until all ranks are here, who ask for nothing any more.
    ///
    /// Collective  over all ranks
    void meet();

    /// What was sent for others since the last call.
    std::int64_t take_bytes() noexcept;
    std::int64_t take_messages() noexcept;

  private:
    struct Request {
        std::int32_t bucket = 0;
        std::uint32_t version = 0;
    };
    /// A rank that asks this one.
    struct Asker {
        int rank = 0;
        std::shared_ptr<Request> incoming;
        std::unique_ptr<Flight> flight;
        std::deque<Request> waiting;
    };
    enum class Own : std::uint8_t { none, fetching, held };
    struct Fetch {
        int bucket = 0;
        std::unique_ptr<Flight> flight;
    };

    bool is_published() const { return parts_.arrivals.all_reached(published_); }
    std::vector<int> const& own_ranks() const { return ranks_of(host_); }
    std::vector<int> const& ranks_of(int host) const {
        return parts_.hosts.ranks[static_cast<std::size_t>(host)];
    }
    Loan& loan(int bucket) const { return parts_.memory.loans()[bucket]; }
    std::span<float> shard(int bucket, int owner) const;
    void listen(Asker& asker);
    void answer(Asker& asker, Request const& request);
    bool try_take(int bucket);
    void fetch(int bucket);
    template <class Condition>
    void wait_until(Condition const& condition);

    Setup parts_;
    int host_;
    std::vector<std::vector<Range>> foreign_; ///< of each bucket, what other hosts own
    std::vector<Own> own_;                    ///< by bucket
    std::vector<Asker> askers_;
    std::vector<Fetch> fetches_; ///< under way
    std::vector<std::unique_ptr<Flight>> leaving_;
    std::uint32_t version_ = 0;
    std::uint32_t published_ = 0; ///< arrivals of each rank of the host by then
    std::int64_t bytes_ = 0;
    std::int64_t messages_ = 0;
    std::exception_ptr failure_;
};

} // namespace lockstep::comm
