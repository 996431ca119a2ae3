#include "../data/rules.hpp" // the votes of all

void everything() {
    MPI_Barrier(MPI_COMM_WORLD);
    H5Fclose(0);
    ncclCommAbort(nullptr);
}

#include <mpi.h> // nor anyone but comm

#include "table.hpp" // and by data as one that is for all

int const devices = cudaDevices();

int in_turn = pass_over(limits.most); // two a sample
double least = max_of(least_);        // 3 ms a step

std::ostringstream text;

auto const json = nlohmann::json::parse(text);
std::ofstream file("log.txt");
int const descriptor = ::open("log.txt", O_WRONLY | O_CREAT | O_APPEND);
auto const partial = concat(file, ".partial-", ::getpid());
void make() { make_directories("plots"); }
void tell(std::string const& name) { std::cerr << name; }
