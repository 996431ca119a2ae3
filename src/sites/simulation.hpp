#pragma once

#include "base/file_lock.hpp"
#include "federate/coordinator.hpp"
#include "federate/federation.hpp"
#include "federate/model_vector.hpp"
#include "federate/partition.hpp"
#include "federate/private_key.hpp"
#include "federate/site.hpp"
#include "lockstep/config/deck.hpp"
#include "sites/simulation_options.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::sites {

/// A federation whose coordinator and sites are all in this job. Its keys come from the seed, so
/// that every number of it does: they protect nothing. No function is collective.
class Simulation {
  public:
    /// In the deck's run.directory; `options` are settled.
    Simulation(config::Deck deck, SimulationOptions options);

    static std::string site_name(std::size_t number); ///< counted from 0

    /// On rank 0: that an earlier start in this directory, if there is one, was told the same.
    ///
    /// Throws  Error 64 with each option that differs; 65 where the file of the options is damaged
    void require_same_options() const;

    /// On rank 0: chooses the samples of each site, and writes nothing.
    ///
    /// Throws  Error 64 for data that cannot be divided so, or sites with too few samples to train;
    ///         as data::Dataset
    void divide();

    /// On rank 0, after `divide`: writes the data of the sites, and founds the federation or opens
    /// it.
    ///
    /// Throws  Error 64 for a deck that no federation can have, or where the directory holds
    /// another
    ///         federation; 73 where another process works in the directory
    void found(federate::ModelVector const& first);

    /// On rank 0 of another group, once the federation exists: its sites.
    void open(std::size_t group, std::size_t groups);

    config::Deck deck_of(std::size_t site) const;
    std::size_t count() const { return static_cast<std::size_t>(options_.sites); } ///< of sites

    // The coordinator on rank 0, the others on rank 0 of each group; elsewhere null.
    federate::Federation const* federation() const { return federation_.get(); }
    federate::Coordinator const* coordinator() const { return coordinator_.get(); }
    federate::Site const* site(std::size_t i) const {
        return sites_.empty() ? nullptr : sites_[i].get();
    }

  private:
    std::map<std::string, std::string> option_texts() const;
    /// The samples of each site, in files of their own, after a file of the options.
    void write_data() const;
    std::int64_t learnt_of(std::vector<std::int64_t> const& samples,
                           std::vector<std::int64_t> const& labels) const;
    void require_steps(std::vector<std::int64_t> const& labels) const;
    void open_sites(std::size_t first, std::size_t step);
    federate::FieldNames fields_of_deck() const;
    federate::Secret secret(std::string const& name) const;
    federate::PrivateKey key_of(std::string const& name) const;
    std::filesystem::path federation_directory() const { return directory_ / "federation"; }
    std::filesystem::path options_file() const { return directory_ / "options.txt"; }
    std::filesystem::path data_of(std::size_t site) const;

    config::Deck deck_;
    SimulationOptions options_;
    std::filesystem::path directory_;
    std::vector<std::vector<std::int64_t>> samples_; ///< of each site: places in data.train
    std::vector<std::string> classes_; ///< of data.train, which each site's file names
    std::unique_ptr<federate::PrivateKey> coordinator_key_;
    std::unique_ptr<federate::Federation> federation_;
    std::unique_ptr<FileLock> lock_;
    std::unique_ptr<federate::Coordinator> coordinator_;
    std::vector<std::unique_ptr<federate::PrivateKey>> keys_;
    std::vector<std::unique_ptr<federate::Site>> sites_;
};

} // namespace lockstep::sites
