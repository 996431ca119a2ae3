#pragma once

#include "base/file_lock.hpp"
#include "federate/charter.hpp"
#include "federate/message.hpp"
#include "federate/model_vector.hpp"
#include "federate/private_key.hpp"
#include "federate/roster.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::federate {

/// The phases of a round: what the coordinator says, what the sites say.
namespace phase {
inline constexpr char const* charter = "charter";     ///< coordinator, once
inline constexpr char const* card = "card";           ///< site, once: its public key
inline constexpr char const* accepted = "accepted";   ///< coordinator: sites and their keys
inline constexpr char const* plan = "plan";           ///< coordinator: who was drawn, which model
inline constexpr char const* announce = "announce";   ///< site: keys of the round, samples
inline constexpr char const* roster = "roster";       ///< coordinator: who has announced itself
inline constexpr char const* shares = "shares";       ///< site, where secure
inline constexpr char const* sharers = "sharers";     ///< coordinator, where secure
inline constexpr char const* update = "update";       ///< site: its change
inline constexpr char const* survivors = "survivors"; ///< coordinator: whose changes count
inline constexpr char const* unmask = "unmask";       ///< site, where secure
inline constexpr char const* result = "result";       ///< coordinator: the round is over
} // namespace phase

inline constexpr char const* coordinator_name = "coordinator";

/// "round-0001": what a file or a directory of a round is called, so that they sort by number.
std::string round_name(std::int64_t round);

/// A lock on a file that only this process holds: no other process acts as `who` meanwhile.
///
/// Throws  Error 73 where another process holds it, or the file cannot be made
FileLock sole_process(std::filesystem::path const& file, std::string const& who);

/// Throws  Error 64 for an invalid name of a site; a valid one has 1 to 64 letters, digits, - and _
void require_site_name(std::string const& name);

/// A site as its message of phase announce says; nothing where keys or samples are not valid.
///
/// Throws  Error 65 where the message lacks one
std::optional<Member> member_of(Message const& announced);

/// The directory of a federation, which all see, or to which files are copied. Everything in it is
/// a signed message or a model. Files are never changed, except for the list of accepted sites, and
/// a site's shares for unmasking, to which those that have arrived late are added.
class Federation {
  public:
    /// Writes the charter and the first global model.
    ///
    /// Throws  Error 73 where there is another federation in the directory
    static Federation found(std::filesystem::path const& directory, Charter const& charter,
                            ModelVector const& first, PrivateKey const& coordinator);
    /// Throws  Error 66 where there is none, 65 where its charter is damaged
    explicit Federation(std::filesystem::path directory);

    std::filesystem::path const& directory() const noexcept { return directory_; }
    Charter const& charter() const noexcept { return charter_; }
    PublicKey const& coordinator() const noexcept { return coordinator_; }
    /// The hash of the whole charter as it was signed, which includes the hash of the first model.
    Digest const& charter_digest() const noexcept { return charter_digest_; }

    Binding binding(std::int64_t round, std::string const& phase, std::string const& sender) const;
    /// DIRECTORY/rounds/0001/PHASE.h5, or …/PHASE/SITE.h5; round 0: in DIRECTORY, or its sites/.
    std::filesystem::path file(Binding const& binding) const;
    /// DIRECTORY/global/round-0001.h5. Throws  Error 65 where it is a link
    std::filesystem::path global_file(std::int64_t round) const;

    bool has(Binding const& binding) const;
    /// Throws  Error 65 or 66 as Message::read
    Message read_of_coordinator(std::int64_t round, std::string const& phase) const;
    Roster roster(std::int64_t round) const;
    Message read_of_site(std::int64_t round, std::string const& phase,
                         std::string const& site) const;
    /// Writes a message, unless one with the same contents exists already.
    void write(Message const& message, PrivateKey const& key) const;
    /// How many messages have been written through this object.
    std::int64_t written() const noexcept { return written_; }

    /// The version of the newest list of accepted sites that was read, or is known of: each list
    /// of the coordinator has a larger one, and an older list is refused. 0: none.
    std::int64_t list_version() const noexcept { return list_version_; }
    /// Refuses lists older than the newest one that a key's journal has recorded.
    void know_list_of(PrivateKey const& key) const;
    /// Lets the journal record the newest one.
    void record_list(PrivateKey const& key) const;
    /// The accepted sites and their keys; none before the coordinator has accepted any.
    ///
    /// Throws  Error 65 for a list that is older than list_version(), or damaged
    std::map<std::string, PublicKey> accepted() const;
    /// The accepted sites drawn for no further round, in order: removed by the coordinator.
    std::vector<std::string> removed() const;
    /// All cards that have arrived, by name: the keys of sites that want to take part. Unreadable
    /// cards are left out.
    std::map<std::string, PublicKey> cards() const;

    /// The round that is under way, from 1; one more than the charter's when all are over.
    std::int64_t current_round() const;
    /// Whether a round that is over left the model as it was, without a site: it tells nothing.
    bool is_abandoned(std::int64_t round) const;
    /// Whether somebody may know a noisy sum of a round that is over, although it is abandoned.
    bool counts_in_epsilon(std::int64_t round) const;
    /// The global model before a round: that of the charter, or the result of the round before.
    ///
    /// Throws  Error 65 where the file is damaged or is another model
    ModelVector model_before(std::int64_t round) const;
    /// The same, which is also the one that the round's plan names.
    ///
    /// Throws  Error 65 where it is not
    ModelVector first_model(std::int64_t round) const;
    /// The digest that the model before a round has by the charter, or the result of the round
    /// before it.
    std::string expected_model(std::int64_t round) const;

  private:
    std::optional<Message> list() const;

    std::filesystem::path directory_;
    Charter charter_;
    PublicKey coordinator_{};
    Digest charter_digest_{};
    std::string first_digest_; ///< of the model that round 1 begins with
    mutable std::int64_t written_ = 0;
    mutable std::int64_t list_version_ = 0;
};

} // namespace lockstep::federate
