#pragma once

#include "import/source.hpp"

#include <cstdint>
#include <utility>

#include "listing.hpp"

namespace lockstep::import {

/// Bytes that importers usually decode together.
constexpr std::uint64_t bytes_at_once = std::uint64_t{16} << 20;

/// What importers of files have in common: an item is a file of a listing.
class ListedSource : public ImportSource {
  public:
    ImportForm const& form() const override { return form_; }
    std::int64_t items() const override {
        return static_cast<std::int64_t>(listing_.entries.size());
    }
    std::string name(std::int64_t item) const override { return entry(item).path.string(); }
    std::string origin(std::int64_t item) const override {
        auto const below = listing_.root.empty()
                               ? std::filesystem::path()
                               : entry(item).path.lexically_relative(listing_.root);
        bool const is_below = !below.empty() && *below.begin() != "..";
        return is_below ? below.string() : entry(item).path.string();
    }
    std::int64_t label(std::int64_t item) const override { return entry(item).label; }
    std::string group(std::int64_t item) const override { return entry(item).group; }
    std::string set(std::int64_t item) const override { return entry(item).set; }
    std::vector<std::string> remarks() const override {
        auto lines = listing_.remarks;
        if (auto line = unlisted(listing_); !line.empty()) {
            lines.push_back(std::move(line));
        }
        return lines;
    }

  protected:
    explicit ListedSource(Listing listing = {}) : listing_(std::move(listing)) {}

    Listing::ListedFile const& entry(std::int64_t item) const {
        return listing_.entries[static_cast<std::size_t>(item)];
    }

    Listing listing_;
    ImportForm form_;
};

} // namespace lockstep::import
