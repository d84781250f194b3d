// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/etcd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

bool etcd_installed(void)
{
	return access("/usr/bin/etcd", X_OK) == 0 && access("/usr/bin/etcdctl", X_OK) == 0 &&
		access("/usr/bin/openssl", X_OK) == 0;
}

// A port that nobody has now. It is free again when this returns, so another may take it first: rare enough.
static unsigned short free_port(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&address, length) != 0 ||
		getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		address.sin_port = 0;
	close(fd);
	return ntohs(address.sin_port);
}

static const char *scheme(const struct etcd_cluster *cluster)
{
	return cluster->kind == ETCD_PLAIN ? "http" : "https";
}

static void write_initial(const struct etcd_cluster *cluster, char *ret, size_t bytes)
{
	size_t length = 0;

	for (unsigned i = 0; i < cluster->member_count; i++)
		length += (size_t)snprintf(ret + length, bytes - length, "%sm%u=%s://127.0.0.1:%u",
			i ? "," : "", i, scheme(cluster), cluster->peer_ports[i]);
}

// The process of a member: its directory is where it runs. Does not return.
static void member_run(const struct etcd_cluster *cluster, unsigned member)
{
	static const char *const secure[] = {"--cert-file", "server.pem", "--key-file",
		"server.key", "--trusted-ca-file", "ca.pem", "--client-cert-auth",
		"--peer-cert-file", "server.pem", "--peer-key-file", "server.key",
		"--peer-trusted-ca-file", "ca.pem", "--peer-client-cert-auth", "--bcrypt-cost", "4",
		"--auth-token-ttl"};
	char name[8], client[64], peer[64], initial[256], log[16], ttl[8], token[128];
	const char *words[40] = {"etcd", "--name", name, "--data-dir", name, "--listen-client-urls",
		client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", initial, "--log-level",
		"error"};
	unsigned count = 17;

	snprintf(name, sizeof(name), "m%u", member);
	snprintf(log, sizeof(log), "%s.log", name);
	snprintf(ttl, sizeof(ttl), "%d", ETCD_TOKEN_S);
	snprintf(token, sizeof(token),
		"jwt,pub-key=token-public.pem,priv-key=token.pem,sign-method=RS256,ttl=%ds",
		ETCD_TOKEN_S);
	snprintf(client, sizeof(client), "%s://127.0.0.1:%u", scheme(cluster),
		cluster->client_ports[member]);
	snprintf(peer, sizeof(peer), "%s://127.0.0.1:%u", scheme(cluster),
		cluster->peer_ports[member]);
	write_initial(cluster, initial, sizeof(initial));
	for (unsigned i = 0; cluster->kind != ETCD_PLAIN && i < sizeof(secure) / sizeof(*secure);
		i++)
		words[count++] = secure[i];
	if (cluster->kind != ETCD_PLAIN)
		words[count++] = ttl;
	if (cluster->kind == ETCD_SECURE_SIGNED) {
		words[count++] = "--auth-token";
		words[count++] = token;
	}
	if (chdir(cluster->directory) != 0)
		_exit(127);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execv("/usr/bin/etcd", (char *const *)words);
	_exit(127);
}

int etcd_member_start(struct etcd_cluster *cluster, unsigned member)
{
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0)
		member_run(cluster, member);
	cluster->pids[member] = pid;
	return pid > 0 ? 0 : -1;
}

int etcd_control(const struct etcd_cluster *cluster, unsigned member, const char *words)
{
	bool secure = cluster->kind != ETCD_PLAIN;
	char command[768];

	snprintf(command, sizeof(command),
		"cd %s && ETCDCTL_API=3 %s timeout 5 etcdctl --endpoints %s --command-timeout 1s %s %s "
		">>control.log 2>&1",
		cluster->directory, cluster->users ? "ETCDCTL_USER=root:root" : "",
		cluster->endpoints[member],
		secure ? "--cacert ca.pem --cert node.pem --key node.key" : "", words);
	return system(command);
}

char *etcd_file(const struct etcd_cluster *cluster, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", cluster->directory, name) < 0 ? NULL : path;
}

static int make_certificates(const struct etcd_cluster *cluster)
{
	char command[256];

	if (cluster->kind == ETCD_PLAIN)
		return 0;
	snprintf(command, sizeof(command), "%s %s", CERTIFICATES_PROGRAM, cluster->directory);
	return system(command) == 0 ? 0 : -1;
}

int etcd_cluster_start(struct etcd_cluster *cluster, unsigned members, enum etcd_kind kind)
{
	*cluster = (struct etcd_cluster){.member_count = members, .kind = kind};
	snprintf(cluster->directory, sizeof(cluster->directory), "/tmp/ringway-etcd-XXXXXX");
	if (mkdtemp(cluster->directory) == NULL || make_certificates(cluster) < 0)
		return -1;
	for (unsigned i = 0; i < members; i++) {
		cluster->client_ports[i] = free_port();
		cluster->peer_ports[i] = free_port();
		snprintf(cluster->urls[i], sizeof(cluster->urls[i]), "%s://127.0.0.1:%u",
			scheme(cluster), cluster->client_ports[i]);
		cluster->endpoints[i] = cluster->urls[i];
	}
	for (unsigned i = 0; i < members; i++) {
		if (etcd_member_start(cluster, i) != 0)
			return -1;
	}
	for (unsigned i = 0; i < 150; i++) {
		if (etcd_control(cluster, 0, "put ready yes") == 0)
			return 0;
		usleep(100000);
	}
	return -1;
}

void etcd_member_kill(struct etcd_cluster *cluster, unsigned member)
{
	if (cluster->pids[member] <= 0)
		return;
	kill(cluster->pids[member], SIGKILL);
	waitpid(cluster->pids[member], NULL, 0);
	cluster->pids[member] = 0;
}

static int entry_remove(const char *name, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status, (void)type, (void)ftw;
	return remove(name);
}

void etcd_cluster_stop(struct etcd_cluster *cluster)
{
	for (unsigned i = 0; i < cluster->member_count; i++)
		etcd_member_kill(cluster, i);
	nftw(cluster->directory, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

int etcd_leader_kill(struct etcd_cluster *cluster)
{
	for (unsigned i = 0; i < cluster->member_count; i++) {
		// A leader reports itself: member id and leader id are the same.
		if (etcd_control(cluster, i,
			    "endpoint status -w fields | awk '/\"MemberID\"/ {m = $3} /\"Leader\"/ {l "
			    "= $3} END {exit !(m == l && m)}'") == 0) {
			etcd_member_kill(cluster, i);
			return (int)i;
		}
	}
	return -1;
}

int etcd_cluster_users(struct etcd_cluster *cluster)
{
	static const char *const steps[] = {"user add root:root", "user grant-role root root",
		"role add balancer",
		"role grant-permission balancer readwrite --prefix=true " ETCD_USER_PREFIX,
		"user add '" ETCD_USER ":" ETCD_PASSWORD "'",
		"user grant-role " ETCD_USER " balancer", "auth enable"};

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (etcd_control(cluster, 0, steps[i]) != 0)
			return -1;
	}
	cluster->users = true;
	return 0;
}
