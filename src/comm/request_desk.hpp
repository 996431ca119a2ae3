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
/// other work. For parts of a job that advance at different speeds.
class RequestDesk {
  public:
    using Answer = std::function<std::string(int rank, std::string const& request)>;

    /// `answer` is called by one thread at a time, and must not throw; empty: this rank is never
    /// asked. `world` must outlive it.
    ///
    /// Collective  over `world`
    /// Throws      AgreedError 69 where MPI does not provide MPI_THREAD_MULTIPLE
    RequestDesk(Communicator const& world, Answer answer);
    RequestDesk(RequestDesk const&) = delete;
    RequestDesk& operator=(RequestDesk const&) = delete;
    /// Stops answering. Not collective: after an error the other ranks may never come to a common
    /// end.
    ~RequestDesk() = default;

    /// Sends a request to a rank and returns its answer. One thread of this rank at a time. Not
    /// collective.
    ///
    /// Throws  Error 69
    std::string ask(int rank, std::string const& request);

    /// Sends all other ranks a signal without a text, once; on rank 0, from any thread. Not
    /// collective.
    void announce();
    /// Whether rank 0 has called `announce`. Not collective; costs about a microsecond.
    bool was_announced();

    /// Ends the answering of requests; the other ranks' last requests have been answered when it
    /// returns. To be called where no error has ended this rank's work.
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
    std::optional<SpeakerScope> speaker_;
    std::jthread thread_; ///< it uses everything above
};

} // namespace lockstep::comm
