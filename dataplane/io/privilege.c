// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/privilege.h"

#include "common/ipc.h"
#include "dataplane/io/files.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PRIVILEGE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PRIVILEGE_SANITIZED 1
#endif
#ifndef PRIVILEGE_SANITIZED
#define PRIVILEGE_SANITIZED 0
#endif

// What the process still does once it is up, and why. Nothing here opens a network connection, starts a program or a
// thread, or changes another process.
static const int allowed[] = {
	// Workers on virtual devices: frames go through sockets and TAPs, which were opened before.
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	// Idle workers and main sleep; threads wait for each other.
	SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(futex),
	SCMP_SYS(sched_yield),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	// ringwayd's socket: accept, look at the peer, take a descriptor, answer, close.
	SCMP_SYS(accept4),
	SCMP_SYS(getsockopt),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(close),
	SCMP_SYS(fcntl),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(stat),
	SCMP_SYS(lseek),
	// Images come and go as mappings of huge pages on the worker's node; how many are free stands in files.
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(madvise),
	SCMP_SYS(mbind),
	SCMP_SYS(brk),
	SCMP_SYS(open),
	SCMP_SYS(openat),
	// The last snapshot and gates are written beside the old ones, flushed and renamed.
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(rename),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	// Readiness and watchdog: a datagram to the socket that systemd named. Link state: an ioctl on a socket.
	SCMP_SYS(socket),
	SCMP_SYS(connect),
	SCMP_SYS(bind),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockname),
	SCMP_SYS(ioctl),
	// Closing AF_XDP ports takes their program off the interface; libxdp looks for bpffs and locks /run/xdp.
	SCMP_SYS(bpf),
	SCMP_SYS(statfs),
	SCMP_SYS(fstatfs),
	SCMP_SYS(mkdir),
	SCMP_SYS(mkdirat),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(flock),
	// Ending, by signal or at the end of main().
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(tgkill),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(getrandom),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(flock),
	SCMP_SYS(prctl),
	SCMP_SYS(capget),
	SCMP_SYS(capset),
};

static bool has_device(const struct options *options, const char *driver)
{
	for (uint32_t i = 0; i < options->port_count; i++) {
		if (strncmp(options->ports[i].device, driver, strlen(driver)) == 0)
			return true;
		if (options->ports[i].punt != NULL && strcmp(driver, "net_tap") == 0)
			return true;
	}
	return false;
}

int privilege_drop_capabilities(const struct options *options, bool closes_ports)
{
	capng_clear(CAPNG_SELECT_BOTH);
	// Taking an XDP program or a TAP away again is work for a network administrator; libxdp finds
	// its program again by number, which asks for CAP_SYS_ADMIN.
	if (closes_ports && (has_device(options, "net_af_xdp") || has_device(options, "net_tap")))
		capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_ADMIN, CAP_BPF,
			CAP_SYS_ADMIN, -1);
	// Without CAP_SETPCAP the bounding set stays as it is; no_new_privs makes it moot.
	return capng_apply(CAPNG_SELECT_CAPS) == 0 ? 0 : -EPERM;
}

static int become(const struct options *options, char *error)
{
	char socket_path[FILES_PATH_BYTES];
	struct passwd *user;

	if (options->user == NULL)
		return 0;
	user = getpwnam(options->user);
	if (user == NULL) {
		snprintf(error, PRIVILEGE_ERROR_BYTES, "--user %s: no such user", options->user);
		return -ENOENT;
	}
	snprintf(socket_path, sizeof(socket_path), "%s/" IPC_SOCKET_NAME, options->run_dir);
	// The last snapshot is written in this directory from now on by that user, who may also talk to us.
	if (chown(options->run_dir, user->pw_uid, user->pw_gid) != 0 ||
		chown(socket_path, user->pw_uid, user->pw_gid) != 0 ||
		initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
		prctl(PR_SET_KEEPCAPS, 1) != 0 || setuid(user->pw_uid) != 0) {
		snprintf(error, PRIVILEGE_ERROR_BYTES, "--user %s: %s", options->user,
			strerror(errno));
		return -errno;
	}
	return 0;
}

static int filter_calls(char *error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int result = filter != NULL ? 0 : -ENOMEM;

	// All threads at once: EAL has some of its own.
	if (result == 0)
		result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && result == 0; i++) {
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
		// A call that this architecture does not have needs no rule.
		if (result == -EDOM)
			result = 0;
	}
	if (result == 0)
		result = seccomp_load(filter);
	seccomp_release(filter);
	if (result != 0)
		snprintf(error, PRIVILEGE_ERROR_BYTES, "system call filter: %s", strerror(-result));
	return result;
}

int privilege_drop(const struct options *options, char ret_error[static PRIVILEGE_ERROR_BYTES])
{
	int result;

	if (options->keep_privileges)
		return 0;
	result = become(options, ret_error);
	if (result != 0)
		return result;
	result = privilege_drop_capabilities(options, true);
	if (result != 0) {
		snprintf(ret_error, PRIVILEGE_ERROR_BYTES, "capabilities: cannot be dropped");
		return result;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		snprintf(ret_error, PRIVILEGE_ERROR_BYTES, "no_new_privs: %s", strerror(errno));
		return -errno;
	}
	// The leak check at the end of a sanitized run starts a thread and traces us.
	return PRIVILEGE_SANITIZED ? 0 : filter_calls(ret_error);
}
