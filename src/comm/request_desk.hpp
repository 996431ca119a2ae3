#pragma once

#include "comm/speaker_scope.hpp"
#include "lockstep/comm/communicator.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace lockstep::comm {

/// Ranks answer requests of all ranks, each on a thread of its own, while their main threads do
/// other work. For parts of a job that get on at different speeds.
class RequestDesk {
  public:
    using Answer = std::function<std::string(int rank, std::string const& request)>;

    /// `answer` is called one call at a time, and throws nothing; empty: this rank is not asked.
    /// `world` must outlive it.
    ///
    /// Collective  over `world`
    /// Throws      AgreedError 69 where MPI does not let several threads speak
    RequestDesk(Communicator const& world, Answer answer);
    RequestDesk(RequestDesk const&) = delete;
    RequestDesk& operator=(RequestDesk const&) = delete;
    /// Collective  over the world, unless an exception is unwinding
    ~RequestDesk();

    /// What a rank answers. One thread of this rank at a time. Not collective.
    ///
    /// Throws  Error 69
    std::string ask(int rank, std::string const& request);

    /// Tells all other ranks something once, without a text; on rank 0, from any thread. Not
    /// collective.
    void announce();
    /// Whether rank 0 has announced it. Not collective; costs about a microsecond.
    bool was_announced();

    /// No more requests come. The other ranks' last requests were answered.
    ///
    /// Collective  over the world
    void close();

  private:
    void serve(std::stop_token const& stop);
    std::string answer(int from, std::string const& request);

    Communicator requests_;
    std::mutex mutex_; ///< of `answer_`
    Answer answer_;
    std::atomic<bool> announced_{false};
    bool closed_ = false;
    std::optional<SpeakerScope> speaker_;
    std::jthread thread_; ///< it uses everything above
};

} // namespace lockstep::comm
