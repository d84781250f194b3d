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
	return access("/usr/bin/etcd", X_OK) == 0 && access("/usr/bin/etcdctl", X_OK) == 0;
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

static void write_initial(const struct etcd_cluster *cluster, char *ret, size_t bytes)
{
	size_t length = 0;

	for (unsigned i = 0; i < cluster->member_count; i++)
		length += (size_t)snprintf(ret + length, bytes - length,
			"%sm%u=http://127.0.0.1:%u", i ? "," : "", i, cluster->peer_ports[i]);
}

int etcd_member_start(struct etcd_cluster *cluster, unsigned member)
{
	char name[8], data[96], client[64], peer[64], initial[256], log[96];

	snprintf(name, sizeof(name), "m%u", member);
	snprintf(data, sizeof(data), "%s/%s", cluster->directory, name);
	snprintf(log, sizeof(log), "%s/%s.log", cluster->directory, name);
	snprintf(client, sizeof(client), "http://127.0.0.1:%u", cluster->client_ports[member]);
	snprintf(peer, sizeof(peer), "http://127.0.0.1:%u", cluster->peer_ports[member]);
	write_initial(cluster, initial, sizeof(initial));
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execl("/usr/bin/etcd", "etcd", "--name", name, "--data-dir", data,
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", initial, "--log-level", "error", (char *)NULL);
		_exit(127);
	}
	cluster->pids[member] = pid;
	return pid > 0 ? 0 : -1;
}

// Runs etcdctl against one member, its output to nowhere. Returns its exit code.
static int control(const struct etcd_cluster *cluster, unsigned member, const char *words)
{
	char command[512];

	snprintf(command, sizeof(command),
		"ETCDCTL_API=3 timeout 5 etcdctl --endpoints %s --command-timeout 1s %s >/dev/null 2>&1",
		cluster->endpoints[member], words);
	return system(command);
}

int etcd_cluster_start(struct etcd_cluster *cluster, unsigned members)
{
	*cluster = (struct etcd_cluster){.member_count = members};
	snprintf(cluster->directory, sizeof(cluster->directory), "/tmp/ringway-etcd-XXXXXX");
	if (mkdtemp(cluster->directory) == NULL)
		return -1;
	for (unsigned i = 0; i < members; i++) {
		cluster->client_ports[i] = free_port();
		cluster->peer_ports[i] = free_port();
		snprintf(cluster->urls[i], sizeof(cluster->urls[i]), "http://127.0.0.1:%u",
			cluster->client_ports[i]);
		cluster->endpoints[i] = cluster->urls[i];
	}
	for (unsigned i = 0; i < members; i++) {
		if (etcd_member_start(cluster, i) != 0)
			return -1;
	}
	for (unsigned i = 0; i < 150; i++) {
		if (control(cluster, 0, "put ready yes") == 0)
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
		if (control(cluster, i,
			    "endpoint status -w fields | awk '/\"MemberID\"/ {m = $3} /\"Leader\"/ {l "
			    "= $3} END {exit !(m == l && m)}'") == 0) {
			etcd_member_kill(cluster, i);
			return (int)i;
		}
	}
	return -1;
}

int etcd_cluster_users(struct etcd_cluster *cluster, const char *password)
{
	char words[128];

	snprintf(words, sizeof(words), "user add root:%s", password);
	if (control(cluster, 0, words) != 0 ||
		control(cluster, 0, "user grant-role root root") != 0)
		return -1;
	return control(cluster, 0, "auth enable") == 0 ? 0 : -1;
}
