// A program that has its process for itself, and lets the library treat it so.
#include <lockstep/app/own_process.hpp>

int main() {
    lockstep::own_process();
}
