// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/live/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kMaxOutput = 1 << 20;

using Clock = std::chrono::steady_clock;

void limit_child(int seconds) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  rlimit cpu{static_cast<rlim_t>(seconds) * 16, static_cast<rlim_t>(seconds) * 16};
  ::setrlimit(RLIMIT_CPU, &cpu);
  rlimit size{64 << 20, 64 << 20};
  ::setrlimit(RLIMIT_FSIZE, &size);
  ::signal(SIGPIPE, SIG_DFL);
}

/// Reads until the end, the limit of bytes or the deadline; then makes sure that the child is gone.
ChildResult collect(pid_t child, int fd, int seconds) {
  ChildResult result;
  Clock::time_point deadline = Clock::now() + std::chrono::seconds(seconds);
  char buffer[16384];
  for (;;) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      result.timed_out = true;
      break;
    }
    pollfd waiting{fd, POLLIN, 0};
    int ready = ::poll(&waiting, 1, static_cast<int>(std::min<long>(left, 1000)));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (result.output.size() < kMaxOutput) result.output.append(buffer, static_cast<size_t>(got));
  }
  ::close(fd);
  int status = 0;
  bool killed = false;
  // A child that hangs in the kernel cannot be waited for; it is left to itself.
  Clock::time_point last = std::max(deadline, Clock::now()) + std::chrono::seconds(1);
  for (;;) {
    pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child) break;
    if (done < 0 && errno != EINTR) return result;
    if (Clock::now() > deadline && !killed) {
      ::kill(-child, SIGKILL);
      ::kill(child, SIGKILL);
      killed = true;
      result.timed_out = true;
    }
    if (Clock::now() > last) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(-child, SIGKILL);  // what it may have left behind
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

/// `body` never returns.
ChildResult start(int seconds, const std::function<void(int)>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    limit_child(seconds);
    body(ends[1]);
    ::_exit(127);
  }
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return {};
  }
  return collect(child, ends[0], seconds);
}

bool trusted_step(const struct stat& st) {
  bool owner = st.st_uid == 0 || st.st_uid == ::geteuid();
  bool others_write = (st.st_mode & S_IWOTH) != 0 ||
                      ((st.st_mode & S_IWGRP) != 0 && st.st_gid != 0 && ::geteuid() == 0);
  bool sticky = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0;
  return owner && (!others_write || sticky);
}

}  // namespace

std::string ChildResult::trouble(int seconds) const {
  if (timed_out) return "it did not end within " + std::to_string(seconds) + " s";
  if (signal != 0) return "it was ended by signal " + std::to_string(signal);
  return "";
}

ChildResult run_child(const std::function<std::string()>& work, int seconds) {
  return start(seconds, [&](int fd) {
    int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; ++i) ::dup2(null, i);
    std::string text;
    int status = 0;
    try {
      text = work();
    } catch (const std::exception& problem) {
      text = problem.what();
      status = 1;
    }
    for (size_t done = 0; done < text.size();) {
      ssize_t put = ::write(fd, text.data() + done, text.size() - done);
      if (put <= 0) break;
      done += static_cast<size_t>(put);
    }
    ::_exit(status);
  });
}

ChildResult run_program(const std::vector<std::string>& command,
                        const std::vector<std::string>& environment, int seconds) {
  std::vector<char*> arguments, variables;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  for (const std::string& variable : environment)
    variables.push_back(const_cast<char*>(variable.c_str()));
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  return start(seconds, [&](int fd) {
    int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, 0);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    ::execve(arguments[0], arguments.data(), variables.data());
  });
}

bool trusted_file(const std::string& path) {
  std::string rest = path;
  for (int links = 0; links < 16; ++links) {
    std::string done;
    std::string next;
    for (std::string_view part : split(std::string_view(rest).substr(1), '/')) {
      done += "/" + std::string(part);
      struct stat st {};
      if (::lstat(done.c_str(), &st) != 0) return false;
      if (S_ISLNK(st.st_mode)) {
        if (st.st_uid != 0 && st.st_uid != ::geteuid()) return false;
        char target[4096];
        ssize_t length = ::readlink(done.c_str(), target, sizeof target);
        if (length <= 0) return false;
        std::string to(target, static_cast<size_t>(length));
        next = (to[0] == '/' ? to : parent_of(done) + "/" + to) + rest.substr(done.size());
        break;
      }
      if (!trusted_step(st)) return false;
    }
    if (next.empty()) return true;
    rest = normal_path(next);
  }
  return false;
}

}  // namespace tracefire::doctor
