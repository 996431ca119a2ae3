#pragma once

#include "federate/federation.hpp"
#include "federate/key_shares.hpp"
#include "federate/roster.hpp"
#include "federate/site_control.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::federate {

/// What a site must find out or compute before it can answer.
enum class Need { nothing, samples, training };

/// Where a site stands after it has answered all that it can.
struct Standing {
    Need need = Need::nothing;
    std::int64_t round = 0;
    std::string words; ///< for people
};

/// A site's part in the rounds of a federation. Every step can be killed and repeated: what was
/// sent is not sent again, and never with other contents.
class Site {
  public:
    /// `local`: a directory that only this site uses, for what is kept of each round.
    ///
    /// Throws  Error 65 where the key has been used with another federation of this id
    Site(Federation const& federation, PrivateKey const& key, std::filesystem::path local);

    std::string const& name() const noexcept { return key_.name(); }

    /// Sends the site's card: its name and public key. From then on the site trusts this
    /// coordinator and this charter alone.
    ///
    /// Throws  Error 73 where a site with another key has joined under this name
    void join() const;

    /// Answers what the round asks for, as far as possible; `samples` once they are known.
    ///
    /// Throws  Error 65 or 66 for messages of the coordinator that are refused or missing, and for
    ///         a federation that the site has not joined
    Standing proceed(std::optional<std::int64_t> samples) const;

    /// That the site trains on as many samples as it has announced, by which its change is
    /// weighted.
    ///
    /// Throws  Error 64 for another number
    void require_announced(std::int64_t round, std::int64_t samples) const;

    /// The run directory of the round's training.
    std::filesystem::path run_directory(std::int64_t round) const;

    /// Writes the model that the round begins with, which was verified, to a file in the round's
    /// directory: training reads that one, which others cannot change.
    ///
    /// Throws  Error 65 or 66 as Federation::first_model
    std::filesystem::path write_first(std::int64_t round) const;

    /// With control variates: writes what the round's training adds to its gradients, as a model
    /// file in the round's directory.
    ///
    /// Throws  Error 66 where the site's control variate of an earlier round is missing
    std::filesystem::path write_correction(std::int64_t round) const;

    /// Sends the update: `trained` is the model after the round's training, `rates` the sum of the
    /// learning rates of its steps, which control variates need. Returns a sentence on it.
    ///
    /// Throws  Error 65 for a model that is not finite or not the federation's, or where another
    ///         update was sent in this round
    std::string send_update(std::int64_t round, ModelVector const& trained, double rates = 0) const;

  private:
    bool has_sent(std::int64_t round, std::string const& phase) const;
    Message answer(std::int64_t round, std::string const& phase) const;
    void send(Message const& message) const;
    /// Promises to send, or to answer, no other message of this round and phase.
    void promise(Message const& message) const;
    KeyShares keys(std::int64_t round) const;
    /// Throws  Error 65 for a list that is too short, or not what the sites have announced
    Roster roster(std::int64_t round) const;
    void require_enough(std::int64_t round, std::size_t sites) const;
    void require_as_announced(std::int64_t round, Member const& member) const;
    std::string left_out(std::int64_t round, char const* phase, char const* list,
                         char const* words) const;
    std::vector<std::string> listed(std::int64_t round, std::string const& phase) const;
    static std::vector<std::string> listed_in(Message const& message);
    void trust() const;
    void require_whole_journal() const;
    bool is_partial(std::int64_t round) const;
    void announce(std::int64_t round, std::int64_t samples) const;
    void send_shares(std::int64_t round) const;
    bool send_kept_update(std::int64_t round) const;
    void send_unmasking(std::int64_t round) const;

    Federation const& federation_;
    PrivateKey const& key_;
    std::filesystem::path local_;
    SiteControl control_;
};

} // namespace lockstep::federate
