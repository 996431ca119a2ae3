#pragma once

#include "federate/admission.hpp"
#include "federate/federation.hpp"
#include "federate/roster.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::federate {

/// How far a coordinator got.
struct Progress {
    std::vector<std::string> lines;   ///< what it did, for people
    std::vector<std::string> waiting; ///< names of sites without which the round does not continue
    bool finished = false;            ///< no round is left, or the budget is spent
};

/// The coordinator of a federation: opens the phases of each round, adds up, writes the next model.
/// It decides once per phase, by a signed list; every step can be killed and repeated. With noise,
/// a round whose draw is empty, or smaller than secure aggregation needs, ends at once with noise
/// only.
class Coordinator {
  public:
    /// Throws  Error 64 where the key is not that of the federation's coordinator
    Coordinator(Federation const& federation, PrivateKey const& key);

    /// Which sites take part.
    Admission const& admission() const noexcept { return admission_; }

    /// Continues until sites have to answer. `close`: does not wait for those that are missing.
    enum class Waiting { for_all, for_nobody };
    /// Throws  Error 66 where a phase is closed with too few sites, or where so many were removed
    ///         that too few are left: the round is refused
    Progress advance(Waiting waiting) const;

    /// Ends the round without a result: the model stays as it is. Where the key's journal has a
    /// noisy sum of this round, somebody may know it, and epsilon counts the round.
    ///
    /// Throws  Error 64 where no round has begun, or the one that has must end with its result
    std::string abandon() const;

  private:
    bool said(std::int64_t round, std::string const& phase) const;
    Message message(std::int64_t round, std::string const& phase) const;
    void say(Message const& message) const;
    std::vector<std::string> sites_of(std::int64_t round, std::string const& phase) const;
    bool can_be_summed(std::int64_t round) const;
    Secret noise_key(std::int64_t round, std::string const& sum) const;
    void plan(std::int64_t round) const;
    char const* next_list(std::int64_t round) const;
    bool close_phase(std::int64_t round, std::string const& phase, Waiting waiting,
                     Progress& progress) const;
    void require_own_files(std::int64_t round, std::string const& answered) const;
    std::string fault_of(std::int64_t round, std::string const& phase, std::string const& site,
                         Message const& message) const;
    bool finish_round(std::int64_t round, Progress& progress) const;
    void publish_noise(std::int64_t round, Progress& progress) const;
    bool unmask(std::int64_t round, std::vector<std::uint32_t>& sum, Progress& progress) const;
    /// `abandoned_sum`: of a round that is abandoned although this sum of it was made.
    void write_result(std::int64_t round, ModelVector const& model,
                      std::vector<std::string> const& counted,
                      std::string const& abandoned_sum = {}) const;

    Federation const& federation_;
    PrivateKey const& key_;
    Admission admission_;
};

} // namespace lockstep::federate
