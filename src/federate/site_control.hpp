#pragma once

#include "federate/change.hpp"
#include "federate/federation.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::federate {

/// The control variate of a site (scaffold.hpp), a file in its directory of each round that it has
/// trained in.
class SiteControl {
  public:
    /// `local`: the site's directory, as Site has it
    SiteControl(Federation const& federation, std::string site, std::filesystem::path local)
        : federation_(federation), site_(std::move(site)), local_(std::move(local)) {}

    /// What the round's training adds to its gradients.
    ///
    /// Throws  Error 66 where the control variate of an earlier round is missing
    ModelVector correction(std::int64_t round) const;

    /// Keeps the next control variate, after a training as for Site::send_update, and returns by
    /// how much it changes.
    ///
    /// Throws  Error 65 for a model of other shapes or without steps; 66 as above
    EncodedChange keep_next(std::int64_t round, ModelVector const& trained, double rates,
                            ChangeForm const& form) const;

  private:
    std::filesystem::path file(std::int64_t round) const;
    std::int64_t last_counted(std::int64_t round) const;
    std::vector<float> kept_in(std::int64_t last, std::size_t values) const;

    Federation const& federation_;
    std::string site_;
    std::filesystem::path local_;
};

} // namespace lockstep::federate
