// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tracefire::inject {
namespace {

constexpr int kPassedOn[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
constexpr int64_t kFirstPeriodNs = 25'000'000;
constexpr int kLeftToProgram[] = {SIGINT, SIGQUIT};

int64_t nanoseconds(const timeval& t) {
  return int64_t{t.tv_sec} * 1000000000 + int64_t{t.tv_usec} * 1000;
}

/// The signals that the waiting loop takes itself.
sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int s : kPassedOn) sigaddset(&set, s);
  for (const int s : kLeftToProgram) sigaddset(&set, s);
  return set;
}

/// In the child: becomes the program, or tells errno through the pipe.
[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::pair<std::string, std::string>>& environment,
                         const sigset_t& mask, bool own_stdout, int report) {
  if (!own_stdout && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {  // stderr is closed
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0 && nowhere != STDOUT_FILENO) {
      dup2(nowhere, STDOUT_FILENO);
      close(nowhere);
    }
  }
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(arguments[0], arguments.data());
  const int code = errno;
  [[maybe_unused]] const ssize_t told = write(report, &code, sizeof(code));
  _exit(code == ENOENT ? kCommandNotFound : kCannotExecute);
}

/// A signal that nobody waits for must still be able to end this process later.
void drop_pending(const sigset_t& set) {
  const timespec none{};
  siginfo_t info;
  while (sigtimedwait(&set, &info, &none) > 0) {
  }
}

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

/// Orphans that came to us and have ended: their statuses are nobody's.
void reap_orphans(pid_t child) {
  while (true) {
    siginfo_t other{};
    if (waitid(P_ALL, 0, &other, WEXITED | WNOHANG | WNOWAIT) != 0 || other.si_pid == 0 ||
        other.si_pid == child) {
      return;
    }
    waitpid(other.si_pid, nullptr, WNOHANG);
  }
}

/// Whether processes of the program are still there when it has ended. Helpers that end with their
/// parent, such as Python's resource tracker, get a moment.
bool any_ran_on(pid_t child) {
  constexpr int kMoments = 30;
  for (int i = 0; i < kMoments; ++i) {
    reap_orphans(child);
    siginfo_t other{};
    if (waitid(P_ALL, 0, &other, WEXITED | WNOHANG | WNOWAIT) != 0) return false;  // none at all
    const timespec moment{0, 10'000'000};
    nanosleep(&moment, nullptr);
  }
  return true;
}

Ending ended(int raw, const rusage& usage) {
  Ending e;
  if (WIFSIGNALED(raw)) {
    e.signal = WTERMSIG(raw);
    e.status = 128 + e.signal;
  } else {
    e.status = WEXITSTATUS(raw);
  }
  e.user_ns = nanoseconds(usage.ru_utime);
  e.system_ns = nanoseconds(usage.ru_stime);
  e.resident_peak = int64_t{usage.ru_maxrss} * 1024;
  return e;
}

Ending not_started(int code) {
  Ending e;
  e.status = code == ENOENT ? kCommandNotFound : kCannotExecute;
  e.start_error = std::strerror(code);
  return e;
}

}  // namespace

FoundProgram find_program(const std::string& name) {
  const auto looked_at = [](const std::string& path) -> FoundProgram {
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) return {"", errno};
    if (!S_ISREG(facts.st_mode) || access(path.c_str(), X_OK) != 0) return {"", EACCES};
    return {path, 0};
  };
  if (name.find('/') != std::string::npos) return looked_at(name);
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/bin:/usr/bin" : path;
  int problem = ENOENT;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    FoundProgram found = looked_at((folder.empty() ? "." : folder) + "/" + name);
    if (found.problem == 0) return found;
    if (found.problem == EACCES) problem = EACCES;  // the search goes on, as that of execvp()
    begin = end + 1;
  }
  return {"", problem};
}

Ending run_program(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment,
                   int period_ms, bool own_stdout, const std::function<void(pid_t)>& tick) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return not_started(errno);
  const sigset_t waited = waited_signals();
  sigset_t mask;
  sigprocmask(SIG_BLOCK, &waited, &mask);
  struct sigaction child_signal {};  // where it is ignored, no ending can be waited for
  struct sigaction old_child_signal {};
  child_signal.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &child_signal, &old_child_signal);
  // Processes that outlive their parent stay in the tree, so that they are seen and counted.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = fork();
  if (child == 0) {
    sigaction(SIGCHLD, &old_child_signal, nullptr);
    become(command, environment, mask, own_stdout, report[1]);
  }
  const int fork_error = errno;
  close(report[1]);
  int code = 0;
  ssize_t told = -1;
  if (child > 0) {
    while ((told = read(report[0], &code, sizeof(code))) < 0 && errno == EINTR) {
    }
  }
  close(report[0]);
  Ending ending;
  if (child < 0) {
    ending = not_started(fork_error);
  } else {
    int64_t last_tick = now();
    int64_t tick_cost = 0;
    int64_t period = kFirstPeriodNs;  // programs that end soon are looked at, too
    int ticks = 0;
    while (true) {
      int raw = 0;
      rusage usage{};
      const pid_t got = wait4(child, &raw, WNOHANG, &usage);
      if (got == child) {
        ending = told == sizeof(code) ? not_started(code) : ended(raw, usage);
        ending.ran_on = any_ran_on(child);
        break;
      }
      reap_orphans(child);
      // Looking at a large tree takes long: at most a fiftieth of the time goes into it.
      const int64_t due = last_tick + std::max(period, 50 * tick_cost);
      const int64_t left = std::max<int64_t>(due - now(), 0);
      const timespec wait{static_cast<time_t>(left / 1000000000),
                          static_cast<long>(left % 1000000000)};
      siginfo_t info{};
      const int signal = sigtimedwait(&waited, &info, &wait);
      for (const int s : kPassedOn) {
        if (signal == s) kill(child, s);
      }
      for (const int s : kLeftToProgram) {
        // The terminal has sent it to the program as well; `kill` has not.
        if (signal == s && info.si_code != SI_KERNEL) kill(child, s);
      }
      if (now() >= due) {
        const int64_t begun = now();
        tick(child);
        last_tick = now();
        tick_cost = ticks++ == 0 ? 0 : last_tick - begun;  // the first one opens what it reads
        period = std::min(2 * period, int64_t{period_ms} * 1000000);
      }
    }
  }
  drop_pending(waited);
  sigaction(SIGCHLD, &old_child_signal, nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  return ending;
}

}  // namespace tracefire::inject
