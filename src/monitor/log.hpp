#pragma once

#include "monitor/terminal.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace lockstep::monitor {

/// How much of a run is printed on the screen; log.txt has all of it.
enum class Talk {
    silent,
    quiet,  ///< warnings, and how it ended
    normal, ///< what a person wants to read
    verbose ///< each record, too
};

/// Rank 0's messages: to standard output as they are, in colour where that is wanted; to log.txt
/// with the time. When one of the two can no longer be written, the other says so, once, and
/// continues.
class Log {
  public:
    /// To standard output and a file, which is appended to. Throws Error 73.
    Log(std::filesystem::path const& file, Talk talk);

    Talk talk() const noexcept { return talk_; }

    void line(std::string const& text, Style style = Style::plain) const;
    /// A message that a quiet run prints, too.
    void important(std::string const& text, Style style = Style::plain) const;
    /// A message only for the file, where the terminal shows it in another form.
    void note(std::string const& text) const;

  private:
    void show(std::string const& text, Style style) const;

    Talk talk_;
    Paint paint_;
    std::shared_ptr<spdlog::logger> screen_;
    std::shared_ptr<spdlog::logger> file_;
    std::shared_ptr<bool> screen_is_gone_ = std::make_shared<bool>(false);
};

} // namespace lockstep::monitor
