#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::data {

/// Checks all bytes of data sets while they are used by training: a thread of the least priority
/// walks through them once, on each host through its share where hosts see the same files, verifies
/// the checksums of our own files and hashes what the first set is made of, for a record that a
/// checkpoint keeps. What training reads, and when, does not depend on it.
class Audit {
  public:
    /// The sets must outlive the audit; null ones are left out. The first one is recorded.
    /// `viewers`: the hosts that each walk through a share of them; each has an audit of the same
    /// sets.
    explicit Audit(std::vector<Dataset const*> const& sets, Viewers viewers = {});
    Audit(Audit const&) = delete;
    Audit& operator=(Audit const&) = delete;
    ~Audit();

    /// A hash of what a set holds, as far as its checksums and some samples show: equal for equal
    /// files under any names.
    static std::uint64_t hash_of(Dataset const& set);
    /// A hash of every byte of a set's inputs and targets, as they are stored: by their checksums
    /// or, where there are none, by reading all of them.
    ///
    /// Throws  Error 65 or 74 for a file that cannot be read
    static std::uint64_t content_of(Dataset const& set);

    /// Bytes that are to be checked.
    std::uint64_t bytes() const noexcept { return bytes_; }

    /// What cannot be verified, and why.
    std::vector<std::string> const& remarks() const noexcept { return remarks_; }

    /// The content of the first set as far as it is known: hashes of some samples, and of each
    /// dataset in each file, or run of files, that the walk has seen. Equal for equal files under
    /// any names.
    std::string record() const;
    /// Compares with such a record: some samples of each dataset, and all of a file whose size or
    /// time has changed, unless that is very large; the rest when the walk gets there.
    ///
    /// Throws  Error 64 that names the file and the dataset that were changed
    void compare(std::string const& record);

    /// The hashes of what is recorded, in order: where other hosts walk through some of it, each
    /// has its own, and 0 for those that it does not know.
    std::vector<std::uint64_t> known() const;
    /// Adds what other hosts know; `require_good` then throws for what is not as it was recorded.
    ///
    /// Shape   as `known`
    void learn(std::span<std::uint64_t const> known);

    /// Begins the walk.
    void start();
    /// Throws what the walk has found: Error 65 for a wrong checksum or a file that cannot be read,
    /// 64 for what is not as it was recorded.
    void require_good() const;
    /// Ends the walk here and now, on this thread. Throws as `require_good`.
    void finish();

  private:
    struct Group;
    struct Walk;

    static std::vector<std::string> sample_hashes(Dataset const& set);
    void add_groups(Dataset const& set, bool recorded);
    void add_rests(Dataset const& set);
    void compare_weights(std::string const& record) const;
    void walk();
    bool one_block();
    void hash_block(Group const& group);
    void close(Group& group);
    void settle(Group& group, std::uint64_t digest);
    void next_group();
    void look_at(Group& group);
    void end_thread();

    Dataset const* first_ = nullptr;
    std::vector<std::string> samples_; ///< hashes of some, by field
    std::vector<Group> groups_;
    std::vector<std::string> remarks_;
    Viewers viewers_;
    int turn_ = 0; ///< counts groups, which are dealt round the hosts
    std::uint64_t bytes_ = 0;
    std::unique_ptr<Walk> walk_;
    mutable std::mutex mutex_; ///< of the groups' hashes and of the failure
    std::optional<Error> failure_;
    std::atomic<bool> failed_ = false;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

} // namespace lockstep::data
