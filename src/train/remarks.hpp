#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {

/// What is to be told at a run's start: mostly what the deck asks for and does not get.
class Remarks {
  public:
    /// An empty text is ignored.
    void add(std::string text) {
        if (!text.empty()) {
            texts_.push_back(std::move(text));
        }
    }
    void add(std::vector<std::string> const& texts) {
        for (auto const& text : texts) {
            add(text);
        }
    }
    std::vector<std::string> const& texts() const noexcept { return texts_; }

    /// Adds what only the log has in full.
    void add_details(std::vector<std::string> const& texts) {
        details_.insert(details_.end(), texts.begin(), texts.end());
    }
    std::vector<std::string> const& details() const noexcept { return details_; }

  private:
    std::vector<std::string> texts_;
    std::vector<std::string> details_;
};

} // namespace lockstep::train
