#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace lockstep::monitor {

/// Rank 0's words: to standard output as they are, to log.txt with the time.
class Log {
  public:
    /// To standard output only.
    Log();
    /// To standard output and a file, which is appended to. Throws Error 73.
    explicit Log(std::filesystem::path const& file);

    void line(std::string const& text) const;
    /// To the file only, for what the terminal shows in another form.
    void note(std::string const& text) const;

  private:
    std::shared_ptr<spdlog::logger> screen_;
    std::shared_ptr<spdlog::logger> file_;
};

} // namespace lockstep::monitor
