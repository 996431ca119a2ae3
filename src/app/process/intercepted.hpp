#pragma once

namespace lockstep::app {

// A program that calls these holds the functions beside them, which then take the place of those of
// the libraries: the dynamic linker looks into the program first. They do nothing.

void link_last_exit() noexcept;
void link_refused_writes() noexcept;

} // namespace lockstep::app
