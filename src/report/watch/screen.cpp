#include "screen.hpp"

#include "base/text.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace lockstep::report {

namespace {

// A handler may touch only lock-free static storage.
volatile std::sig_atomic_t asked_to_leave = 0;
volatile std::sig_atomic_t asked_to_stop = 0;
volatile std::sig_atomic_t size_changed = 0;

void note_screen_signal(int number) {
    if (number == SIGWINCH || number == SIGCONT) {
        size_changed = 1;
    } else if (number == SIGTSTP) {
        asked_to_stop = 1;
    } else {
        asked_to_leave = 1;
    }
}

constexpr std::array<int, 7> handled{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};

void install(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler; // poll is to be interrupted: no SA_RESTART
    sigemptyset(&action.sa_mask);
    for (int const number : handled) {
        sigaction(number, &action, nullptr);
    }
}

bool write_all(std::string const& text) {
    std::size_t done = 0;
    while (done < text.size()) {
        auto const put = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (put <= 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? static_cast<std::size_t>(put) : 0;
    }
    return true;
}

} // namespace

Screen::Screen() {
    asked_to_leave = 0;
    install(note_screen_signal);
    static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
    enter();
}

Screen::~Screen() {
    leave();
    install(SIG_DFL);
}

void Screen::enter() {
    has_keys_ = ::tcgetattr(STDIN_FILENO, &keys_before_) == 0;
    if (has_keys_) {
        auto keys = keys_before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    write_all("\033[?1049h\033[?25l");
}

void Screen::leave() {
    write_all("\033[?25h\033[?1049l");
    if (has_keys_) {
        ::tcsetattr(STDIN_FILENO, TCSANOW, &keys_before_);
    }
}

bool Screen::draw(std::vector<std::string> const& lines) const {
    std::string text = "\033[H";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text += concat(i == 0 ? "" : "\r\n", lines[i], "\033[K");
    }
    return write_all(concat(text, "\033[J"));
}

Screen::Wish Screen::wait(double seconds) {
    pollfd keys{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    int const ready = ::poll(&keys, 1, static_cast<int>(1e3 * seconds));
    if (asked_to_stop != 0) {
        asked_to_stop = 0;
        leave();
        static_cast<void>(std::raise(SIGSTOP));
        enter();
        return Wish::redraw;
    }
    if (asked_to_leave != 0) {
        return Wish::leave;
    }
    if (ready > 0) {
        char key = 0;
        bool const read = ::read(STDIN_FILENO, &key, 1) == 1;
        has_keys_ = has_keys_ && read; // the end of the keys is not asked for again
        return read && (key == 'q' || key == 'Q') ? Wish::leave : Wish::redraw;
    }
    if (size_changed != 0) {
        size_changed = 0;
        return Wish::redraw;
    }
    return Wish::nothing;
}

} // namespace lockstep::report
